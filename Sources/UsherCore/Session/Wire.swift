/// Names one request of one playback, so that late replies are told apart from awaited ones.
package typealias RequestID = UInt64

/// The period field of a reply as it stood there.
package enum PeriodField: Equatable, Sendable {
  case missing
  /// Seconds.
  case number(Double)
  /// Seconds, in a string.
  case text(Double)
  case wrongType
}

/// What a successful reply said, as far as sessions go.
package struct SessionFields: Sendable {
  package var httpStatus: Int32 = 200
  package var isObject = false
  /// nil where there is none, or an empty one.
  package var token: Secret?
  /// There is one, but it is no string, or cannot stand in a header.
  package var isTokenUnusable = false
  package var period = PeriodField.missing
  /// `sessionDrmEnforced`, where the reply has it.
  package var enforced: Bool?

  package init() {}
}

/// Why a request brought no good reply.
package struct WireFailure: Sendable {
  package var status: Status
  package var httpStatus: Int32
  package var serviceCode: Int64
  package var message: String
  /// What `Retry-After` asked for.
  package var retryAfter: Milliseconds?
  /// The server may have acted on the request although we have no good reply.
  package var mayHaveTakenEffect: Bool
  /// The session token in a reply that was no use otherwise: the slot is ours all the same.
  package var token: Secret?

  @inline(never)
  package init(
    _ status: Status, httpStatus: Int32 = -1, serviceCode: Int64 = 0, message: String = "",
    retryAfter: Milliseconds? = nil,
    mayHaveTakenEffect: Bool = false
  ) {
    self.status = status
    self.httpStatus = httpStatus
    self.serviceCode = serviceCode
    self.message = message
    self.retryAfter = retryAfter
    self.mayHaveTakenEffect = mayHaveTakenEffect
  }

  /// Worth another try: no reply, an unreadable one, 429 or 5xx, a host that did not let it go out; never a service code, whose meaning is final.
  package var isTransient: Bool {
    if serviceCode != 0 { return httpStatus >= 500 || httpStatus == 429 }
    switch status {
    case .transport, .tls, .timeout, .protocolError, .tooLarge, .callback, .declined, .system, .redirect: return true
    case .http: return httpStatus >= 500 || httpStatus == 429
    default: return false
    }
  }

  /// The server calls the session token unknown, killed or expired.
  package var isUnknownSession: Bool { serviceCode == SSMCode.invalidToken }

  package func error(_ origin: Origin, _ operation: Operation) -> UsherError {
    UsherError(
      status, origin: origin, operation: operation, httpStatus: httpStatus, serviceCode: serviceCode, message: message)
  }
}

/// The SSM's codes that decide something.
package enum SSMCode {
  package static let invalidToken: Int64 = 1006
  package static let tooManySessions: Int64 = 1007
}

package enum SSMOutcome: Sendable {
  case success(SessionFields)
  case failure(WireFailure)
}
