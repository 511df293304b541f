package import UsherCore

extension SEESRequest {
  package enum Refusal: Error, Equatable, Sendable {
    case notJSON
    /// The reply has another message id than the request. The request fails, and the library does not use the reply's
    /// URL.
    case otherMessage
    /// The `version` of the reply's format is higher than the library knows, or is not a number.
    case otherVersion
    /// The server refused. The code is 0 if the reply has no number.
    case denied(code: Int64, message: String)
    /// The server allowed playback, but gave no usable URL.
    case noTokenURL
  }

  /// Reads the token URL from the body of the reply. The body is JSON, or a URI list (RFC 2483), of which the first URI
  /// counts. The JSON of some servers has no message id.
  package func tokenURL(
    in body: UnsafeBufferPointer<UInt8>, hiding secrets: ReplySecrets
  ) throws(Refusal) -> Secret {
    guard let root = JSONDocument.parse(body)?.root, root.isObject else {
      guard let url = firstURI(body) else { throw .notJSON }
      return url
    }
    if let id = root.member("messageID"), id.withString({ equalIgnoringCase($0, messageID.text) }) != true {
      throw .otherMessage
    }
    if let version = root.member("version"), (version.integer ?? .max) > SEESRequest.version { throw .otherVersion }
    guard root.member("isAllowed")?.bool == true else {
      let hidden = secrets.all()
      root.member("epTokenURL")?.withString { hidden.addURL($0) }
      throw .denied(
        code: root.member("error")?.serviceCode ?? 0,
        message: root.member("errorText")?.spoken(hiding: hidden) ?? "")
    }
    guard let url = root.member("epTokenURL")?.withString({ usable($0) }) ?? nil else { throw .noTokenURL }
    return url
  }

  private func firstURI(_ body: UnsafeBufferPointer<UInt8>) -> Secret? {
    let isBlank: (UInt8) -> Bool = { $0 <= 0x20 }
    for line in body.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) where line.first != 0x23 {
      guard let start = line.firstIndex(where: { !isBlank($0) }), let end = line.lastIndex(where: { !isBlank($0) })
      else { continue }
      let text = UnsafeBufferPointer(rebasing: line[start...end])
      return (try? AllowList.target(of: text)) == nil ? nil : usable(text)
    }
    return nil
  }

  private func usable(_ url: UnsafeBufferPointer<UInt8>) -> Secret? {
    url.count <= TokenURL.mostBytes && url.allSatisfy { $0 > 0x20 && $0 < 0x7F } && !url.isEmpty ? Secret(url) : nil
  }
}

extension ExpressPlayError {
  /// Reads the error from a JSON value, or from the first element of a JSON array; the error may be in an object inside
  /// this value. In any other text, such as a web page, looks only for the error numbers that ExpressPlay has
  /// published.
  package static func read(
    _ body: UnsafeBufferPointer<UInt8>, hiding secrets: ReplySecrets
  ) -> ExpressPlayError {
    guard let root = JSONDocument.parse(body)?.root, !root.isNumber else {
      return ExpressPlayError(code: published(body), message: "")
    }
    let value = (root.arrayCount ?? 0) > 0 ? root.element(0) ?? root : root
    let inner = value.member("error").flatMap { $0.isObject ? $0 : nil }
    return ExpressPlayError(
      code: number(value) ?? inner.flatMap { number($0) } ?? 0, message: value.words(hiding: secrets.all()) ?? "")
  }

  /// Returns the first published number that is a separate word in a text, as in "Error -2002"; 0 if there is none.
  private static func published(_ text: UnsafeBufferPointer<UInt8>) -> Int64 {
    var at = 0
    while text.count - at >= 5 {
      if text[at] == 0x2D, at == 0 || !isWord(text[at - 1]), text.count - at == 5 || !isWord(text[at + 5]),
        text[(at + 1)...(at + 4)].allSatisfy(isDigit)
      {
        let code = text[(at + 1)...(at + 4)].reduce(Int64(0)) { $0 * 10 - Int64($1 & 15) }
        if meaning(of: code) != nil { return code }
      }
      at += 1
    }
    return 0
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    isDigit(byte) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || byte == 0x5F || byte == 0x2D || byte >= 0x80
  }

  private static func number(_ value: JSONValue) -> Int64? {
    value.code("errorCode") ?? value.code("code") ?? value.code("error")
  }
}
