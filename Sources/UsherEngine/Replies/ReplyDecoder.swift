internal import UsherCore

/// Reads replies: session fields, licences, and the reasons of refusals.
enum ReplyDecoder {
  /// Reads a reply of the SSM to a set-up, a heartbeat or a teardown.
  static func ssm(
    _ outcome: HTTPOutcome, _ call: SSMSession.Call, hiding secrets: ReplySecrets
  ) -> SSMOutcome {
    switch outcome {
    case .failure(let failure): return .failure(failure)
    case .response(let response):
      if var failure = denial(response, hiding: secrets) {
        if call == .setup { failure.token = sessionFields(response, standardNames).token }
        return .failure(failure)
      }
      return response.body.withBytes { body in
        var found = SessionFields()
        if let document = JSONDocument.parse(body) {
          if call != .teardown { found = fields(document.root) }
          if found.token == nil, let failure = spokenDenial(document.root, response, hiding: secrets) {
            return .failure(failure)
          }
          // The session only knows that there is no token. The server's message says more, so report the message.
          if call == .setup, found.token == nil {
            let words = message(document.root, response, standardNames, secrets)
            if !words.isEmpty { return .failure(unreadable(response, words)) }
          }
          // Report an unusable heartbeat reply here. If the reply to a set-up is unusable in the same way, the session
          // reports that, with other messages.
          if call == .heartbeat, !found.isObject || found.isTokenUnusable {
            return .failure(unreadable(response, unusable))
          }
        } else if !BodyFailure.trimmed(body).isEmpty, call != .teardown || !isAcknowledgement(body, response.media) {
          return .failure(unreadable(response, BodyFailure.of(body, response.media, otherwise: .notJSON).words))
        }
        found.httpStatus = response.status
        found.mayBeCut = response.mayBeCut
        return .success(found)
      }
    }
  }

  /// Whether the body of a teardown reply is a short ASCII text, such as `OK`. Servers that send no JSON confirm a
  /// teardown with such a text; a page or a long text comes from another server.
  private static func isAcknowledgement(_ body: UnsafeBufferPointer<UInt8>, _ media: MediaType) -> Bool {
    let text = BodyFailure.trimmed(body)
    guard let first = text.first, text.count <= 64, first != 0x7B, first != 0x5B, first != 0x3C else { return false }
    return text.allSatisfy { $0 > 0x20 && $0 < 0x7F || $0 == 0x20 && media != .html }
  }

  /// Returns the failure that a reply with an error status describes, with the server's code and message; nil for a
  /// status of 2xx.
  static func denial(
    _ response: HTTPResponse, _ names: SessionFieldNames = standardNames,
    hiding secrets: ReplySecrets
  ) -> WireFailure? {
    if isSuccess(response) { return nil }
    if response.status >= 300 && response.status < 400 {
      let target = response.location.map { redirect(to: $0, secrets) } ?? ""
      return WireFailure(.redirect, httpStatus: response.status, message: target)
    }
    var failure = WireFailure(
      .http, httpStatus: response.status, retryAfter: response.retryAfter,
      mayHaveTakenEffect: response.status == 502 || response.status == 504)
    response.body.withBytes { body in
      guard let document = JSONDocument.parse(body) else {
        failure.message = words(PlayReadyReply(body), secrets)
        return
      }
      if let code = document.root.refusalCode {
        failure.serviceCode = code
        failure.status = .refused
      }
      failure.message = message(document.root, response, names, secrets)
    }
    return failure
  }

  /// Returns the refusal in a reply whose HTTP status is a success: the code in the body counts, and not the status.
  static func spokenDenial(
    _ root: JSONValue, _ response: HTTPResponse, _ names: SessionFieldNames = standardNames,
    hiding secrets: ReplySecrets
  ) -> WireFailure? {
    guard let code = root.refusalCode else { return nil }
    return WireFailure(
      .refused, httpStatus: response.status, serviceCode: code,
      message: message(root, response, names, secrets))
  }

  /// Returns a text with the URL of a redirect, without the query and without secrets. The text is empty if the URL may
  /// contain a password, or if the URL has nothing before its query.
  private static func redirect(to location: Secret, _ secrets: ReplySecrets) -> String {
    let start: StaticString = "the server redirects to "
    let text = location.withBytes { url in
      let path = url.prefix { $0 != 0x3F && $0 != 0x23 }
      if path.contains(0x40) || !path.contains(where: { $0 > 0x20 }) { return Secret([]) }
      return start.withUTF8Buffer { start in
        Secret(count: start.count + path.count) { target in
          copy(start, into: target)
          copy(UnsafeBufferPointer(rebasing: path), into: target, at: start.count)
        }
      }
    }
    return text.withBytes { secrets.all().cleaned($0) }
  }

  static func isSuccess(_ response: HTTPResponse) -> Bool { response.status >= 200 && response.status < 300 }

  /// Returns the server's message without any secret. The token that this reply brings is a secret too.
  private static func message(
    _ root: JSONValue, _ response: HTTPResponse, _ names: SessionFieldNames, _ secrets: ReplySecrets
  ) -> String {
    let hidden = secrets.all()
    if let token = root.member(at: names.token)?.withString({ Secret($0) }) { hidden.add(token) }
    if let token = response.header { hidden.add(token) }
    return root.words(hiding: hidden) ?? ""
  }

  static func fields(_ root: JSONValue, _ names: SessionFieldNames = standardNames) -> SessionFields {
    var fields = SessionFields()
    fields.isObject = root.isObject
    if let value = root.member(at: names.token) {
      fields.token = token(value)
      fields.isTokenUnusable = fields.token == nil && value.withString { $0.count } != 0
    }
    fields.enforced = root.member(at: names.enforced)?.flag
    if let period = root.member(at: names.period) {
      if let number = period.number {
        fields.period = .number(number)
      } else if let number = period.numberInText {
        fields.period = .text(number)
      } else {
        fields.period = .wrongType
      }
    }
    return fields
  }

  /// Returns the session token; nil if one of its characters is not allowed in a header.
  private static func token(_ value: JSONValue) -> Secret? {
    value.withString { isHeaderSafe($0) ? Secret($0) : nil } ?? nil
  }

  static let unusable = "the answer has no usable session token"

  private static let standardNames = SessionFieldNames()

  @inline(never)
  static func unreadable(_ response: HTTPResponse, _ message: String) -> WireFailure {
    WireFailure(.protocolError, httpStatus: response.status, message: message, mayHaveTakenEffect: true)
  }
}
