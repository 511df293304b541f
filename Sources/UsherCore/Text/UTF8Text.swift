/// Tests whether bytes are text.
package enum UTF8Text {
  /// Returns whether the bytes are well-formed UTF-8: no overlong form, no surrogate, nothing beyond U+10FFFF.
  package static func isValid(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    var at = 0
    while at < bytes.count {
      let length = sequence(bytes, at)
      if length == 0 { return false }
      at += length
    }
    return true
  }

  /// Returns whether the bytes are UTF-8 without control characters except tab, line feed and carriage return. Binary
  /// keys and licences are almost never such text.
  package static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    for byte in bytes where (byte < 0x20 && byte != 0x09 && byte != 0x0A && byte != 0x0D) || byte == 0x7F {
      return false
    }
    return isValid(bytes)
  }

  /// Returns the length of the character at index `at`; 0 if there is no valid character there.
  static func sequence(_ bytes: UnsafeBufferPointer<UInt8>, _ at: Int) -> Int {
    let first = bytes[at]
    let (length, low, high): (Int, UInt8, UInt8)
    switch first {
    case 0..<0x80: return 1
    case 0xC2...0xDF: (length, low, high) = (2, 0x80, 0xBF)
    case 0xE0: (length, low, high) = (3, 0xA0, 0xBF)
    case 0xED: (length, low, high) = (3, 0x80, 0x9F)
    case 0xE1...0xEF: (length, low, high) = (3, 0x80, 0xBF)
    case 0xF0: (length, low, high) = (4, 0x90, 0xBF)
    case 0xF1...0xF3: (length, low, high) = (4, 0x80, 0xBF)
    case 0xF4: (length, low, high) = (4, 0x80, 0x8F)
    default: return 0
    }
    guard bytes.count - at >= length, bytes[at + 1] >= low, bytes[at + 1] <= high else { return 0 }
    for offset in 2..<max(length, 2) where bytes[at + offset] & 0xC0 != 0x80 { return 0 }
    return length
  }
}
