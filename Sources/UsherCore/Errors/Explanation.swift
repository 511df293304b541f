/// Explains an error in words: one sentence for the viewer, and advice for the viewer or a support desk.
package struct Explanation: Sendable {
  package let summary: StaticString
  package let advice: StaticString
  /// Whether a table has an entry for the code of the error. If not, the explanation describes only the kind of error.
  package let isKnown: Bool
  /// Where the explanation comes from: the name of a table of codes if that table has the code of the error; otherwise
  /// a text that begins with "library status".
  package let source: StaticString
}

/// Explains a code by the table of its origin, because licence servers and the SSM use the same numbers with different
/// meanings. If the code is not in the table, the function chooses the words by the HTTP status, the TLS fault or the
/// status.
package func explanation(
  origin: Origin, operation: Operation? = nil, status: Status?, httpStatus: Int32 = -1, code: Int64,
  tlsFault: TLSFault? = nil
) -> Explanation {
  if code != 0 {
    let known: (StaticString, StaticString)?
    let source: StaticString
    switch origin {
    case .ssm where code == SSMCode.invalidToken && operation == .setup:
      // The code says that a token is invalid. The set-up request carries the content token and no session token, so
      // the code means the content token: use the words for an invalid content token (1003).
      (known, source) = (ssmWords(1003), "SSM error codes")
    case .ssm: (known, source) = (ssmWords(code), "SSM error codes")
    case .license where code < 0: (known, source) = (expressPlayWords(code), "ExpressPlay error numbers")
    case .license: (known, source) = (licenseWords(code), "SSP licence service error codes")
    case .certificate, .local, .entitlement: (known, source) = (nil, "")
    }
    if let known { return Explanation(summary: known.0, advice: known.1, isKnown: true, source: source) }
  }
  // If a proxy refuses CONNECT with 407, the status is `.transport` and not `.http`. Such an error also gets the words
  // for the HTTP status 407.
  let words =
    status == .http || httpStatus == 407
    ? httpWords(httpStatus)
    : status == .tls ? tlsWords(tlsFault ?? .none) : nil
  let (summary, advice) = words ?? statusWords(status ?? .state)
  return Explanation(
    summary: summary, advice: advice, isKnown: false,
    source: code == 0 ? "library status" : "library status; the code is in no table")
}

private func ssmWords(_ code: Int64) -> (StaticString, StaticString)? {
  switch code {
  case 1000:
    return (
      "The session server could not read the request.", "Check the app's version and the session server's address."
    )
  case 1001: return ("The sign-in for this stream belongs to another device.", "Sign out and in again on this device.")
  case 1003: return ("The sign-in for this stream is not valid.", "Sign in again; check the operator's token service.")
  case 1004: return ("The sign-in for this stream has expired.", "Start the stream again; check the device's clock.")
  case 1005: return ("The stream belongs to another operator.", "Check the tenant configured in the app.")
  case 1006: return ("The session is no longer valid: it expired, or the operator ended it.", "Start the stream again.")
  case 1007:
    return (
      "Too many devices are playing on this account right now.",
      "Stop playback on another device and try again; a device that lost power still counts for a few minutes."
    )
  case 1008:
    return (
      "The operator's stream limits are not set up for this stream.",
      "The operator must enable session management for the content."
    )
  case 1009:
    return (
      "This device does not belong to this account.",
      "Register the device with the account, or sign in with the right account."
    )
  case 1011: return ("The session server could not read the request.", "Check the app's version.")
  case 1012:
    return (
      "The session server does not have the operator's sign-in key.",
      "Operator: check the credential named in the token."
    )
  case 1013:
    return ("The sign-in for this stream names no device.", "Operator: the content token must name the device.")
  case 1017: return ("The session's name is too long.", "App: keep external session ids within 256 characters.")
  case 1018:
    return ("Another session already has this name.", "App: use a fresh external session id for every playback.")
  case 3001: return ("The account is not known.", "Check the subscription of the account.")
  case 3004: return ("The device is not known.", "Register the device with the account.")
  case 4000: return ("The session server has a problem.", "Try again in a few minutes.")
  case 4001: return ("The session server is not available.", "Try again in a few minutes.")
  default: return nil
  }
}

