internal import UsherCore

/// Why the body of a reply is not what the library asked for.
package enum BodyFailure: Error, Equatable, Sendable {
  case empty
  case webPage
  /// XML, or another text with markup that is not a web page.
  case markup
  case text
  case utf16
  /// The body is gzip, zlib or zstd, and libcurl has not decoded it: the reply declares no compression, or declares
  /// another compression than it uses.
  case compressed
  case noElement
  case notBase64
  case notJSON
  /// The reply is JSON without the member that the library needs.
  case noMember
  case noLicense
  case notPlayReady
  case notClearKey
  case noCertificate
  case notWhole
  /// A SOAP fault.
  case fault
  /// An image, a PDF or another file, by the reply's `Content-Type` or by its first bytes.
  case otherFile
  /// A CKC or a Widevine licence whose lengths do not fit.
  case damaged
  case tooShort

  package var words: String {
    switch self {
    case .empty: return "the answer is empty"
    case .webPage: return "the answer is a web page"
    case .markup: return "the answer is XML"
    case .text: return "the answer is text"
    case .utf16: return "the answer is UTF-16 text"
    case .compressed: return "the answer is compressed"
    case .noElement: return "the answer has no ckc element"
    case .notBase64: return "the CKC is not base64"
    case .notJSON: return "the answer is not JSON"
    case .noMember: return "the answer has no CKC"
    case .noLicense: return "the answer has no license"
    case .notPlayReady: return "the answer is not a PlayReady licence"
    case .notClearKey: return "the answer is not a Clear Key licence"
    case .noCertificate: return "the answer has no certificate"
    case .notWhole: return "the certificate is not whole"
    case .fault: return "the answer is a SOAP fault"
    case .otherFile: return "the answer is a file"
    case .damaged: return "the licence is not whole"
    case .tooShort: return "the answer is too short"
    }
  }

  /// Checks a body that should be binary: a licence, a CKC or a certificate. Returns nil if the body may be one of
  /// these three.
  ///
  /// The formats of some vendors are not public, so the library accepts every body that it does not recognise as
  /// something else. docs/protocol.md has the table of these decisions.
  package static func ofBinary(_ body: UnsafeBufferPointer<UInt8>, _ media: MediaType = .other) -> BodyFailure? {
    let text = trimmed(body)
    guard let first = text.first else { return .empty }
    if isCompressed(body) { return .compressed }
    if media == .utf16 || isUTF16(body) { return .utf16 }
    if first == 0x3C, text.count > 1, isMarkup(text[1]) {
      let start = UnsafeBufferPointer(rebasing: text.prefix(1024))
      return media == .html || contains(start, "<html") || contains(start, "<!doctype html") ? .webPage : .markup
    }
    // No licence and no certificate begins with a byte order mark.
    let hasMark = withoutMark(body).count < body.count
    if hasMark || isText(text, media) { return media == .html ? .webPage : .text }
    if isCKC(body) || isProtobuf(body) { return nil }
    if beginsLikeLicense(body) { return .damaged }
    switch media {
    case .html: return .webPage
    case .text: return .text
    case .file: return .otherFile
    case .other, .utf16: return isFile(body) ? .otherFile : body.count < shortest ? .tooShort : nil
    }
  }

  /// Every licence, CKC and certificate has at least this many bytes.
  private static var shortest: Int { 16 }

  /// Whether bytes that a reply had as base64 may be a licence, a CKC or a certificate. Does not use the reply's
  /// `Content-Type`, which describes the base64 and not these bytes.
  static func isBinary(_ decoded: Secret) -> Bool { decoded.withBytes { ofBinary($0) } == nil }

  /// Checks a body that should be JSON or XML and is neither. Returns what the body is, or `other` if the library does
  /// not recognise it.
  static func of(
    _ body: UnsafeBufferPointer<UInt8>, _ media: MediaType, otherwise other: BodyFailure
  ) -> BodyFailure {
    switch ofBinary(body, media) {
    case .markup, .text, nil: return other
    case let found?: return found
    }
  }

  /// Returns the body without a byte order mark of UTF-8.
  package static func withoutMark(_ body: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
    let hasMark = body.count >= 3 && body[0] == 0xEF && body[1] == 0xBB && body[2] == 0xBF
    return hasMark ? UnsafeBufferPointer(rebasing: body[3...]) : body
  }

  /// Returns the body without a byte order mark and without white space around it.
  static func trimmed(_ body: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
    let text = withoutMark(body)
    var (start, end) = (0, text.count)
    while start < end && isXMLBlank(text[start]) { start += 1 }
    while end > start && isXMLBlank(text[end - 1]) { end -= 1 }
    return UnsafeBufferPointer(rebasing: text[start..<end])
  }

  /// Whether the byte after `<` can begin a tag, a comment or a declaration.
  private static func isMarkup(_ byte: UInt8) -> Bool {
    byte == 0x21 || byte == 0x3F || byte == 0x2F || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A)
  }

  /// Whether the bytes begin as gzip, zlib or zstd.
  private static func isCompressed(_ body: UnsafeBufferPointer<UInt8>) -> Bool {
    guard body.count >= 4 else { return false }
    switch (body[0], body[1]) {
    case (0x1F, 0x8B): return body[2] == 8
    case (0x78, 0x01), (0x78, 0x5E), (0x78, 0x9C), (0x78, 0xDA): return true
    case (0x28, 0xB5): return body[2] == 0x2F && body[3] == 0xFD
    default: return false
    }
  }

  /// Whether the bytes begin like a PNG, JPEG, GIF, PDF or zip file.
  private static func isFile(_ body: UnsafeBufferPointer<UInt8>) -> Bool {
    guard body.count >= 4 else { return false }
    switch (body[0], body[1]) {
    case (0x89, 0x50), (0x25, 0x50), (0x47, 0x49), (0x50, 0x4B): return body[2] < 0x50 && body[3] < 0x50
    case (0xFF, 0xD8): return body[2] == 0xFF
    default: return false
    }
  }

  /// Whether the bytes begin with a byte order mark of UTF-16, or are UTF-16 text without this mark.
  private static func isUTF16(_ body: UnsafeBufferPointer<UInt8>) -> Bool {
    guard body.count >= 4 else { return false }
    if (body[0] == 0xFF && body[1] == 0xFE) || (body[0] == 0xFE && body[1] == 0xFF) { return true }
    return isUTF16(body, high: 0) || isUTF16(body, high: 1)
  }

  /// Whether the bytes are text in characters of two bytes. The text must have no control character, and it must have
  /// many characters that are frequent only in text. Each of these amounts is enough: a sixteenth of the characters,
  /// and at least six, are Latin-1; in a short text, a quarter, and at least three, are Latin-1; three quarters are
  /// below U+1000, such as Greek, Cyrillic or Arabic. With lower limits, the bytes of a short licence could look like
  /// text by chance.
  /// - Parameter high: 0 if the first byte of each character is the high byte; otherwise 1.
  private static func isUTF16(_ body: UnsafeBufferPointer<UInt8>, high: Int) -> Bool {
    let count = body.count / 2
    var (latin, others) = (0, 0)
    for at in 0..<count {
      let (upper, lower) = (body[2 * at + high], body[2 * at + 1 - high])
      if upper == 0 {
        if lower < 0x80 && isOther(lower) { return false }
        latin += 1
      } else if upper < 0x10 {
        others += 1
      }
    }
    let least = max(3, min(count / 4, max(6, count / 16)))
    return latin >= least || (count >= 8 && latin + others >= count - count / 4)
  }

  /// Whether the byte is neither a printable ASCII character nor white space.
  private static func isOther(_ byte: UInt8) -> Bool {
    byte >= 0x7F || (byte < 0x20 && !isXMLBlank(byte) && byte != 0x0C)
  }

  /// Whether the bytes are text. Without control characters the bytes count as text if `media` is not `other`, if they
  /// are UTF-8, or if at most a quarter of them is not ASCII. With a few control characters they count as text if they
  /// are UTF-8, or if almost all of them are printable ASCII.
  private static func isText(_ body: UnsafeBufferPointer<UInt8>, _ media: MediaType) -> Bool {
    var (controls, high) = (0, 0)
    for byte in body where isOther(byte) {
      if byte <= 0x7F { controls += 1 } else { high += 1 }
    }
    if controls > body.count / 8 { return false }
    let isMostlyASCII = controls == 0 ? media != .other || high <= body.count / 4 : controls + high <= body.count / 6
    return isMostlyASCII || UTF8Text.isValid(body)
  }

  /// Whether the bytes are a CKC as Apple specifies it: version 1, 20 bytes, the length of the payload, the payload.
  /// White space may follow.
  private static func isCKC(_ body: UnsafeBufferPointer<UInt8>) -> Bool {
    guard body.count > 28, isVersion1(body) else { return false }
    let end = body[24..<28].reduce(0) { $0 << 8 | Int($1) } + 28
    return end <= body.count && body[end...].allSatisfy(isXMLBlank)
  }

  private static func isVersion1(_ body: UnsafeBufferPointer<UInt8>) -> Bool {
    body.count >= 4 && body[0] == 0 && body[1] == 0 && body[2] == 0 && body[3] == 1
  }

  /// Whether the bytes begin like a CKC or like Widevine's SignedMessage.
  private static func beginsLikeLicense(_ body: UnsafeBufferPointer<UInt8>) -> Bool {
    isVersion1(body) || beginsLikeMessage(body)
  }

  private static func beginsLikeMessage(_ body: UnsafeBufferPointer<UInt8>) -> Bool {
    body.count > 4 && body[0] == 0x08 && body[1] < 0x80 && body[2] == 0x12
  }

  /// Whether the bytes are a protobuf message with a number in field 1 and bytes in field 2, as Widevine's
  /// SignedMessage.
  static func isProtobuf(_ body: UnsafeBufferPointer<UInt8>) -> Bool {
    guard beginsLikeMessage(body) else { return false }
    var at = 0
    func number() -> Int? {
      var (value, shift) = (0, 0)
      while at < body.count, shift < 63 {
        let byte = body[at]
        at += 1
        value |= Int(byte & 0x7F) << shift
        if byte < 0x80 { return value }
        shift += 7
      }
      return nil
    }
    while at < body.count {
      guard let tag = number() else { return false }
      switch tag & 7 {
      case 0:
        // A 64-bit number may have ten bytes, and `number` fails at the tenth. Skip this byte.
        if number() == nil { at += 1 }
      case 1: at += 8
      case 2:
        guard let size = number(), size <= body.count - at else { return false }
        at += size
      case 5: at += 4
      default: return false
      }
    }
    return at == body.count
  }
}
