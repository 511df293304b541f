/// Identifies one request of one playback. A reply is late if the session no longer waits for the reply to the request
/// with this id.
package typealias RequestID = UInt64

/// The period field of a reply, in the form in which the reply has it.
package enum PeriodField: Equatable, Sendable {
  case missing
  /// Seconds.
  case number(Double)
  /// Seconds, in a string.
  case text(Double)
  case wrongType
}

/// The fields of a successful reply that describe the session.
package struct SessionFields: Sendable {
  package var httpStatus: Int32 = 200
  package var isObject = false
  /// The session token; nil if the reply has no token or an empty one.
  package var token: Secret?
  /// Whether the reply has a session token that is not a string, or that has characters which an HTTP header cannot
  /// have.
  package var isTokenUnusable = false
  package var period = PeriodField.missing
  /// The value of `sessionDrmEnforced`; nil if the reply does not have it.
  package var enforced: Bool?
  /// Whether the reply is empty and the connection may have ended before the body of the reply arrived.
  package var mayBeCut = false

  package init() {}
}

/// Why a request failed.
package struct WireFailure: Sendable {
  package var status: Status
  package var httpStatus: Int32
  package var serviceCode: Int64
  package var message: String
  /// How long the server asks the library to wait before a retry (`Retry-After`); nil: the server did not ask.
  package var retryAfter: Milliseconds?
  /// Why there was no secure connection; `none` if this is not the reason of the failure.
  package var tlsFault = TLSFault.none
  /// Whether the server may have acted on the request, although no good reply arrived.
  package var mayHaveTakenEffect: Bool
  /// Whether the server closed a kept connection instead of replying. A retry over a new connection need not wait.
  package var endedKeptConnection = false
  /// Who caused the failure; nil: the server to which the library sent the request. Only customer SSM sets it: to
  /// `local` if a callback of the host failed, or to the server that the host names.
  package var origin: Origin?
  /// The session token of a reply that is otherwise unusable: the session exists, so the library must tear it down.
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

  /// Whether a retry may help: the reply was missing or unusable (a redirect, too large, unreadable), the status was
  /// 429, 5xx or unknown, or a callback of the host failed. If a reply has a service code, only the statuses 429 and
  /// 5xx are transient.
  package var isTransient: Bool {
    if serviceCode != 0 { return httpStatus >= 500 || httpStatus == 429 }
    switch status {
    case .transport, .tls, .timeout, .protocolError, .tooLarge, .callback, .declined, .system, .redirect: return true
    case .http: return httpStatus >= 500 || httpStatus == 429 || httpStatus < 0
    default: return false
    }
  }

  /// Whether the same teardown would fail again; see `isFinalReply`.
  package var isFinal: Bool { isFinalReply(httpStatus: httpStatus, serviceCode: serviceCode) }

  /// Whether the server said that the session token is unknown, ended or expired.
  package var isUnknownSession: Bool { serviceCode == SSMCode.invalidToken }

  package func error(_ origin: Origin, _ operation: Operation) -> UsherError {
    let error = UsherError(
      status, origin: self.origin ?? origin, operation: operation, httpStatus: httpStatus, serviceCode: serviceCode,
      message: message)
    return error.adding(tlsFault, retryAfter: retryAfter ?? 0)
  }
}

/// The SSM error codes that the library acts on.
package enum SSMCode {
  package static let invalidToken: Int64 = 1006
  package static let tooManySessions: Int64 = 1007
}

package enum SSMOutcome: Sendable {
  case success(SessionFields)
  case failure(WireFailure)

  /// The session token of the reply, which an error reply may have too.
  var token: Secret? {
    switch self {
    case .success(let fields): return fields.token
    case .failure(let failure): return failure.token
    }
  }
}

/// Whether a teardown that failed with this reply would fail again. It may succeed later if there was no reply, and
/// after redirects and pages with 200 (a network that asks for a sign-in), if a proxy asks for a password (407), if the
/// request took too long (408) or came too early (425), after too many requests (429), and after faults of the server.
/// A service code in a reply with 200 is a refusal. `request_result()` of the guardian decides in the same way, except
/// that it reads no body.
package func isFinalReply(httpStatus: Int32, serviceCode: Int64) -> Bool {
  switch httpStatus {
  case 407, 408, 425, 429: return false
  case 400..<500: return true
  default: return serviceCode != 0 && httpStatus < 400
  }
}
