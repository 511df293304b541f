/// Base64 in all variants: standard or URL alphabet, with or without padding, with or without white space.
package enum Base64 {
  package enum Alphabet: Sendable { case standard, url }

  /// Returns the length of the base64 text for `count` bytes.
  package static func encodedCount(_ count: Int, padded: Bool) -> Int {
    padded ? (count + 2) / 3 * 4 : (count * 4 + 2) / 3
  }

  /// Writes the base64 text for `bytes` to `target`, which must have room for `encodedCount` bytes.
  package static func encode(
    _ bytes: UnsafeBufferPointer<UInt8>, into target: UnsafeMutableBufferPointer<UInt8>, alphabet: Alphabet = .standard,
    padded: Bool = true
  ) {
    var at = 0
    var index = 0
    while index < bytes.count {
      let a = bytes[index]
      let b = index + 1 < bytes.count ? bytes[index + 1] : 0
      let c = index + 2 < bytes.count ? bytes[index + 2] : 0
      let left = bytes.count - index
      target[at] = letter(a >> 2, alphabet)
      target[at + 1] = letter((a & 3) << 4 | b >> 4, alphabet)
      at += 2
      if left > 1 {
        target[at] = letter((b & 15) << 2 | c >> 6, alphabet)
        at += 1
      }
      if left > 2 {
        target[at] = letter(c & 63, alphabet)
        at += 1
      }
      index += 3
    }
    while padded && at % 4 != 0 && at < target.count {
      target[at] = 0x3D
      at += 1
    }
  }

  /// Decodes text in either alphabet, with or without padding; nil if it is not base64.
  package static func decode(_ text: UnsafeBufferPointer<UInt8>) -> Secret? {
    var letters = 0
    var padding = 0
    for byte in text {
      switch byte {
      case 0x20, 0x09, 0x0A, 0x0D: continue
      case 0x3D: padding += 1
      default:
        guard padding == 0, value(byte) != nil else { return nil }
        letters += 1
      }
    }
    guard letters % 4 != 1, padding <= 2, padding == 0 || (letters + padding) % 4 == 0 else { return nil }
    return Secret(count: letters * 3 / 4) { target in
      var buffer: UInt32 = 0
      var bits = 0
      var at = 0
      for byte in text {
        guard let six = value(byte) else { continue }
        buffer = (buffer << 6 | UInt32(six)) & 0xFFFF
        bits += 6
        if bits >= 8 {
          bits -= 8
          if at < target.count { target[at] = UInt8(truncatingIfNeeded: buffer >> UInt32(bits)) }
          at += 1
        }
      }
    }
  }

  static func letter(_ six: UInt8, _ alphabet: Alphabet) -> UInt8 {
    switch six {
    case 0..<26: return 0x41 + six
    case 26..<52: return 0x61 + (six - 26)
    case 52..<62: return 0x30 + (six - 52)
    case 62: return alphabet == .standard ? 0x2B : 0x2D
    default: return alphabet == .standard ? 0x2F : 0x5F
    }
  }

  private static func value(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x41...0x5A: return byte - 0x41
    case 0x61...0x7A: return byte - 0x61 + 26
    case 0x30...0x39: return byte - 0x30 + 52
    case 0x2B, 0x2D: return 62
    case 0x2F, 0x5F: return 63
    default: return nil
    }
  }
}
