public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_clearkey_request`; contract in `include/usher/clearkey.h`.
@_cdecl("usher_clearkey_request") @implementation
public func usher_clearkey_request(
  _ key_ids: UnsafePointer<UInt8>!, _ key_id_count: Int, _ buffer: UnsafeMutablePointer<UInt8>!,
  _ size: UnsafeMutablePointer<Int>!
) -> Int32 {
  report { () throws(UsherError) in
    guard let key_ids, key_id_count > 0, key_id_count <= [UUIDBytes].mostKeyIDs else {
      throw UsherError(.invalidArgument)
    }
    try copy(ClearKeyRequest.make(UnsafeBufferPointer(start: key_ids, count: key_id_count * 16)), buffer, size)
  }
}

/// Implements `usher_clearkey_keys`; contract in `include/usher/clearkey.h`.
@_cdecl("usher_clearkey_keys") @implementation
public func usher_clearkey_keys(
  _ license: UnsafePointer<UInt8>!, _ license_size: Int, _ keys: UnsafeMutablePointer<usher_clearkey_key>!,
  _ count: UnsafeMutablePointer<Int>!, _ message: UnsafeMutablePointer<CChar>!, _ message_size: Int
) -> Int32 {
  report(to: message, message_size) { words throws(UsherError) in
    guard let count, count.pointee >= 0, count.pointee <= 1 << 20 else { throw UsherError(.invalidArgument) }
    let room = UnsafeMutableBufferPointer(
      start: keys.map { UnsafeMutableRawPointer($0).assumingMemoryBound(to: UInt8.self) },
      count: keys == nil ? 0 : count.pointee * MemoryLayout<usher_clearkey_key>.size)
    count.pointee = 0
    wipe(room)
    guard let license, license_size > 0, license_size <= 1 << 20 else { throw UsherError(.invalidArgument) }
    var needed = 0
    do throws(ClearKeyLicense.Fault) {
      try ClearKeyLicense.read(UnsafeBufferPointer(start: license, count: license_size)) { id, key in
        copy(id, into: room, at: needed * 32)
        copy(key, into: room, at: needed * 32 + 16)
        needed += 1
      }
    } catch {
      wipe(room)
      words = error.words
      throw UsherError(.protocolError)
    }
    count.pointee = needed
    if needed * 32 > room.count {
      wipe(room)
      throw UsherError(.tooLarge)
    }
  }
}