private func licenseWords(_ code: Int64) -> (StaticString, StaticString)? {
  switch code {
  case 1006, 1008:
    return ("The licence server is not set up for this stream.", "Operator: check the tenant's configuration.")
  case 1007: return ("The licence server did not accept the date of the request.", "Check the device's clock.")
  case 1001...1010:
    return (
      "The licence server could not read the request.", "Check the app's version and the licence server's address."
    )
  case 2001, 2002, 2102...2104:
    return (
      "The licence server could not use the request of this device.", "Restart the device; check its DRM software."
    )
  case 3001...3011:
    return (
      "The licence server could not use the sign-in for this stream.",
      "Sign in again; operator: check the content token."
    )
  case 4000, 4021: return ("The licence server did not allow this stream.", "Check that the subscription includes it.")
  case 4001: return ("The sign-in for this stream is missing.", "Start the stream again.")
  case 4005: return ("The sign-in for this stream has expired.", "Start the stream again; check the device's clock.")
  case 4006:
    return (
      "The sign-in for this stream was used already.",
      "Start the stream again; the app must fetch a fresh content token."
    )
  case 4007, 4027:
    return ("The sign-in for this stream belongs to another device.", "Sign out and in again on this device.")
  case 4008:
    return ("This device is not secure enough for this stream.", "Play it on a device with stronger protection.")
  case 4009, 4022, 4024, 4025:
    return ("The stream belongs to another operator.", "Check the tenant configured in the app.")
  case 4002...4004, 4010...4016:
    return (
      "The licence server could not match the stream with its keys.", "Operator: check tokens and keys of the content."
    )
  case 4017: return ("This device is disabled.", "Ask the operator to enable it.")
  case 4018: return ("The device is not known.", "Register the device with the account.")
  case 4019:
    return (
      "This device does not belong to this account.",
      "Register the device with the account, or sign in with the right account."
    )
  case 4020: return ("The account is not active.", "Check the subscription of the account.")
  default: return nil
  }
}

private func expressPlayWords(_ code: Int64) -> (StaticString, StaticString)? {
  guard ExpressPlayError.meaning(of: code) != nil else { return nil }
  switch code {
  case -2002, -4010:
    return (
      "The ticket for this stream is no longer valid.",
      "Start the stream again; the app must fetch a fresh licence token."
    )
  case -2003: return ("The ticket for this stream is for another network.", "Start the stream again on this network.")
  case -4001: return ("This device could not prove its identity.", "Restart the device; check its DRM software.")
  case -2019, -2030, -2031, -6006, -6009:
    return (
      "The licence server's account does not cover this stream.", "Operator: check the account at the licence server."
    )
  default:
    return (
      "The licence server could not use the ticket for this stream.", "Operator: check how licence tokens are made."
    )
  }
}

private func httpWords(_ status: Int32) -> (StaticString, StaticString)? {
  switch status {
  case 401: return ("The server did not accept the sign-in for this stream.", "Sign in again.")
  case 403, 451: return ("The server did not allow this stream.", "Check that the subscription includes it.")
  case 404, 405, 410, 501: return ("The server does not have this service.", "Check the server's address in the app.")
  case 407: return ("The network's proxy asks for a sign-in.", "Check the proxy in the settings.")
  case 408, 504: return ("The server cannot be reached.", "Check the network connection and try again.")
  case 413, 414, 431: return ("The request is too large for the server.", "App: check the size of tokens and headers.")
  case 425, 429: return ("The server has too many requests.", "Try again in a few minutes.")
  case 400...499: return ("The server could not read the request.", "Check the app's version and the server's address.")
  default: return nil
  }
}

private func tlsWords(_ fault: TLSFault) -> (StaticString, StaticString)? {
  let summary: StaticString = "The connection to the server is not secure, so it was not used."
  switch fault {
  case .none: return nil
  case .authority:
    return (
      summary,
      "A public Wi-Fi network may ask for a sign-in first; operator: check who signed the server's certificate."
    )
  case .expired: return (summary, "Check the device's clock; operator: renew the server's certificate.")
  case .notYetValid: return (summary, "Check the device's clock.")
  case .name: return (summary, "Check the server's address; a public Wi-Fi network may ask for a sign-in first.")
  case .pin: return (summary, "Use another network; app: check the pinned key.")
  case .clientCertificate: return ("The server does not know this device.", "App: check the client certificate.")
  }
}

private func statusWords(_ status: Status) -> (StaticString, StaticString) {
  switch status {
  case .ok: return ("Everything is in order.", "Nothing to do.")
  case .limit:
    return ("Too many devices are playing on this account right now.", "Stop playback on another device and try again.")
  case .transport, .timeout: return ("The server cannot be reached.", "Check the network connection and try again.")
  case .tls:
    return (
      "The connection to the server is not secure, so it was not used.",
      "Check the device's clock and the network; a public Wi-Fi network may ask for a sign-in first."
    )
  case .http: return ("The server has a problem.", "Try again in a few minutes.")
  case .refused: return ("The server did not allow this stream.", "Note the code and ask the operator.")
  case .protocolError, .tooLarge, .redirect:
    return (
      "The app could not understand the server's answer.",
      "Check the server's address; a public Wi-Fi network may ask for a sign-in first."
    )
  case .noToken: return ("The app has no sign-in for this stream.", "Sign in again and start the stream again.")
  case .session: return ("The session for this stream is over.", "Start the stream again.")
  case .renewalMissed: return ("The licence was not renewed in time.", "Start the stream again.")
  case .closed, .replaced: return ("Playback was stopped.", "Nothing to do.")
  case .notAllowed:
    return (
      "The stream names a server that the app does not trust.", "App: put the server on the allow-list if it is yours."
    )
  case .declined:
    return (
      "The app chose not to get a licence for this stream.", "Ask the app's maker why its delegate declined."
    )
  case .invalidArgument, .invalidHandle, .noDelegate, .wouldDeadlock, .forked, .system, .callback, .invalidCompletion,
    .state, .full:
    return ("The app made a mistake.", "Note the status name and ask the app's maker.")
  }
}
