extension SSMSession {
  /// What another process needs to tear the session down if the host dies now.
  package struct Recoverable {
    /// The newest session token, or the token of the teardown that is in flight.
    package let token: Secret
    /// When the server last extended the lease, as far as the library knows; nil: the session has no keep-alives.
    package let extendedAt: Milliseconds?
  }

  /// The values that another process would need. nil if the server holds no session that the other process could tear
  /// down, or if the host chose to leave the session at the server, to expire there.
  mutating func recoverable() -> Recoverable? {
    switch stage {
    case .pending, .left, .ended: return nil
    case .active: return recoverable(token)
    case .failed: return newest.isUnknownToServer ? nil : recoverable(token)
    case .givingBack:
      switch lifecycle.phase {
      // Until the server has answered the teardown, the server may still hold the session.
      case .tearingDown(_, let teardown), .retryingTeardown(let teardown, _): return recoverable(teardown.token)
      case .closing: return newest.isUnknownToServer ? nil : recoverable(token)
      case .idle, .settingUp, .contested, .awaitingSlot, .active, .failed, .ended: return nil
      }
    }
  }

  /// A teardown to which no answer came, so that the server may still hold the session.
  package struct Unanswered {
    package let token: Secret
    /// Whether the server may have executed the teardown.
    let mayHaveTakenEffect: Bool
  }

  /// The last teardown, if the session has ended without an answer to it; otherwise nil.
  package var unanswered: Unanswered? {
    if stage == .ended, case .ended(let end) = lifecycle.phase { return end.unanswered }
    return nil
  }

  private func recoverable(_ token: Secret?) -> Recoverable? {
    token.map { Recoverable(token: $0, extendedAt: schedule?.extendedAt) }
  }
}

extension SSMSession {
  /// Makes a session that was left at the head-end; `tearDownRecovered` tears it down.
  /// - Parameters:
  ///   - token: its newest known token; or any secret if the caller does not use the tokens in the actions, and sends a
  ///     recorded request instead.
  ///   - isOfDeadProcess: the process may have died before it recorded a newer token.
  @inline(never)
  package init(leftWith token: Secret, policy: Shared<SSPPolicy>, isOfDeadProcess: Bool) {
    self.init(policy: policy, seed: 0)
    take(token)
    if isOfDeadProcess { loseReply() }
    lifecycle.ended(left: true, failedTeardown: nil, unanswered: nil)
  }

  /// Tears down a session that was left at the head-end.
  /// - Parameter earlier: its last teardown in this process, which got no answer; nil: there was none.
  package mutating func tearDownRecovered(after earlier: Unanswered?, now: Milliseconds) -> [Action] {
    sendTeardown(mayHaveTakenEffect: earlier?.mayHaveTakenEffect ?? false, now: now)
  }
}
