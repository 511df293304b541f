/// Licence requests that carry the session token: their replies may replace it.
extension SSMSession {
  /// A licence request with the session token was sent.
  package mutating func licenseSent() { licensesInFlight &+= 1 }

  /// The reply to a licence request with the session token was lost, but the server may have processed the request.
  package mutating func licenseReplyLost() { newest.loseReply() }

  /// A licence reply brought a newer session token. A call of `licenseReplied` follows.
  package mutating func licenseBroughtToken(_ newToken: Secret) { newest.replace(by: newToken) }

  /// A licence request with the session token was answered or failed.
  package mutating func licenseReplied(now: Milliseconds) -> [Action] {
    licensesInFlight = licensesInFlight > 0 ? licensesInFlight - 1 : 0
    if isActive, case .refused(let failure, let attempt, let generation) = beat {
      if generation != tokenGeneration { return sendBeat(attempt: attempt, now: now) }
      return licensesInFlight > 0 ? [] : beatRefused(failure, origin: .ssm, operation: .heartbeat)
    }
    return continueClosing(now: now)
  }
}
