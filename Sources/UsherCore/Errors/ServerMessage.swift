extension HiddenSecrets {
  /// Makes a text from outside safe to show: one line of at most 512 bytes, without any part of a secret and without
  /// any other word that looks like a token.
  package func cleaned(_ whole: UnsafeBufferPointer<UInt8>) -> String {
    let text = UnsafeBufferPointer(rebasing: whole.prefix(1024))
    var marks = [Bool](repeating: false, count: text.count)
    guard mark(text, in: &marks) else { return string(Self.withheld) }
    markTokens(text, &marks)
    let redacted: StaticString = "[redacted]"
    var shown: [UInt8] = []
    for at in 0..<text.count {
      if !marks[at] {
        shown.append(text[at])
      } else if at == 0 || !marks[at - 1] {
        redacted.withUTF8Buffer { shown.append(contentsOf: $0) }
      }
    }
    return isClean(shown) ? oneLine(shown) : string(Self.withheld)
  }

  private static var withheld: StaticString { "the server's message was withheld because it may repeat a secret" }

  private func isClean(_ shown: [UInt8]) -> Bool {
    var marks = [Bool](repeating: false, count: shown.count)
    let isRead = shown.withUnsafeBufferPointer { mark($0, in: &marks) }
    for isMarked in marks where isMarked { return false }
    return isRead
  }

  /// Marks the rest of words that repeat a part of a secret, and the words that look like a token.
  private func markTokens(_ text: UnsafeBufferPointer<UInt8>, _ marks: inout [Bool]) {
    var start = 0
    while start < text.count {
      var end = start
      while end < text.count, foldedLetter(text[end]) != nil { end += 1 }
      var isMarked = false
      for at in start..<end where marks[at] { isMarked = true }
      if isMarked { for at in start..<end { marks[at] = true } }
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

/// One line of at most 512 bytes: spaces replace control characters, and characters that are invisible or change the
/// direction of writing.
private func oneLine(_ bytes: [UInt8]) -> String {
  // From here on the text is valid UTF-8: U+FFFD replaces what was not.
  let text = Array(String(decoding: bytes, as: UTF8.self).utf8)
  var line: [UInt8] = []
  var at = 0
  while at < text.count {
    let first = text[at]
    let length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
    let end = min(at + length, text.count)
    var scalar = UInt32(length == 1 ? first : first & (0x7F >> UInt8(length)))
    for next in text[(at + 1)..<end] { scalar = scalar << 6 | UInt32(next & 0x3F) }
    let isShown = isVisible(scalar)
    if line.count + (isShown ? length : 1) > 512 { break }
    if isShown { line += text[at..<end] } else { line.append(0x20) }
    at = end
  }
  return String(decoding: line, as: UTF8.self)
}

private func isVisible(_ scalar: UInt32) -> Bool {
  switch scalar {
  case 0..<0x20, 0x7F..<0xA0, 0xAD, 0x061C, 0x180E, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF,
    0xFFF9...0xFFFB, 0xE0000...0xE0FFF:
    return false
  default: return true
  }
}

/// Returns whether a byte occurs in base64, base64url and JWTs. A run of more than 40 such bytes counts as a secret.
/// So does a run of at least 20 with two digits, such as a UUID.
func isTokenByte(_ byte: UInt8) -> Bool {
  switch byte {
  case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, 0x2B, 0x2D, 0x2E, 0x2F, 0x3D, 0x5F: return true
  default: return false
  }
}
