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
        if keySystem == .playReady, failure.message.isEmpty {
          failure.message = response.body.withBytes { words(PlayReadyReply($0), secrets) }
        }
        return .failure(failure)
      }
      let decoding: LicenseDecoding = response.body.withBytes { body in
        switch keySystem {
        case .fairPlay: return fairPlay(response, body, names, hiding: secrets)
        case .widevine: return widevine(response, body, names, hiding: secrets)
        case .playReady: return playReady(response, body, names, hiding: secrets)
        case .clearKey: return clearKey(response, body, names, hiding: secrets)
        }
      }
      return withHeader(decoding, response, names)
    }
  }

  /// Returns the session fields of a reply in which the library found no licence; a hook may still find the licence.
  static func sessionFields(_ response: HTTPResponse, _ names: SessionFieldNames) -> SessionFields {
    var found = response.body.withBytes { body in
      JSONDocument.parse(body).map { fields($0.root, names) } ?? fields(PlayReadyReply(body), names)
    }
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

  private static func fields(_ xml: PlayReadyReply, _ names: SessionFieldNames) -> SessionFields {
    xml.customData?.withBytes { JSONDocument.parse($0).map { fields($0.root, names) } } ?? SessionFields()
  }

  /// The failure of a JSON reply without a licence: the server's refusal if it says one.
  private static func noLicense(
    _ root: JSONValue, _ response: HTTPResponse, _ names: SessionFieldNames, _ secrets: ReplySecrets, _ message: String
  ) -> LicenseDecoding {
    .failure(spokenDenial(root, response, names, hiding: secrets) ?? unreadable(response, message))
  }

  /// Reads a FairPlay reply: the CKC in any of the forms that key servers use.
  private static func fairPlay(
    _ response: HTTPResponse, _ body: UnsafeBufferPointer<UInt8>, _ names: SessionFieldNames,
    hiding secrets: ReplySecrets
  ) -> LicenseDecoding {
    do throws(BodyFailure) {
      let document = JSONDocument.parse(body)
      guard let root = document?.root, root.isObject else {
        return .success(LicenseReply(data: try FPSResponseFormat().ckc(body, response.media), fields: SessionFields()))
      }
      do throws(BodyFailure) {
        return .success(LicenseReply(data: try FPSResponseFormat().member(root), fields: fields(root, names)))
      } catch {
        return noLicense(root, response, names, secrets, error.words)
      }
    } catch {
      return .failure(unreadable(response, error.words))
    }
  }

  /// Reads a Widevine reply: JSON with `license`, which is an array of base64 texts in licence replies and one base64
  /// text in renewals. A reply that is not JSON is the licence itself.
  private static func widevine(
    _ response: HTTPResponse, _ body: UnsafeBufferPointer<UInt8>, _ names: SessionFieldNames,
    hiding secrets: ReplySecrets
  ) -> LicenseDecoding {
    guard let document = JSONDocument.parse(body), document.root.isObject else {
      if let failure = BodyFailure.ofBinary(body, response.media) {
        return .failure(unreadable(response, failure.words))
      }
      return .success(LicenseReply(data: response.body, fields: SessionFields()))
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
    _ response: HTTPResponse, _ body: UnsafeBufferPointer<UInt8>, _ names: SessionFieldNames,
    hiding secrets: ReplySecrets
  ) -> LicenseDecoding {
    let reply = PlayReadyReply(BodyFailure.withoutMark(body))
    switch reply.kind {
    case .license:
      return .success(LicenseReply(data: withoutMark(response.body), fields: fields(reply, names)))
    case .fault:
      return .failure(WireFailure(.refused, httpStatus: response.status, message: words(reply, secrets)))
    case .other:
      let failure = unreadable(response, body, "the answer is not a PlayReady licence")
      guard let document = JSONDocument.parse(body) else { return .failure(failure) }
      return .failure(spokenDenial(document.root, response, names, hiding: secrets) ?? failure)
    }
  }

  /// The words of a SOAP fault, without secrets.
  @inline(never)
  private static func words(_ reply: PlayReadyReply, _ secrets: ReplySecrets) -> String {
    reply.faultWords?.withBytes { secrets.all().cleaned($0) } ?? ""
  }

  @inline(never)
  private static func withoutMark(_ body: Secret) -> Secret {
    body.withBytes { bytes in
      let text = BodyFailure.withoutMark(bytes)
      return text.count == bytes.count ? body : Secret(text)
    }
  }

  private static func clearKey(
    _ response: HTTPResponse, _ body: UnsafeBufferPointer<UInt8>, _ names: SessionFieldNames,
    hiding secrets: ReplySecrets
  ) -> LicenseDecoding {
    guard let document = JSONDocument.parse(body) else { return .failure(unreadable(response, body, notJSON)) }
    guard let keys = document.root.member("keys"), let count = keys.arrayCount, count > 0,
      (0..<count).allSatisfy({ keys.element($0)?.member("k")?.isString == true })
    else {
      return noLicense(document.root, response, names, secrets, "the answer is not a Clear Key licence")
    }
    return .success(LicenseReply(data: withoutMark(response.body), fields: fields(document.root, names)))
  }
}
