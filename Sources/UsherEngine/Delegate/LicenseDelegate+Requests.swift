internal import UsherCore

extension LicenseDelegate {
  /// - Parameter token: for set-up, the content token; for any other call, the session token.
  func ssmRequest(_ call: SSMSession.Call, token: Secret) -> HTTPRequest? {
    let endpoint: Endpoint?
    switch call {
    case .setup: endpoint = endpoints.setup
    case .heartbeat: endpoint = endpoints.heartbeat
    case .teardown: endpoint = endpoints.teardown
    }
    guard let endpoint, let authorisation = authorisation(token, nil) else { return nil }
    let body = call == .setup ? setupBody : keepAliveBody
    let headers = [authorisation, Self.sendsJSON, Self.acceptsJSON]
    return HTTPRequest(
      method: .post, endpoint: endpoint, headers: extraHeaders.isEmpty ? headers : headers + extraHeaders, body: body,
      isUrgent: call != .setup, tokens: [token], opensSession: call == .setup)
  }

  /// Makes the licence request that the library would send without hooks; hooks may replace parts of it.
  /// - Parameters:
  ///   - isRaw: whether the bodies of request and reply are binary instead of JSON (Widevine).
  ///   - isRenewal: whether the request renews a licence. If the delegate has an SSM, a Widevine renewal goes to the
  ///     SSM server. Every other renewal goes to the licence server, with `renew=true`.
  func licenseDraft(
    _ keySystem: KeySystem, payload: Secret, content: Secret?, session: Secret?, isRenewal: Bool, isRaw: Bool
  ) -> LicenseDraft {
    var endpoint = isRenewal ? endpoints.licenseRenewal : endpoints.license
    var headers: [Secret] = []
    var body = payload
    switch keySystem {
    case .fairPlay:
      headers = [Self.line("Content-Type: application/octet-stream"), Self.line("Accept: application/json")]
    case .playReady:
      headers = [
        Self.line("Content-Type: text/xml; charset=utf-8"),
        Self.line("SOAPAction: \"http://schemas.microsoft.com/DRM/2007/03/protocols/AcquireLicense\"")
      ]
      if isRenewal { headers.append(Self.line("Accept: application/json")) }
    case .clearKey: headers = [Self.line("Content-Type: application/json"), Self.line("Accept: application/json")]
    case .widevine:
      if isRenewal, policy.hasSSM { endpoint = endpoints.widevineRenewal }
      if isRaw && !isRenewal {
        headers = [Self.line("Content-Type: application/octet-stream"), Self.line("Accept: application/octet-stream")]
      } else {
        headers = [Self.line("Content-Type: application/json"), Self.line("Accept: application/json")]
        body = Self.challenge(payload)
      }
    }
    return LicenseDraft(
      endpoint: endpoint, authorisation: licenseAuthorisation(content, session), headers: headers + extraHeaders,
      body: body, isUrgent: isRenewal,
      tokens: [content, session].compactMap { $0 }, replyHeader: fields.header)
  }

  /// Returns the token header, and the headers that the host set.
  func licenseAuthorisation(_ content: Secret?, _ session: Secret?) -> [Secret] {
    let authorisation = authorisation(content, session)
    let set = licenseHeaders.filter { authorisation == nil || !equalIgnoringCase($0.name, tokenHeader.dropLast(2)) }.map
    { $0.line }
    return (authorisation.map { [$0] } ?? []) + set
  }

  /// Returns the body {"challenge":"<base64>"} with the payload in Base64.
  private static func challenge(_ payload: Secret) -> Secret {
    let prefix: StaticString = "{\"challenge\":\""
    let suffix: StaticString = "\"}"
    let textCount = Base64.encodedCount(payload.count, padded: true)
    return Secret(count: prefix.utf8CodeUnitCount + textCount + suffix.utf8CodeUnitCount) { target in
      prefix.withUTF8Buffer { copy($0, into: target) }
      let start = prefix.utf8CodeUnitCount
      payload.withBytes {
        Base64.encode($0, into: UnsafeMutableBufferPointer(rebasing: target[start..<(start + textCount)]))
      }
      suffix.withUTF8Buffer { copy($0, into: target, at: start + textCount) }
    }
  }
}

/// The parts of a licence request that has not been sent yet.
struct LicenseDraft {
  var endpoint: Endpoint?
  /// The headers that the headers hook replaces: the tokens, and headers that the host set.
  var authorisation: [Secret]
  let headers: [Secret]
  var body: Secret
  let isUrgent: Bool
  var tokens: [Secret]
  let replyHeader: [UInt8]?

  /// The request; nil if it has no URL.
  var request: HTTPRequest? {
    guard let endpoint else { return nil }
    return HTTPRequest(
      method: .post, endpoint: endpoint, headers: authorisation + headers, body: body, isUrgent: isUrgent,
      tokens: tokens, replyHeader: replyHeader)
  }
}
