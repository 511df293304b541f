/// A text of which layers of coding are removed one by one. Each byte knows the bytes of the text that it came from.
struct CodedText {
  struct Byte {
    var value: UInt8
    /// The first byte of the text that it came from, and the byte after the last.
    var start: Int
    var end: Int
  }

  private var bytes: [Byte] = []

  init(_ text: UnsafeBufferPointer<UInt8>) {
    bytes.reserveCapacity(text.count)
    for at in 0..<text.count { bytes.append(Byte(value: text[at], start: at, end: at + 1)) }
  }

  /// The letters and digits, in lower case.
  var letters: [Byte] {
    var found: [Byte] = []
    found.reserveCapacity(bytes.count)
    for byte in bytes {
      guard let letter = foldedLetter(byte.value) else { continue }
      found.append(Byte(value: letter, start: byte.start, end: byte.end))
    }
    return found
  }

  /// Removes one layer of `%41`, `\u0041`, `\x41`, `&#65;`, `&#x41;` and of full-width letters.
  /// - Returns: false if there was nothing to remove.
  mutating func decode() -> Bool {
    var decoded: [Byte] = []
    decoded.reserveCapacity(bytes.count)
    var at = 0
    while at < bytes.count {
      let (value, length) = escape(at) ?? (bytes[at].value, 1)
      decoded.append(Byte(value: value, start: bytes[at].start, end: bytes[at + length - 1].end))
      at += length
    }
    let isChanged = decoded.count < bytes.count
    wipe()
    bytes = decoded
    return isChanged
  }

  mutating func wipe() { UsherCore.wipe(&bytes) }

  /// The byte for which an escape at `at` stands, and the escape's length; nil if there is no escape.
  private func escape(_ at: Int) -> (UInt8, Int)? {
    switch bytes[at].value {
    case 0x25: return hex(at + 1, digits: 2).map { ($0, 3) }
    case 0x5C:
      switch value(at + 1) {
      case 0x75, 0x55: if let code = hex(at + 2, digits: 4) { return (code, 6) }
      case 0x78, 0x58: if let code = hex(at + 2, digits: 2) { return (code, 4) }
      case 0x6E, 0x72, 0x74, 0x62, 0x66: return (0x20, 2)
      default: break
      }
      return at + 1 < bytes.count ? (bytes[at + 1].value, 2) : nil
    case 0x26: return entity(at)
    case 0xEF:
      // U+FF01 … U+FF5E are the full-width forms of "!" … "~".
      let (second, third) = (value(at + 1), value(at + 2))
      if second == 0xBC, third >= 0x81 { return (third &- 0x60, 3) }
      if second == 0xBD, third >= 0x80, third <= 0x9E { return (third &- 0x20, 3) }
      return nil
    default: return nil
    }
  }

  private func entity(_ at: Int) -> (UInt8, Int)? {
    guard value(at + 1) == 0x23 else { return nil }
    let isHex = value(at + 2) | 0x20 == 0x78
    var next = at + (isHex ? 3 : 2)
    let first = next
    var code = 0
    while next - first < 7, let digit = hexValue(value(next)), isHex || digit < 10 {
      code = code * (isHex ? 16 : 10) + Int(digit)
      next += 1
    }
    guard next > first else { return nil }
    return (Self.byte(code), next - at + (value(next) == 0x3B ? 1 : 0))
  }

  private func hex(_ at: Int, digits: Int) -> UInt8? {
    var code = 0
    for offset in 0..<digits {
      guard let digit = hexValue(value(at + offset)) else { return nil }
      code = code << 4 | Int(digit)
    }
    return Self.byte(code)
  }

  /// The byte of a code; 0x80 for all codes that are not ASCII.
  private static func byte(_ code: Int) -> UInt8 { code < 0x80 ? UInt8(truncatingIfNeeded: code) : 0x80 }

  private func value(_ at: Int) -> UInt8 { at < bytes.count ? bytes[at].value : 0 }
}

/// A letter in lower case, or a digit; nil for any other byte.
func foldedLetter(_ byte: UInt8) -> UInt8? {
  let lower = lowercased(byte)
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x7A) ? lower : nil
}
