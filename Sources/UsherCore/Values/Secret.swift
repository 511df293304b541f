/// Bytes that must not be seen: a token, a licence, a key. Cannot be printed or interpolated into anything useful; wiped when the last reference goes.
/// (Shared by reference rather than `~Copyable`, so that the machines stay plain values; the bytes exist once.)
///
/// Sendable, unchecked: the bytes are written by who makes it, before anybody else has it, and only read from then on; references are counted atomically.
package struct Secret: @unchecked Sendable {
  private var storage: SecretStorage

  package init(_ bytes: UnsafeBufferPointer<UInt8>) {
    storage = Secret.memory(bytes.count)
    copy(bytes, into: storage.bytes)
  }

  /// Copies; the array it is copied from stays with the caller, who wipes it if it was secret there.
  package init(_ bytes: [UInt8]) {
    storage = Secret.memory(bytes.count)
    bytes.withUnsafeBufferPointer { copy($0, into: storage.bytes) }
  }

  /// Room for `count` zeros, then whatever `fill` writes.
  package init(count: Int, fill: (UnsafeMutableBufferPointer<UInt8>) -> Void) {
    storage = Secret.memory(count)
    UnsafeMutableRawBufferPointer(storage.bytes).initializeMemory(as: UInt8.self, repeating: 0)
    withExtendedLifetime(storage) { fill(storage.bytes) }
  }

  /// (By the type's name: in Embedded Swift an object with a tail made by a type that is only known when it runs gets a wrong size.)
  @inline(__always)
  private static func memory(_ count: Int) -> SecretStorage {
    unsafeDowncast(SecretStorage.create(minimumCapacity: max(count, 0)) { _ in max(count, 0) }, to: SecretStorage.self)
  }

  package var count: Int { storage.header }

  package func withBytes<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
    withExtendedLifetime(storage) { body(UnsafeBufferPointer(storage.bytes)) }
  }

  /// Where the bytes are as long as it lives, for C that reads them later.
  package var address: UnsafeRawPointer { UnsafeRawPointer(storage.address) }

  /// For whoever made it and has not given it away yet.
  package func withMutableBytes<R>(_ body: (UnsafeMutableBufferPointer<UInt8>) -> R) -> R {
    withExtendedLifetime(storage) { body(storage.bytes) }
  }

  /// Whether the bytes go when this one goes.
  package mutating func isLast() -> Bool { isKnownUniquelyReferenced(&storage) }

  package func isEqual(to other: Secret) -> Bool {
    guard count == other.count else { return false }
    return withBytes { mine in
      other.withBytes { theirs in
        var difference: UInt8 = 0
        for index in 0..<mine.count { difference |= mine[index] ^ theirs[index] }
        return difference == 0
      }
    }
  }
}

/// The bytes behind their number, in one piece of memory.
private final class SecretStorage: ManagedBuffer<Int, UInt8> {
  /// Does not move.
  var address: UnsafeMutablePointer<UInt8> { withUnsafeMutablePointerToElements { $0 } }

  var bytes: UnsafeMutableBufferPointer<UInt8> { UnsafeMutableBufferPointer(start: address, count: header) }

  deinit { wipe(bytes) }
}

/// Overwrites, also where nobody reads what is overwritten.
package func wipe(_ bytes: UnsafeMutableBufferPointer<UInt8>) {
  let raw = UnsafeMutableRawBufferPointer(bytes)
  raw.initializeMemory(as: UInt8.self, repeating: 0)
  look(at: raw.baseAddress)
}

/// The optimiser does not see into it, so what is behind the pointer must be there.
@inline(never) @_optimize(none)
private func look(at memory: UnsafeMutableRawPointer?) {}
