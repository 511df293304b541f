/// A 64-bit hash of bytes for hash tables, with a seed. It multiplies 16 bytes at a time, and combines the halves of
/// each product with XOR. An attacker who does not know the seed cannot choose keys that collide.
package struct ByteHash: Sendable {
  private let start: UInt64
  private let factor: UInt64

  package init(seed: UInt64) {
    start = ByteHash.mix(seed ^ 0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93)
    factor = ByteHash.mix(seed &+ 0x9E37_79B9_7F4A_7C15, 0xA076_1D64_78BD_642F) | 1
  }

  package func value(of bytes: UnsafeBufferPointer<UInt8>) -> UInt64 {
    let count = bytes.count
    guard count > 0, let base = bytes.baseAddress else { return ByteHash.mix(start, factor) }
    let raw = UnsafeRawPointer(base)
    var state = start
    var (first, second): (UInt64, UInt64)
    if count > 16 {
      var at = 0
      while count - at > 16 {
        state = ByteHash.mix(ByteHash.eight(raw, at) ^ factor, ByteHash.eight(raw, at + 8) ^ state)
        at += 16
      }
      (first, second) = (ByteHash.eight(raw, count - 16), ByteHash.eight(raw, count - 8))
    } else if count >= 8 {
      (first, second) = (ByteHash.eight(raw, 0), ByteHash.eight(raw, count - 8))
    } else if count >= 4 {
      (first, second) = (ByteHash.four(raw, 0), ByteHash.four(raw, count - 4))
    } else {
      (first, second) = (UInt64(base[0]) << 16 | UInt64(base[count >> 1]) << 8 | UInt64(base[count - 1]), 0)
    }
    return ByteHash.mix(factor ^ UInt64(truncatingIfNeeded: count), ByteHash.mix(first ^ factor, second ^ state))
  }

  private static func mix(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = a.multipliedFullWidth(by: b)
    return product.high ^ product.low
  }

  private static func eight(_ raw: UnsafeRawPointer, _ at: Int) -> UInt64 {
    raw.loadUnaligned(fromByteOffset: at, as: UInt64.self)
  }
  private static func four(_ raw: UnsafeRawPointer, _ at: Int) -> UInt64 {
    UInt64(raw.loadUnaligned(fromByteOffset: at, as: UInt32.self))
  }
}

/// Returns whether the first `count` bytes of two memory areas are equal. Compares from the end, because many tokens
/// begin with the same bytes and differ only in their signatures.
func sameBytes(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, count: Int) -> Bool {
  var at = count
  while at >= 8 {
    at -= 8
    if left.loadUnaligned(fromByteOffset: at, as: UInt64.self)
      != right.loadUnaligned(fromByteOffset: at, as: UInt64.self)
    {
      return false
    }
  }
  while at > 0 {
    at -= 1
    if left.load(fromByteOffset: at, as: UInt8.self) != right.load(fromByteOffset: at, as: UInt8.self) { return false }
  }
  return true
}
