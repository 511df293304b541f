/// Secret bytes: a token, a licence, a key. Printing or interpolating a `Secret` does not show the bytes, and the
/// library wipes the bytes when it releases the last reference. The bytes exist once in memory. (A `Secret` is a
/// reference and not `~Copyable`, so that the machines can be plain values.)
///
/// `@unchecked Sendable` is safe: only the creator writes the bytes, before it shares them; from then on all threads
/// only read. The reference count is atomic.
package struct Secret: @unchecked Sendable {
  private var storage: SecretStorage

  package init(_ bytes: UnsafeBufferPointer<UInt8>) {
    storage = Secret.memory(bytes.count)
    copy(bytes, into: storage.bytes)
  }

  /// Copies the bytes. The caller keeps the array, and must wipe it if it is secret.
  package init(_ bytes: [UInt8]) {
    storage = Secret.memory(bytes.count)
    bytes.withUnsafeBufferPointer { copy($0, into: storage.bytes) }
  }

  /// Makes room for `count` bytes, which are 0 until `fill` writes them.
  package init(count: Int, fill: (UnsafeMutableBufferPointer<UInt8>) -> Void) {
    storage = Secret.memory(count)
    UnsafeMutableRawBufferPointer(storage.bytes).initializeMemory(as: UInt8.self, repeating: 0)
    withExtendedLifetime(storage) { fill(storage.bytes) }
  }

  /// Write the name of the type here and not `Self`: in Embedded Swift an object with tail elements gets a wrong size
  /// if its type is known only at run time.
  @inline(__always)
  private static func memory(_ count: Int) -> SecretStorage {
    unsafeDowncast(SecretStorage.create(minimumCapacity: max(count, 0)) { _ in max(count, 0) }, to: SecretStorage.self)
  }

  package var count: Int { storage.header }

  @inline(never)
  package func hasSameBytes(as other: Secret) -> Bool {
    count == other.count
      && withBytes { _ in other.withBytes { _ in sameBytes(address, other.address, count: count) } }
  }

  package func withBytes<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
    withExtendedLifetime(storage) { body(UnsafeBufferPointer(storage.bytes)) }
  }

  /// The address of the bytes, valid as long as this `Secret` lives, for C functions that read them later.
  package var address: UnsafeRawPointer { UnsafeRawPointer(storage.address) }

  /// Only the code that made the `Secret` may call this, before other code gets the `Secret`.
  package func withMutableBytes<R>(_ body: (UnsafeMutableBufferPointer<UInt8>) -> R) -> R {
    withExtendedLifetime(storage) { body(storage.bytes) }
  }

  /// Returns whether this is the last reference to the bytes.
  package mutating func isLast() -> Bool { isKnownUniquelyReferenced(&storage) }
}

/// The number of bytes and the bytes themselves, in one allocation.
private final class SecretStorage: ManagedBuffer<Int, UInt8> {
  /// The address of the first byte; this address does not change.
  var address: UnsafeMutablePointer<UInt8> { withUnsafeMutablePointerToElements { $0 } }

  var bytes: UnsafeMutableBufferPointer<UInt8> { UnsafeMutableBufferPointer(start: address, count: header) }

  deinit { wipe(bytes) }
}

/// Overwrites the bytes with 0. The optimiser cannot remove these writes, even if no later code reads the bytes.
package func wipe(_ bytes: UnsafeMutableBufferPointer<UInt8>) {
  let raw = UnsafeMutableRawBufferPointer(bytes)
  raw.initializeMemory(as: UInt8.self, repeating: 0)
  keepWrites(to: raw.baseAddress)
}

/// Overwrites the elements with 0.
func wipe<Element: BitwiseCopyable>(_ elements: inout [Element]) {
  elements.withUnsafeMutableBytes { wipe($0.bindMemory(to: UInt8.self)) }
}

/// Does nothing. The optimiser cannot look into this function, so the optimiser must keep the writes to `memory`.
@inline(never) @_optimize(none)
private func keepWrites(to memory: UnsafeMutableRawPointer?) {}
