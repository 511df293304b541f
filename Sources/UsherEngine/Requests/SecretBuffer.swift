internal import UsherCore

/// Bytes of unknown length that must not be seen: grows, and wipes what it leaves behind.
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

  /// The bytes, exactly as many.
  mutating func take() -> Secret {
    defer {
      storage = nil
      count = 0
    }
    guard let storage else { return Secret([]) }
    return storage.count == count ? storage : storage.withBytes { Secret(UnsafeBufferPointer(rebasing: $0[..<count])) }
  }
}
