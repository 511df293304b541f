/// Finds the words of a request's body, or of a payload, that count as secrets. A word is a run of token bytes
/// (`isTokenByte`) and `%`. A word that contains a digit is a secret if it has at least 8 bytes. A word without a digit
/// is a secret if it has at least 12 bytes; if such a word is the name of a JSON member or of an XML element, it must
/// have at least 16. Shorter words also occur in ordinary messages.
struct BodyWords {
  private let body: UnsafeBufferPointer<UInt8>
  private var at = 0

  init(_ body: UnsafeBufferPointer<UInt8>) { self.body = body }

  mutating func next() -> UnsafeBufferPointer<UInt8>? {
    while at < body.count {
      let start = at
      var hasDigit = false
      while at < body.count, isTokenByte(body[at]) || body[at] == 0x25 {
        if isDigit(body[at]) { hasDigit = true }
        at += 1
      }
      let end = at
      at += 1
      if end - start >= (hasDigit ? 8 : isName(start, end) ? 16 : 12) {
        return UnsafeBufferPointer(rebasing: body[start..<end])
      }
    }
    return nil
  }

  private func isName(_ start: Int, _ end: Int) -> Bool {
    byte(start - 1) == 0x3C || byte(end) == 0x3A || (byte(end) == 0x22 && byte(end + 1) == 0x3A)
  }

  private func byte(_ at: Int) -> UInt8 { at >= 0 && at < body.count ? body[at] : 0 }
}
