internal import UsherCore

enum CertificateDecoding {
  case success(Secret)
  case failure(WireFailure)
}

extension ReplyDecoder {
  /// Reads the certificate in a reply: DER, or DER as PEM, as base64, or as base64 in JSON. Binary data of another form
  /// is a certificate too (Widevine's service certificate is protobuf). The delegate keeps the certificate for all
  /// playbacks, so this function must not return a sign-in page, or DER whose end is missing.
  static func certificate(_ response: HTTPResponse, hiding secrets: ReplySecrets) -> CertificateDecoding {
    if let failure = denial(response, hiding: secrets) { return .failure(failure) }
    return response.body.withBytes { body in
      let root = JSONDocument.parse(body)?.root
      do throws(BodyFailure) { return .success(try certificate(response, body, root)) } catch {
        return .failure(
          root.flatMap { spokenDenial($0, response, hiding: secrets) } ?? unreadable(response, error.words))
      }
    }
  }

  private static func certificate(
    _ response: HTTPResponse, _ body: UnsafeBufferPointer<UInt8>, _ root: JSONValue?
  ) throws(BodyFailure) -> Secret {
    if isDER(body) { return response.body }
    if let root, root.isObject {
      let member = root.member("certificate") ?? root.member("cert")
      guard let found = member?.withString({ wrapped($0) }) ?? nil else { throw .noCertificate }
      return found
    }
    if let failure = BodyFailure.ofBinary(body, response.media) {
      guard let found = wrapped(BodyFailure.withoutMark(body)) else { throw failure }
      return found
    }
    if body.first == 0x30 { throw .notWhole }
    return response.body
  }

  private static func wrapped(_ text: UnsafeBufferPointer<UInt8>) -> Secret? {
    let begin = Array("-----BEGIN CERTIFICATE-----".utf8)
    var inner = text[...]
    if let start = firstIndex(of: begin, in: text),
      let end = firstIndex(of: Array("-----END".utf8), in: text, from: start + begin.count)
    {
      inner = text[(start + begin.count)..<end]
    }
    let found = Base64.decode(UnsafeBufferPointer(rebasing: inner))
    return found.flatMap { $0.withBytes { isDER($0) || BodyFailure.isProtobuf($0) } ? $0 : nil }
  }

  /// Whether the bytes are one or more whole DER SEQUENCEs. White space or zeros may follow.
  private static func isDER(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    var rest = bytes
    while let size = sizeOfDER(rest), size <= rest.count {
      rest = UnsafeBufferPointer(rebasing: rest[size...])
      if rest.first != 0x30 { return rest.allSatisfy { $0 == 0 || isXMLBlank($0) } }
    }
    return false
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
