internal import UsherCore

/// A licence, and the session fields of its reply.
struct LicenseReply {
  var data: Secret
  var fields: SessionFields
}

enum LicenseDecoding {
  case success(LicenseReply)
  case failure(WireFailure)
}

extension ReplyDecoder {
  /// - Parameter isRaw: whether the request asked for the bare licence instead of JSON.
  static func license(
    _ outcome: HTTPOutcome, keySystem: KeySystem, isRaw: Bool, names: SessionFieldNames = SessionFieldNames(),
    hiding secrets: ReplySecrets
  ) -> LicenseDecoding {
    switch outcome {
    case .failure(let failure): return .failure(failure)
    case .response(let response):
      if let failure = denial(response, names, hiding: secrets) { return .failure(failure) }
      let decoding: LicenseDecoding = response.body.withBytes { body in
        if isBlank(body) { return .failure(unreadable(response, "the licence is empty")) }
        if isHTML(body) { return .failure(unreadable(response, "the answer is a web page")) }
        switch keySystem {
        case .fairPlay: return fairPlay(response, body, names, hiding: secrets)
        case .widevine: return isRaw ? raw(response) : widevine(response, body, names, hiding: secrets)
        case .playReady: return playReady(response, body, names)
        case .clearKey: return clearKey(response, body, names, hiding: secrets)
        }
      }
      return withHeader(decoding, response, names)
    }
  }

  /// Returns the session fields of a reply in which the library found no licence; a hook may still find the licence.
  static func sessionFields(_ response: HTTPResponse, _ names: SessionFieldNames) -> SessionFields {
    var found = response.body.withBytes { JSONDocument.parse($0).map { fields($0.root, names) } ?? SessionFields() }
    if found.token == nil { found.token = headerToken(response) }
    return found
  }

  private static func headerToken(_ response: HTTPResponse) -> Secret? {
    response.header.flatMap { $0.withBytes(isHeaderSafe) ? $0 : nil }
  }

  /// If the body has no session token, takes it from the reply's header. It does so even if the reply has no usable
  /// licence.
  private static func withHeader(
    _ decoding: LicenseDecoding, _ response: HTTPResponse, _ names: SessionFieldNames
  ) -> LicenseDecoding {
    switch decoding {
    case .success(var reply):
      reply.fields.httpStatus = response.status
      if reply.fields.token == nil { reply.fields.token = headerToken(response) }
      return reply.fields.token == nil && reply.fields.isTokenUnusable
        ? .failure(unreadable(response, unusable)) : .success(reply)
    case .failure(var failure):
      failure.token = sessionFields(response, names).token
      return .failure(failure)
    }
  }

  private static func raw(_ response: HTTPResponse) -> LicenseDecoding {
    .success(LicenseReply(data: response.body, fields: SessionFields()))
  }

  /// Reads a FairPlay reply: JSON with `CkcMessage`, or the CKC itself.
  private static func fairPlay(
    _ response: HTTPResponse, _ body: UnsafeBufferPointer<UInt8>, _ names: SessionFieldNames,
    hiding secrets: ReplySecrets
  ) -> LicenseDecoding {
    guard let document = JSONDocument.parse(body), document.root.isObject else {
      return isText(body) ? .failure(unreadable(response, "the answer is not JSON")) : raw(response)
    }
    guard let ckc = document.root.member("CkcMessage")?.withString({ Base64.decode($0) }) ?? nil, ckc.count > 0 else {
      return .failure(
        spokenDenial(document.root, response, names, hiding: secrets)
          ?? unreadable(response, "the answer has no CkcMessage"))
    }
    return .success(LicenseReply(data: ckc, fields: fields(document.root, names)))
  }

  /// Reads a Widevine reply: JSON with `license`, which is an array of base64 texts in licence replies and one base64
  /// text in renewals. A reply that is not JSON is the licence itself.
  private static func widevine(
    _ response: HTTPResponse, _ body: UnsafeBufferPointer<UInt8>, _ names: SessionFieldNames,
    hiding secrets: ReplySecrets
  ) -> LicenseDecoding {
    guard let document = JSONDocument.parse(body), document.root.isObject else {
      return isText(body) ? .failure(unreadable(response, "the answer is not JSON")) : raw(response)
    }
    if let failure = spokenDenial(document.root, response, names, hiding: secrets) { return .failure(failure) }
    let member = document.root.member("license")
    let text = (member?.arrayCount ?? 0) > 0 ? member?.element(0) : member
    guard let license = text?.withString({ Base64.decode($0) }) ?? nil, license.count > 0 else {
      return .failure(unreadable(response, "the answer has no license"))
    }
    return .success(LicenseReply(data: license, fields: fields(document.root, names)))
  }

  /// Reads a PlayReady reply: XML, which the CDM gets unchanged. JSON in the first `CustomData` element may contain the
  /// session token.
  private static func playReady(
    _ response: HTTPResponse, _ body: UnsafeBufferPointer<UInt8>, _ names: SessionFieldNames
  ) -> LicenseDecoding {
    guard firstLetter(body) == 0x3C else { return .failure(unreadable(response, "the answer is not XML")) }
    var found = SessionFields()
    if let text = CustomData.text(in: body) {
      text.withBytes { if let document = JSONDocument.parse($0) { found = fields(document.root, names) } }
    }
    return .success(LicenseReply(data: response.body, fields: found))
  }

  private static func clearKey(
    _ response: HTTPResponse, _ body: UnsafeBufferPointer<UInt8>, _ names: SessionFieldNames,
    hiding secrets: ReplySecrets
  ) -> LicenseDecoding {
    guard let document = JSONDocument.parse(body) else {
      return .failure(unreadable(response, "the answer is not JSON"))
    }
    guard let keys = document.root.member("keys")?.arrayCount, keys > 0 else {
      return .failure(
        spokenDenial(document.root, response, names, hiding: secrets)
          ?? unreadable(response, "the answer is not a Clear Key licence"))
    }
    return .success(LicenseReply(data: response.body, fields: fields(document.root, names)))
  }

  /// Returns whether the bytes are text. Text cannot be a binary licence, because such a licence always has a byte that
  /// text never has.
  private static func isText(_ body: UnsafeBufferPointer<UInt8>) -> Bool {
    body.allSatisfy { ($0 >= 0x20 && $0 < 0x7F) || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
  }
}
