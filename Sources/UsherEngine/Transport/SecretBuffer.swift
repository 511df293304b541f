internal import UsherCore

/// A growing buffer for secret bytes. When it moves the bytes to a larger block, it wipes the old block.
struct SecretBuffer {
  private var storage: Secret?
  private(set) var count = 0

  mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    let (used, needed) = (count, count + bytes.count)
    count = needed
    guard var room = storage else {
      storage = Secret(bytes)
      return
    }
    if needed > room.count {
      let old = room
      room = Secret(count: max(needed, 2 * used)) { target in
        old.withBytes { copy(UnsafeBufferPointer(rebasing: $0[..<used]), into: target) }
      }
      storage = room
    }
    room.withMutableBytes { copy(bytes, into: $0, at: used) }
  }

  /// Returns the bytes in a block of exactly their size, and empties the buffer.
  mutating func take() -> Secret {
    defer {
      storage = nil
      count = 0
    }
    guard let storage else { return Secret([]) }
    return storage.count == count ? storage : storage.withBytes { Secret(UnsafeBufferPointer(rebasing: $0[..<count])) }
  }
}
