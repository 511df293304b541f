internal import UsherCore

extension ReplyDecoder {
  /// The certificate in a server's answer: the DER bytes themselves (which begin with 30 hex), or wrapped in PEM, in base64, or in base64 in JSON. What is none
  /// of these is passed on as it is.
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
    if let start = firstIndex(of: begin, in: text), let end = firstIndex(of: Array("-----END".utf8), in: text, from: start + begin.count) {
      inner = text[(start + begin.count)..<end]
    }
    guard let der = Base64.decode(UnsafeBufferPointer(rebasing: inner)), der.count > 0, der.withBytes({ $0[0] == 0x30 }) else { return nil }
    return der
  }
}
