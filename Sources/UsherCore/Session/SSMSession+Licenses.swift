/// Counts licence requests that carry the session token, because their replies may replace the token.
extension SSMSession {
  /// Called when a licence request with the session token was sent.
  package mutating func licenseSent() { licensesInFlight &+= 1 }

  /// Called when the reply to a licence request with the session token was lost. The server may have processed the
  /// request and replaced the token.
  package mutating func licenseReplyLost() { loseReply() }

  /// Called when a licence reply brought a session token. The caller then calls `licenseReplied`.
  /// - Parameter carried: the generation of the token in the request.
  package mutating func licenseBroughtToken(_ newToken: Secret, inReplyTo carried: UInt32) {
    newest.take(newToken, inReplyTo: carried)
  }

  /// Called when the server accepted a licence request with the session token. The caller then calls `licenseReplied`.
  package mutating func licenseAccepted(_ request: RequestID, _ newToken: Secret?, inReplyTo carried: UInt32) {
    newest.confirm(request)
    take(newToken, inReplyTo: carried)
  }

  /// Called when the server denied a licence request that carried the token of `carried`. If this is the newest token,
  /// and the session keeps another token of the same depth that it has not tried, the session uses that other token
  /// from now on. Returns whether the session now uses another token; if so, the caller may then send the request once
  /// more.
  package mutating func licenseDenied(_ carried: UInt32) -> Bool {
    isActive && carried == tokenGeneration && newest.useOther()
  }

  /// Called when a licence request with the session token was answered or failed.
  package mutating func licenseReplied(now: Milliseconds) -> [Action] {
    licensesInFlight = licensesInFlight > 0 ? licensesInFlight - 1 : 0
    if isActive, case .refused(let failure, let attempt, let generation) = beat {
      if generation != tokenGeneration { return sendBeat(attempt: attempt, now: now) }
      if licensesInFlight > 0 { return [] }
      return newest.useOther()
        ? sendBeat(attempt: attempt, now: now) : beatRefused(failure, origin: .ssm, operation: .heartbeat)
    }
    return continueClosing(now: now)
  }
}
