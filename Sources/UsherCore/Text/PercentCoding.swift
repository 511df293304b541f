/// Percent-encodes and decodes bytes: `A` as `%41` and back.
package enum PercentCoding {
  /// Decodes `%XX`. A `%` without two hex digits after it stays as it is, and so does `+`.
  package static func decode(_ text: some Collection<UInt8>) -> [UInt8] {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(text.count)
    var at = text.startIndex
    while at != text.endIndex {
      let byte = text[at]
      at = text.index(after: at)
      guard byte == 0x25, at != text.endIndex, let high = hexValue(text[at]) else {
        decoded.append(byte)
        continue
      }
      let second = text.index(after: at)
      guard second != text.endIndex, let low = hexValue(text[second]) else {
        decoded.append(byte)
        continue
      }
      decoded.append(high << 4 | low)
      at = text.index(after: second)
    }
    return decoded
  }

  /// Returns the length of the encoded bytes: all bytes except letters, digits and `-._~` become `%XX`.
  package static func encodedCount(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
    var count = 0
    for byte in bytes { count += isUnreserved(byte) ? 1 : 3 }
    return count
  }

  /// Writes the encoded bytes to `target`, which must have room for `encodedCount` bytes. Returns how many it wrote.
  package static func encode(_ bytes: UnsafeBufferPointer<UInt8>, into target: UnsafeMutableBufferPointer<UInt8>) -> Int
  {
    var at = 0
    for byte in bytes {
      if isUnreserved(byte) {
        guard at < target.count else { return at }
        target[at] = byte
        at += 1
      } else {
        guard target.count - at >= 3 else { return at }
        target[at] = 0x25
        target[at + 1] = hexDigit(byte >> 4, upper: true)
        target[at + 2] = hexDigit(byte & 15, upper: true)
        at += 3
      }
    }
    return at
  }

  static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, 0x2D, 0x2E, 0x5F, 0x7E: return true
    default: return false
    }
  }
}

package func hexValue(_ byte: UInt8) -> UInt8? {
  switch byte {
  case 0x30...0x39: return byte - 0x30
  case 0x41...0x46: return byte - 0x41 + 10
  case 0x61...0x66: return byte - 0x61 + 10
  default: return nil
  }
}

/// Returns the hex digit of `value & 15`.
package func hexDigit(_ value: UInt8, upper: Bool = false) -> UInt8 {
  let digit = value & 15
  return digit < 10 ? 0x30 + digit : (upper ? 0x41 : 0x61) + (digit - 10)
}
