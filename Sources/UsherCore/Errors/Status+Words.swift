extension Status {
  /// The name of the status in the header.
  package var name: StaticString {
    switch self {
    case .ok: return "USHER_OK"
    case .invalidArgument: return "USHER_E_INVALID_ARGUMENT"
    case .invalidHandle: return "USHER_E_INVALID_HANDLE"
    case .closed: return "USHER_E_CLOSED"
    case .replaced: return "USHER_E_REPLACED"
    case .noDelegate: return "USHER_E_NO_DELEGATE"
    case .timeout: return "USHER_E_TIMEOUT"
    case .wouldDeadlock: return "USHER_E_WOULD_DEADLOCK"
    case .forked: return "USHER_E_FORKED"
    case .system: return "USHER_E_SYSTEM"
    case .callback: return "USHER_E_CALLBACK"
    case .invalidCompletion: return "USHER_E_INVALID_COMPLETION"
    case .state: return "USHER_E_STATE"
    case .transport: return "USHER_E_TRANSPORT"
    case .tls: return "USHER_E_TLS"
    case .http: return "USHER_E_HTTP"
    case .refused: return "USHER_E_REFUSED"
    case .limit: return "USHER_E_LIMIT"
    case .protocolError: return "USHER_E_PROTOCOL"
    case .tooLarge: return "USHER_E_TOO_LARGE"
    case .noToken: return "USHER_E_NO_TOKEN"
    case .redirect: return "USHER_E_REDIRECT"
    case .session: return "USHER_E_SESSION"
    case .renewalMissed: return "USHER_E_RENEWAL_MISSED"
    case .declined: return "USHER_E_DECLINED"
    case .full: return "USHER_E_FULL"
    case .notAllowed: return "USHER_E_NOT_ALLOWED"
    }
  }

  /// One line that describes the status.
  package var text: StaticString {
    switch self {
    case .ok: return "done"
    case .invalidArgument: return "an argument is missing, malformed or out of range"
    case .invalidHandle: return "the handle was freed, is unknown, or is of another kind"
    case .closed: return "the context, player or playback was closed"
    case .replaced: return "the same player started a newer item"
    case .noDelegate: return "neither the playback nor the context has a licence delegate"
    case .timeout: return "the time limit passed"
    case .wouldDeadlock: return "the call would wait for something that only the calling thread can do"
    case .forked: return "called in a child process of fork()"
    case .system: return "the system gave no memory, thread or file descriptor"
    case .callback: return "a callback of the host failed or answered with an error"
    case .invalidCompletion: return "the completion id was answered before, is too late or unknown"
    case .state: return "not possible in the present state"
    case .transport: return "no HTTP reply from the server"
    case .tls: return "no secure connection to the server"
    case .http: return "the server replied with an HTTP error"
    case .refused: return "the server refused the request"
    case .limit: return "the account plays as many streams as it may"
    case .protocolError: return "the server's reply cannot be understood"
    case .tooLarge: return "the server's reply is too large"
    case .noToken: return "there is no content token"
    case .redirect: return "the server replied with a redirect, which the library does not follow"
    case .session: return "the session is over"
    case .renewalMissed: return "a licence renewal that was due was not made in time"
    case .declined: return "the host declined the request"
    case .full: return "the token map is full"
    case .notAllowed: return "the URL's host is not on the allow-list"
    }
  }

  package var message: String { string(text) }
}

package func string(_ text: StaticString) -> String {
  text.withUTF8Buffer { String(decoding: $0, as: UTF8.self) }
}

extension Origin {
  /// The name of the server from which the error came.
  package var name: StaticString {
    switch self {
    case .local: return "the library"
    case .ssm: return "session manager"
    case .license: return "licence server"
    case .certificate: return "certificate server"
    case .entitlement: return "entitlement server"
    }
  }
}

extension Operation {
  /// The name of the operation.
  package var name: StaticString {
    switch self {
    case .none: return "none"
    case .setup: return "set-up"
    case .heartbeat: return "heartbeat"
    case .teardown: return "teardown"
    case .license: return "licence"
    case .renewal: return "renewal"
    case .certificate: return "certificate"
    case .entitlement: return "entitlement"
    }
  }
}
