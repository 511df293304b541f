extension SSMSession {
  /// Sets the session up.
  package mutating func start() -> [Action] {
    guard case .idle = phase else { return [] }
    return sendSetup(again: false)
  }

  /// There is no content token to set up with.
  package mutating func startFailed(_ error: UsherError) -> [Action] {
    guard case .idle = phase else { return [] }
    let stopping = error.stopping()
    phase = .failed(stopping)
    return [.failed(stopping)]
  }

  private mutating func sendSetup(again: Bool) -> [Action] {
    if policy.opensByLicense {
      phase = .idle
      opensAgain = again
      return [.openAgain]
    }
    let request = newRequest()
    phase = .settingUp(request, again: again)
    setupInFlight = request
    return [.send(request, .setup, token: nil)]
  }

  /// Whether other sessions of this context are being given back to the same head-end.
  package enum OwnTeardowns: Sendable {
    case none
    /// One ended while the set-up was on its way, which may have been refused just before.
    case ended
    case underWay
  }

  /// - Parameter ownTeardowns: as things stand now.
  package mutating func setupReplied(
    _ request: RequestID, _ outcome: SSMOutcome, ownTeardowns: OwnTeardowns, now: Milliseconds
  ) -> [Action] {
    guard request == setupInFlight else { return [] }
    setupInFlight = nil
    switch phase {
    case .settingUp(let current, let again) where current == request:
      switch outcome {
      case .success(let fields): return setUp(fields, now: now)
      case .failure(let failure): return refused(failure, again: again, ownTeardowns: ownTeardowns, now: now)
      }
    case .closing: return closingSetupReplied(outcome, now: now)
    case .ended:
      // Told as closed at the cap; a token that comes now is still a slot of ours.
      if !isLeft, case .success(let fields) = outcome, fields.token != nil {
        take(fields.token)
        return sendTeardown(now: now)
      }
      return []
    case .idle, .settingUp, .contested, .active, .failed, .tearingDown, .retryingTeardown: return []
    }
  }

  private mutating func setUp(_ fields: SessionFields, now: Milliseconds) -> [Action] {
    guard fields.token != nil else {
      let message =
        fields.isObject
        ? "set-up answered without a session token" : "set-up answered with something that is not a JSON object"
      return fail(setupError(fields, message, orphan: true))
    }
    take(fields.token)
    let period: Milliseconds
    switch policy.period(fields.period) {
    case .some(let usable): period = usable
    case .none where policy.opensByLicense:
      period = fields.period.isZero || policy.opening == .customer ? 0 : policy.periodFallback
    case .none:
      guard policy.missingPeriod == .noTimer else {
        // The token is known, so the slot goes back at close.
        return fail(setupError(fields, "set-up answered without a usable heartbeat period", orphan: false))
      }
      period = 0
    }
    phase = .active
    if policy.keepAlive == .renewal { setMode(.enforced) }
    var actions: [Action] = [.started(period: period)]
    if period > 0 {
      if policy.heartbeatStart == .setup || policy.opensByLicense {
        actions += beginSchedule(period: period, now: now)
      } else {
        periodPending = period
      }
    }
    return actions
  }

  private mutating func refused(
    _ failure: WireFailure, again: Bool, ownTeardowns: OwnTeardowns, now: Milliseconds
  ) -> [Action] {
    var error = failure.error(.ssm, .setup).stopping()
    error.orphanPossible = failure.mayHaveTakenEffect
    if failure.serviceCode == SSMCode.tooManySessions {
      error.status = .limit
      switch ownTeardowns {
      case .underWay where !again:
        phase = .contested(error)
        capAt = now.adding(policy.teardownTimeout)
        return [.setTimer(capAt)]
      case .ended where !again: return sendSetup(again: true)
      case .none, .ended, .underWay: break
      }
    }
    return fail(error)
  }

  /// The teardowns that were under way when set-up was refused have ended, or took too long: once more.
  package mutating func ownTeardownsEnded() -> [Action] {
    guard case .contested = phase else { return [] }
    return [.cancelTimer] + sendSetup(again: true)
  }

  package var waitsForOwnTeardowns: Bool {
    if case .contested = phase { return true }
    return false
  }

  private func setupError(_ fields: SessionFields, _ message: String, orphan: Bool) -> UsherError {
    UsherError(
      .protocolError, origin: .ssm, operation: .setup, httpStatus: fields.httpStatus, message: message, mustStop: true,
      orphanPossible: orphan)
  }

  private mutating func fail(_ error: UsherError) -> [Action] {
    phase = .failed(error)
    return [.failed(error)]
  }

  mutating func release() -> Action? {
    guard !wasReleased else { return nil }
    wasReleased = true
    return .released
  }
}

extension SSPPolicy {
  /// The period in a reply, bounded; nil where it is none.
  package func period(_ field: PeriodField) -> Milliseconds? {
    let seconds: Double
    switch field {
    case .missing, .wrongType: return nil
    case .number(let number): seconds = number
    case .text(let number):
      guard lenientNumbers else { return nil }
      seconds = number
    }
    guard seconds > 0, seconds.isFinite else { return nil }
    guard seconds < 1e9 else { return periodMax }
    return min(max(Milliseconds(seconds * 1000), periodMin), periodMax)
  }
}
