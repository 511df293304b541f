internal import UsherCore

/// A growing buffer for secret bytes. When it moves the bytes to a larger block, it wipes the old block.
struct SecretBuffer {
  private var storage: Secret?
  private(set) var count = 0

  mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    let needed = count + bytes.count
    if needed > (storage?.count ?? 0) {
      let old = storage
      let used = count
      storage = Secret(count: max(needed, 2 * used)) { target in
        old?.withBytes { copy(UnsafeBufferPointer(rebasing: $0[..<used]), into: target) }
      }
    }
    let at = count
    storage?.withMutableBytes { copy(bytes, into: $0, at: at) }
    count = needed
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
