extension HiddenSecrets {
  /// Makes a text of a server safe to show. The result is one visible line of at most 512 bytes. It has no part of a
  /// secret, and no other word that looks like a token. If a character of the text is coded (`%41`, `\u0041`, `&#65;`),
  /// the result only says that the library withholds the text. The library does not decode the text, so it cannot know
  /// whether the text repeats a secret.
  package func cleaned(_ whole: UnsafeBufferPointer<UInt8>) -> String {
    var text = visible(UnsafeBufferPointer(rebasing: whole.prefix(1024)))
    defer { wipe(&text) }
    var marks = [Bool](repeating: false, count: text.count)
    guard text.withUnsafeBufferPointer({ !hasCodedCharacter($0) && mark($0, in: &marks) }) else {
      return string(Self.withheld)
    }
    text.withUnsafeBufferPointer { markTokens($0, &marks) }
    var shown: [UInt8] = []
    shown.reserveCapacity(512)
    defer { wipe(&shown) }
    var at = 0
    while at < text.count {
      let start = at
      at += 1
      if marks[start] {
        while at < text.count, marks[at] { at += 1 }
        let redacted: StaticString = "[redacted]"
        if shown.count + redacted.utf8CodeUnitCount > 512 { break }
        redacted.withUTF8Buffer { shown.append(contentsOf: $0) }
      } else {
        while at < text.count, text[at] & 0xC0 == 0x80 { at += 1 }
        if shown.count + at - start > 512 { break }
        for index in start..<at { shown.append(text[index]) }
      }
    }
    return !marks.contains(true) || isClean(shown) ? String(decoding: shown, as: UTF8.self) : string(Self.withheld)
  }

  private static var withheld: StaticString { "the server's message was withheld because it may repeat a secret" }

  private func isClean(_ shown: [UInt8]) -> Bool {
    var marks = [Bool](repeating: false, count: shown.count)
    let isRead = shown.withUnsafeBufferPointer { mark($0, in: &marks) }
    for isMarked in marks where isMarked { return false }
    return isRead
  }

  /// Marks two kinds of words completely: words that contain a part of a secret, and words that look like a token.
  private func markTokens(_ text: UnsafeBufferPointer<UInt8>, _ marks: inout [Bool]) {
    var start = 0
    while start < text.count {
      var end = start
      var isMarked = false
      // How often the kind of character changes inside this word: from letter to digit, from digit to letter, or from
      // lower to upper case. Encoded data has many such changes.
      var changes = 0
      while end < text.count, let kind = CharacterKind(text[end]) {
        if marks[end] { isMarked = true }
        if end > start, let before = CharacterKind(text[end - 1]), before != kind,
          before != .upper || kind == .digit
        {
          changes += 1
        }
        end += 1
      }
      // Keep an error code of Windows, such as 0x8004C600: it looks like a token, but it is not secret.
      let isErrorCode = end - start == 10 && text[start] == 0x30 && text[start + 1] | 0x20 == 0x78
      if isMarked || (end - start >= 8 && changes * 4 > end - start && !isErrorCode) {
        for at in start..<end { marks[at] = true }
      }
      start = end + 1
    }
    start = 0
    while start < text.count {
      var end = start
      var digits = 0
      while end < text.count, isTokenByte(text[end]) {
        if isDigit(text[end]) { digits += 1 }
        end += 1
      }
      let isToken = end - start > 40 || (end - start >= 20 && digits >= 2)
      if isToken { for at in start..<end { marks[at] = true } }
      start = end + 1
    }
  }
}

private enum CharacterKind {
  case lower, upper, digit

  init?(_ byte: UInt8) {
    switch byte {
    case 0x30...0x39: self = .digit
    case 0x41...0x5A: self = .upper
    case 0x61...0x7A: self = .lower
    default: return nil
    }
  }
}

/// Returns whether the text has an escape sequence that begins with `\` or `%`, or an entity or a tag of XML or HTML.
private func hasCodedCharacter(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
  for at in 0..<text.count {
    let next = at + 1 < text.count ? lowercased(text[at + 1]) : 0
    let isLetter = next >= 0x61 && next <= 0x7A
    switch text[at] {
    case 0x5C: return true
    case 0x25: if next == 0x75 || hexValue(next) != nil { return true }
    case 0x26, 0x3C: if isLetter || next == 0x21 || next == 0x23 || next == 0x2F { return true }
    default: break
    }
  }
  return false
}

/// Returns the text as valid UTF-8 without line breaks. U+FFFD replaces each invalid byte, ASCII replaces full-width
/// characters, and a space replaces each character that is not `isVisible`.
private func visible(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
  var line: [UInt8] = []
  line.reserveCapacity(text.count * 3)
  var at = 0
  while at < text.count {
    let length = UTF8Text.sequence(text, at)
    let end = at + max(length, 1)
    var scalar = UInt32(length <= 1 ? text[at] : text[at] & (0x7F >> UInt8(length)))
    for index in (at + 1)..<max(end, at + 1) { scalar = scalar << 6 | UInt32(text[index] & 0x3F) }
    if length == 0 {
      for byte in [0xEF, 0xBF, 0xBD] as [UInt8] { line.append(byte) }
    } else if scalar >= 0xFF01 && scalar <= 0xFF5E {
      line.append(UInt8(truncatingIfNeeded: scalar &- 0xFEE0))
    } else if isVisible(scalar) {
      for index in at..<end { line.append(text[index]) }
    } else {
      line.append(0x20)
    }
    at = end
  }
  return line
}

/// Returns whether a message may show a character. The character must not be a control character, change the direction
/// of writing, or be invisible (Default_Ignorable_Code_Point and format characters of Unicode 15, and the empty braille
/// pattern). Nor may it be in one of these blocks with special forms of Latin letters and digits: the raised and
/// lowered letters of Phonetic Extensions, Superscripts and Subscripts, Enclosed Alphanumerics and their supplement,
/// Mathematical Alphanumeric Symbols. A message may show special forms from all other blocks, e.g. the raised digit
/// U+00B2.
private func isVisible(_ scalar: UInt32) -> Bool {
  switch scalar {
  case 0..<0x20, 0x7F..<0xA0, 0xAD, 0x034F, 0x0600...0x0605, 0x061C, 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2,
    0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B...0x180F, 0x1D2C...0x1D6A, 0x200B...0x200F, 0x2028...0x202E,
    0x2060...0x209C, 0x2460...0x24FF, 0x2800, 0x3164, 0xFE00...0xFE0F, 0xFEFF, 0xFFA0, 0xFFF0...0xFFFB, 0x110BD,
    0x110CD, 0x13430...0x1343F, 0x1BCA0...0x1BCA3, 0x1D173...0x1D17A, 0x1D400...0x1D7FF, 0x1F100...0x1F1FF,
    0xE0000...0xE0FFF:
    return false
  default: return true
  }
}

/// Returns whether a byte occurs in base64, base64url and JWTs. A run of more than 40 such bytes counts as a secret. A
/// run of at least 20 also counts if it has at least two digits, as a UUID does.
func isTokenByte(_ byte: UInt8) -> Bool {
  switch byte {
  case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, 0x2B, 0x2D, 0x2E, 0x2F, 0x3D, 0x5F: return true
  default: return false
  }
}
