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
      storage = Secret(count: max(needed, 2 * used, 512)) { target in
        old?.withBytes { for index in 0..<used { target[index] = $0[index] } }
      }
    }
    let at = count
    storage?.withMutableBytes { target in
      for index in 0..<bytes.count { target[at + index] = bytes[index] }
    }
    count = needed
  }

  /// The bytes, exactly as many.
  mutating func take() -> Secret {
    defer {
      storage = nil
      count = 0
    }
    let used = count
    let from = storage
    return Secret(count: used) { target in
      from?.withBytes { for index in 0..<used { target[index] = $0[index] } }
    }
  }
}
