extension SSMSession {
  /// Sets the session up.
  package mutating func start(now: Milliseconds) -> [Action] {
    guard isIdle else { return [] }
    return sendSetup(again: false, now: now)
  }

  /// Called when the session cannot start: the playback has no content token, or the server denied the token.
  package mutating func startFailed(_ error: UsherError) -> [Action] {
    isIdle ? fail(error.stopping()) : []
  }

  private mutating func sendSetup(again: Bool, now: Milliseconds) -> [Action] {
    if policy.opensByLicense {
      lifecycle.setupBroughtNothing(again: again)
      return [.openAgain]
    }
    let request = newRequest()
    lifecycle.sentSetup(request, again: again, at: now)
    return [.send(request, .setup, token: nil)]
  }

  /// Whether this context is tearing down, or has just torn down, other sessions at the same server.
  package enum OwnTeardowns: Sendable {
    case none
    /// A teardown ended while set-up was in flight: the server may have refused set-up shortly before it processed the
    /// teardown.
    case ended
    case underWay
  }

  /// Called when the reply to set-up has arrived, or set-up has failed.
  /// - Parameter ownTeardowns: when the reply arrived, the state of the teardowns of this context's other sessions.
  package mutating func setupReplied(
    _ request: RequestID, _ outcome: SSMOutcome, ownTeardowns: OwnTeardowns, now: Milliseconds
  ) -> [Action] {
    guard request == lifecycle.setupInFlight else { return [] }
    lifecycle.setupReplied()
    switch lifecycle.phase {
    case .settingUp(_, let again, let sentAt):
      switch outcome {
      case .success(let fields): return setUp(fields, sentAt: sentAt, now: now)
      case .failure(let failure): return refused(failure, again: again, ownTeardowns: ownTeardowns, now: now)
      }
    case .closing: return closingSetupReplied(outcome, now: now)
    case .ended:
      // The session no longer waits for this reply. If the reply has a token, the head-end holds a slot: the session
      // sends a teardown with this token, or keeps the token in case the host asks for a teardown.
      guard let token = outcome.token else { return [] }
      take(token)
      return isLeft ? [] : sendTeardown(now: now)
    case .idle, .contested, .awaitingSlot, .active, .failed, .tearingDown, .retryingTeardown: return []
    }
  }

  private mutating func setUp(_ fields: SessionFields, sentAt: Milliseconds, now: Milliseconds) -> [Action] {
    guard fields.token != nil else {
      let message =
        fields.isObject
        ? "set-up answered without a session token" : "set-up answered with something that is not a JSON object"
      return fail(setupError(fields, message, orphan: true))
    }
    take(fields.token)
    slotWait = nil
    let period: Milliseconds
    switch policy.period(fields.period) {
    case .some(let usable): period = usable
    case .none where policy.opensByLicense:
      period = fields.period.isZero || policy.opening == .customer ? 0 : policy.periodFallback
    case .none:
      guard policy.missingPeriod == .noTimer else {
        // The session is no orphan: the library has its token, so a close can still tear it down.
        return fail(setupError(fields, "set-up answered without a usable heartbeat period", orphan: false))
      }
      period = 0
    }
    lifecycle.wasSetUp()
    if policy.keepAlive == .renewal { setMode(.enforced) }
    var actions: [Action] = [.started(period: period)] + periodRaised(fields.period)
    if period > 0 {
      if policy.heartbeatStart == .setup || policy.opensByLicense {
        actions += beginSchedule(period: period, leaseFrom: sentAt, now: now)
      } else {
        beatsAwaitFirstLicense(period: period)
      }
    }
    return actions
  }

  /// If the server's period is below the policy's limit, returns the action that reports this; otherwise returns no
  /// action.
  func periodRaised(_ field: PeriodField) -> [Action] {
    policy.periodBelowMin(field).map { [.periodRaised(asked: $0)] } ?? []
  }

