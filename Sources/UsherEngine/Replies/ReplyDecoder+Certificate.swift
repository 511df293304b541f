internal import UsherCore

extension ReplyDecoder {
  /// Finds the certificate in a reply: DER (which begins with the byte 0x30), or DER as PEM, as base64, or as base64 in
  /// JSON. Returns any other reply unchanged.
  static func certificate(_ body: Secret) -> Secret {
    body.withBytes { bytes -> Secret? in
      if bytes.first == 0x30 { return nil }
      if let root = JSONDocument.parse(bytes)?.root, root.isObject {
        let member = root.member("certificate") ?? root.member("cert")
        return member?.withString { wrapped($0) } ?? nil
      }
      return wrapped(bytes)
    } ?? body
  }

  private static func wrapped(_ text: UnsafeBufferPointer<UInt8>) -> Secret? {
    let begin = Array("-----BEGIN CERTIFICATE-----".utf8)
    var inner = text[...]
    if let start = firstIndex(of: begin, in: text),
      let end = firstIndex(of: Array("-----END".utf8), in: text, from: start + begin.count)
    {
      inner = text[(start + begin.count)..<end]
    }
    guard let der = Base64.decode(UnsafeBufferPointer(rebasing: inner)), der.count > 0, der.withBytes({ $0[0] == 0x30 })
    else { return nil }
    return der
  }

  /// Returns the reason why the reply cannot be a certificate; nil if it may be one. Only the server and the CDM know
  /// the form of a certificate. But the delegate keeps the reply for all playbacks, so it must not keep a sign-in page,
  /// or DER whose end is missing.
  static func notACertificate(
    _ response: HTTPResponse, hiding secrets: ReplySecrets
  ) -> WireFailure? {
    if let failure = denial(response, hiding: secrets) { return failure }
    return response.body.withBytes { body in
      if isBlank(body) { return unreadable(response, "the certificate is empty") }
      if isHTML(body) { return unreadable(response, "the answer is a web page") }
      if let whole = sizeOfDER(body), whole > body.count {
        return unreadable(response, "the certificate lacks its end")
      }
      return nil
    }
  }

  /// Returns the length that a DER SEQUENCE declares, including the header; nil if the bytes are not a SEQUENCE.
  private static func sizeOfDER(_ bytes: UnsafeBufferPointer<UInt8>) -> Int? {
    guard bytes.count >= 2, bytes[0] == 0x30 else { return nil }
    let digits = Int(bytes[1] & 0x7F)
    if bytes[1] < 0x80 { return 2 + digits }
    guard digits >= 1, digits <= 3, bytes.count >= 2 + digits else { return nil }
    return bytes[2..<(2 + digits)].reduce(0) { $0 << 8 | Int($1) } + 2 + digits
  }
}
