/// The words of a payload or of the body of a request that are secrets: all of at least 8 letters with a digit among
/// them, and without a digit all of at least 12, or of at least 16 where a JSON member or an XML element has its name.
/// Shorter words occur in ordinary messages.
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