  private mutating func refused(
    _ failure: WireFailure, again: Bool, ownTeardowns: OwnTeardowns, now: Milliseconds
  ) -> [Action] {
    let refusal = failure.error(.ssm, .setup)
    var error = refusal.stopping()
    if let token = failure.token {
      // The server set a session up although it answered with an error. When the playback closes, the library tears
      // this session down.
      take(token)
      return fail(error)
    }
    error.orphanPossible = failure.mayHaveTakenEffect
    if failure.serviceCode == SSMCode.tooManySessions {
      error.status = .limit
      switch ownTeardowns {
      case .underWay where !again:
        lifecycle.refusedForLimit()
        return [.setTimer(now.adding(policy.teardownTimeout))]
      case .ended where !again: return sendSetup(again: true, now: now)
      case .none, .ended, .underWay: break
      }
      if let actions = awaitSlot(refusal, now: now) { return actions }
    }
    return fail(error)
  }

  /// Plans the next set-up request after a refusal because the account has too many sessions. Returns nil in three
  /// cases: the host does not want to wait, the time limit for the wait has passed, or the server asks for a pause that
  /// ends after this limit.
  private mutating func awaitSlot(_ refusal: UsherError, now: Milliseconds) -> [Action]? {
    let until = slotWait?.until ?? now.adding(policy.slotWait)
    let soonest = now.adding(Milliseconds(refusal.retryAfter))
    guard now < until, soonest <= until else { return nil }
    let tries = slotWait?.tries ?? 0
    let pause = min(Self.firstSlotPause << UInt64(min(tries, 16)), Self.longestSlotPause)
    let at = max(min(now.adding(pause), until), soonest)
    var actions: [Action] = [.setTimer(at)]
    if tries == 0 {
      var reported = refusal
      reported.status = .limit
      actions.append(.awaitsSlot(reported))
    }
    slotWait = SlotWait(until: until, tries: tries &+ 1)
    lifecycle.beganAwaitingSlot(until: at)
    return actions
  }

  private static var firstSlotPause: Milliseconds { 1000 }
  /// The longest pause between two set-up requests that wait for a slot, unless the server asks for a longer one.
  private static var longestSlotPause: Milliseconds { 5000 }

  /// Called when the timer has fired while the session waits for a slot.
  mutating func slotTimerFired(at: Milliseconds, now: Milliseconds) -> [Action] {
    now >= at ? sendSetup(again: false, now: now) : [.setTimer(at)]
  }

  /// Called when the teardowns of the context's other sessions have ended or take too long. If the session waits for
  /// these teardowns, it sends set-up once more.
  package mutating func ownTeardownsEnded(now: Milliseconds) -> [Action] {
    guard waitsForOwnTeardowns else { return [] }
    return [.cancelTimer] + sendSetup(again: true, now: now)
  }

  /// Called when the server denied set-up because of its content token. The owner then asks for another token and
  /// starts the session again. Returns false if the session no longer waits for the reply to `request`.
  mutating func setupWithdrawn(_ request: RequestID) -> Bool {
    guard case .settingUp(request, _, _) = lifecycle.phase else { return false }
    lifecycle.setupBroughtNothing(again: false)
    return true
  }

  private func setupError(_ fields: SessionFields, _ message: String, orphan: Bool) -> UsherError {
    UsherError(
      .protocolError, origin: .ssm, operation: .setup, httpStatus: fields.httpStatus, message: message, mustStop: true,
      orphanPossible: orphan)
  }

  private mutating func fail(_ error: UsherError) -> [Action] {
    lifecycle.failed(error)
    return [.failed(error)]
  }
}

extension SSPPolicy {
  /// Returns the period in a reply, limited to the bounds of the policy; nil if the reply has no usable period.
  package func period(_ field: PeriodField) -> Milliseconds? {
    guard let seconds = seconds(field) else { return nil }
    guard seconds < 1e9 else { return periodMax }
    return min(max(Milliseconds(seconds * 1000), periodMin), periodMax)
  }

  /// The period in a reply if it is shorter than the policy allows; otherwise nil.
  package func periodBelowMin(_ field: PeriodField) -> Milliseconds? {
    guard let seconds = seconds(field), seconds * 1000 < Double(periodMin) else { return nil }
    return Milliseconds(seconds * 1000)
  }

  private func seconds(_ field: PeriodField) -> Double? {
    let seconds: Double
    switch field {
    case .missing, .wrongType: return nil
    case .number(let number): seconds = number
    case .text(let number):
      guard lenientNumbers else { return nil }
      seconds = number
    }
    return seconds > 0 && seconds.isFinite ? seconds : nil
  }
}
