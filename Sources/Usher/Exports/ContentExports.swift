public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_read_pssh`; contract in `include/usher/content.h`.
@_cdecl("usher_read_pssh") @implementation
public func usher_read_pssh(
  _ bytes: UnsafePointer<UInt8>!, _ size: Int, _ fn: usher_protection_fn!, _ user_data: UnsafeMutableRawPointer!,
  _ out_count: UnsafeMutablePointer<Int>!
) -> Int32 {
  readProtections(bytes, size, fn, user_data, out_count) { input in
    let boxes = PSSH.all(in: input)
    return (boxes.isEmpty ? PSSH.all(inBase64: input) : boxes).map { Protection($0) }
  }
}

/// Implements `usher_read_tenc`; contract in `include/usher/content.h`.
@_cdecl("usher_read_tenc") @implementation
public func usher_read_tenc(
  _ bytes: UnsafePointer<UInt8>!, _ size: Int, _ fn: usher_protection_fn!, _ user_data: UnsafeMutableRawPointer!,
  _ out_count: UnsafeMutablePointer<Int>!
) -> Int32 {
  readProtections(bytes, size, fn, user_data, out_count) { input in
    TrackEncryption.all(in: input).map { Protection($0) }
  }
}

/// Implements `usher_read_mp4`; contract in `include/usher/content.h`.
@_cdecl("usher_read_mp4") @implementation
public func usher_read_mp4(
  _ read: usher_read_fn!, _ fn: usher_protection_fn!, _ user_data: UnsafeMutableRawPointer!,
  _ message: UnsafeMutablePointer<CChar>!, _ message_size: Int
) -> Int32 {
  report(to: message, message_size) { words throws(UsherError) in
    guard let read, let fn else { throw UsherError(.invalidArgument) }
    let file = MP4File { offset, target in
      Int(clamping: read(offset, target.baseAddress, target.count, user_data))
    }
    do throws(MP4File.Fault) {
      try file.scan()
    } catch {
      words = file.message.bytes
      throw UsherError(error.status)
    }
    Protection.pass(file.found, to: fn, user_data)
  }
}

extension MP4File.Fault {
  fileprivate var status: Status {
    switch self {
    case .unreadable: return .callback
    case .malformed: return .protocolError
    case .tooLarge: return .tooLarge
    }
  }
}

/// Implements `usher_read_hls_keys`; contract in `include/usher/content.h`.
@_cdecl("usher_read_hls_keys") @implementation
public func usher_read_hls_keys(
  _ bytes: UnsafePointer<UInt8>!, _ size: Int, _ fn: usher_protection_fn!, _ user_data: UnsafeMutableRawPointer!,
  _ out_count: UnsafeMutablePointer<Int>!
) -> Int32 {
  readProtections(bytes, size, fn, user_data, out_count) { input in
    ((try? HLSKey.all(in: input)) ?? []).map { Protection($0) }
  }
}

/// Implements `usher_read_dash_protection`; contract in `include/usher/content.h`.
@_cdecl("usher_read_dash_protection") @implementation
public func usher_read_dash_protection(
  _ bytes: UnsafePointer<UInt8>!, _ size: Int, _ fn: usher_protection_fn!, _ user_data: UnsafeMutableRawPointer!,
  _ out_count: UnsafeMutablePointer<Int>!
) -> Int32 {
  readProtections(bytes, size, fn, user_data, out_count) { input in
    ((try? ContentProtection.all(in: input)) ?? []).map { Protection($0) }
  }
}

/// Checks the size (at most 1 MiB), reads the bytes, and passes each protection that it finds to the host's callback.
private func readProtections(
  _ bytes: UnsafePointer<UInt8>?, _ size: Int, _ fn: usher_protection_fn?, _ user: UnsafeMutableRawPointer?,
  _ count: UnsafeMutablePointer<Int>?,
  _ read: (UnsafeBufferPointer<UInt8>) -> [Protection]
) -> Int32 {
  count?.pointee = 0
  return report { () throws(UsherError) in
    guard let bytes, size >= 0, size <= 1 << 20, let fn else { throw UsherError(.invalidArgument) }
    let found = read(UnsafeBufferPointer(start: bytes, count: size))
    count?.pointee = found.count
    for protection in found { protection.pass(to: fn, user) }
  }
}

/// Implements `usher_content_id`; contract in `include/usher/content.h`.
@_cdecl("usher_content_id") @implementation
public func usher_content_id(
  _ url: UnsafePointer<UInt8>!, _ url_size: Int, _ rule: Int32, _ buffer: UnsafeMutablePointer<UInt8>!,
  _ size: UnsafeMutablePointer<Int>!
) -> Int32 {
  report { () throws(UsherError) in
    let text = try neededIdentifier(url, url_size, "url")
    let found: [UInt8]?
    if rule == USHER_CONTENT_ID_SSP {
      found = sspContentID(text)
    } else {
      let chosen = try contentIDRule(rule)
      found = text.withUnsafeBufferPointer { url -> [UInt8]? in try? chosen.bytes(of: url) }
    }
    guard let found, !found.isEmpty else { throw UsherError(.invalidArgument) }
    try copy(found, buffer, size)
  }
}

/// Implements `usher_rewrite_hls_keys`; contract in `include/usher/content.h`.
@_cdecl("usher_rewrite_hls_keys") @implementation
public func usher_rewrite_hls_keys(
  _ playlist: UnsafePointer<UInt8>!, _ playlist_size: Int, _ scheme: UnsafePointer<CChar>!,
  _ uri_prefix: UnsafePointer<CChar>!,
  _ buffer: UnsafeMutablePointer<UInt8>!, _ size: UnsafeMutablePointer<Int>!
) -> Int32 {
  report { () throws(UsherError) in
    guard let playlist, playlist_size > 0, playlist_size <= 1 << 20,
      let prefix = try bytes(uri_prefix, most: 8192, "uri_prefix")
    else { throw UsherError(.invalidArgument) }
    let scheme = try schemeName(scheme, "scheme") ?? AssetID.fairPlayScheme
    var numbers: [[UInt8]: Int] = [:]
    let made = try? HLSRewrite.rewrite(UnsafeBufferPointer(start: playlist, count: playlist_size), scheme: scheme) {
      key in
      let number = numbers[key.uri] ?? numbers.count
      numbers[key.uri] = number
      return prefix + Array(String(number).utf8)
    }
    guard let made else { throw UsherError(.invalidArgument) }
    try copy(made, buffer, size)
  }
}
