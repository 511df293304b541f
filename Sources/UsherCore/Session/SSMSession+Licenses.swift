/// Counts licence requests that carry the session token, because their replies may replace the token.
extension SSMSession {
  /// Called when a licence request with the session token was sent.
  package mutating func licenseSent() { licensesInFlight &+= 1 }

  /// Called when the reply to a licence request with the session token was lost. The server may have processed the
  /// request and replaced the token.
  package mutating func licenseReplyLost() { newest.loseReply() }

  /// Called when a licence reply brought a newer session token. The caller then calls `licenseReplied`.
  package mutating func licenseBroughtToken(_ newToken: Secret) { newest.replace(by: newToken) }

  /// Called when a licence request with the session token was answered or failed.
  package mutating func licenseReplied(now: Milliseconds) -> [Action] {
    licensesInFlight = licensesInFlight > 0 ? licensesInFlight - 1 : 0
    if isActive, case .refused(let failure, let attempt, let generation) = beat {
      if generation != tokenGeneration { return sendBeat(attempt: attempt, now: now) }
      return licensesInFlight > 0 ? [] : beatRefused(failure, origin: .ssm, operation: .heartbeat)
    }
    return continueClosing(now: now)
  }
}
