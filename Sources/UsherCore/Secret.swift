/// Bytes that must not be seen: a token, a licence, a key. Cannot be printed or interpolated into anything useful; wiped when the last reference goes.
/// (Shared by reference rather than `~Copyable`, so that the machines stay plain values; the bytes exist once.)
package final class Secret: Sendable {
  private nonisolated(unsafe) let storage: UnsafeMutableBufferPointer<UInt8>

  package init(_ bytes: UnsafeBufferPointer<UInt8>) {
    storage = UnsafeMutableBufferPointer.allocate(capacity: bytes.count)
    _ = storage.initialize(from: bytes)
  }

  /// Copies; the array it is copied from stays with the caller, who wipes it if it was secret there.
  package convenience init(_ bytes: [UInt8]) {
    self.init(count: bytes.count) { target in
      for index in 0..<bytes.count { target[index] = bytes[index] }
    }
  }

  /// Room for `count` zeros, then whatever `fill` writes.
  package init(count: Int, fill: (UnsafeMutableBufferPointer<UInt8>) -> Void) {
    storage = UnsafeMutableBufferPointer.allocate(capacity: count)
    storage.initialize(repeating: 0)
    fill(storage)
  }

  deinit {
    wipe(storage)
    storage.deallocate()
  }

  package var count: Int { storage.count }

  package func withBytes<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
    withExtendedLifetime(self) { body(UnsafeBufferPointer(storage)) }
  }

  /// For whoever made it and has not given it away yet.
  package func withMutableBytes<R>(_ body: (UnsafeMutableBufferPointer<UInt8>) -> R) -> R {
    withExtendedLifetime(self) { body(storage) }
  }

  package func isEqual(to other: Secret) -> Bool {
    guard count == other.count else { return false }
    var difference: UInt8 = 0
    for index in 0..<count { difference |= storage[index] ^ other.storage[index] }
    return difference == 0
  }
}

/// Overwrites; the optimiser may not drop it, since it does not see through an unoptimised call.
@inline(never) @_optimize(none)
package func wipe(_ bytes: UnsafeMutableBufferPointer<UInt8>) {
  var index = 0
  while index < bytes.count {
    bytes[index] = 0
    index &+= 1
  }
}
