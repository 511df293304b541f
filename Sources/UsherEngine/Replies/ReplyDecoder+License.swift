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
  static func license(
    _ outcome: HTTPOutcome, keySystem: KeySystem, names: SessionFieldNames = SessionFieldNames(),
    hiding secrets: ReplySecrets
  ) -> LicenseDecoding {
    switch outcome {
    case .failure(let failure): return .failure(failure)
    case .response(let response):
      if var failure = denial(response, names, hiding: secrets) {
        failure.token = sessionFields(response, names).token
        return .failure(failure)
      }
      let decoding: LicenseDecoding = response.body.withBytes { body in
        let allowance = keySystem == .clearKey ? ClearKeyLicense.allowance : JSONCost.allowance
        let document = JSONDocument.parse(body, allowance: allowance)
        do throws(BodyFailure) {
          return .success(try read(keySystem, response, body, document?.root, names))
        } catch {
          if let root = document?.root, let failure = spokenDenial(root, response, names, hiding: secrets) {
            return .failure(failure)
          }
          var failure = unreadable(response, error.words)
          if error == .fault {
            failure = WireFailure(
              .refused, httpStatus: response.status, message: words(PlayReadyReply(body), secrets))
          }
          return .failure(failure)
        }
      }
      return withHeader(decoding, response, names)
    }
  }

  /// Returns the session fields of a reply in which the library found no licence; a hook may still find the licence.
  static func sessionFields(_ response: HTTPResponse, _ names: SessionFieldNames) -> SessionFields {
    var found = response.body.withBytes { body in
      if let document = JSONDocument.parse(body) { return fields(document.root, names) }
      var found = fields(PlayReadyReply(body), names)
      // The body begins like a JSON object but is not valid JSON, so its end may be missing. The missing part may have
      // had a token; therefore the token counts as unusable.
      if BodyFailure.trimmed(body).first == 0x7B { found.isTokenUnusable = true }
      return found
    }
    if found.token == nil { found.token = headerToken(response) }
    return found
  }

  private static func headerToken(_ response: HTTPResponse) -> Secret? {
    response.header.flatMap { $0.withBytes(isHeaderSafe) ? $0 : nil }
  }

  /// If the body has no session token, takes the token from the reply's header. This happens even if the reply has no
  /// usable licence.
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

  private static func fields(_ xml: PlayReadyReply, _ names: SessionFieldNames) -> SessionFields {
    xml.customData?.withBytes { JSONDocument.parse($0).map { fields($0.root, names) } } ?? SessionFields()
  }

  /// Reads the licence and the session fields in a reply.
  /// - Parameter root: the body as JSON; nil if it is not JSON.
  private static func read(
    _ keySystem: KeySystem, _ response: HTTPResponse, _ body: UnsafeBufferPointer<UInt8>, _ root: JSONValue?,
    _ names: SessionFieldNames
  ) throws(BodyFailure) -> LicenseReply {
    var found = root.map { fields($0, names) } ?? SessionFields()
    let object = root.flatMap { $0.isObject ? $0 : nil }
    let data: Secret
    switch keySystem {
    case .fairPlay:
      let format = FPSResponseFormat()
      if let object { data = try format.member(object) } else { data = try format.ckc(body, response.media) }
    case .widevine: if let object { data = try widevine(object) } else { data = try octets(response, body) }
    case .playReady:
      let reply = PlayReadyReply(BodyFailure.withoutMark(body))
      if reply.kind == .fault { throw .fault }
      guard reply.kind == .license else { throw BodyFailure.of(body, response.media, otherwise: .notPlayReady) }
      data = withoutMark(response.body)
      found = fields(reply, names)
    case .clearKey:
      guard let root else { throw BodyFailure.of(body, response.media, otherwise: .notJSON) }
      guard isClearKey(root) else { throw .notClearKey }
      data = withoutMark(response.body)
    }
    return LicenseReply(data: data, fields: found)
  }

  private static func octets(
    _ response: HTTPResponse, _ body: UnsafeBufferPointer<UInt8>
  ) throws(BodyFailure) -> Secret {
    if let failure = BodyFailure.ofBinary(body, response.media) { throw failure }
    return response.body
  }

  /// Reads the licence in Widevine's JSON: `license`, which is an array of base64 texts in licence replies and one
  /// base64 text in renewals.
  private static func widevine(_ root: JSONValue) throws(BodyFailure) -> Secret {
    if root.refusalCode != nil { throw .noLicense }
    let member = root.member("license")
    let text = (member?.arrayCount ?? 0) > 0 ? member?.element(0) : member
    guard let license = text?.withString({ Base64.decode($0) }) ?? nil, BodyFailure.isBinary(license) else {
      throw .noLicense
    }
    return license
  }

  private static func isClearKey(_ root: JSONValue) -> Bool {
    guard let keys = root.member("keys"), let count = keys.arrayCount, count > 0 else { return false }
    for index in 0..<count where keys.element(index)?.member("k")?.isString != true { return false }
    return true
  }

  /// The words of a SOAP fault, without secrets.
  @inline(never)
  static func words(_ reply: PlayReadyReply, _ secrets: ReplySecrets) -> String {
    reply.faultWords?.withBytes { secrets.all().cleaned($0) } ?? ""
  }

  @inline(never)
  private static func withoutMark(_ body: Secret) -> Secret {
    body.withBytes { bytes in
      let text = BodyFailure.withoutMark(bytes)
      return text.count == bytes.count ? body : Secret(text)
    }
  }
}
