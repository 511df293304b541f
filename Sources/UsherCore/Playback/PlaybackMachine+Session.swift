extension PlaybackMachine {
  /// Turns the session's actions into the playback's.
  mutating func perform(_ actions: [SSMSession.Action], now: Milliseconds) -> [Action] {
    var result: [Action] = []
    result.reserveCapacity(actions.count)
    for action in actions {
      switch action {
      case .send(let request, let call, let token):
        if let token = token ?? knownToken { result.append(.sendSSM(request, call, token: token)) }
      case .setTimer(let at): result.append(.setTimer(at))
      case .cancelTimer: result.append(.cancelTimer)
      case .openAgain: result += pump(now: now)
      case .renewalDue: if !hasRenewalInFlight { result.append(.askPayload(lastKeySystem)) }
      case .started(let period):
        setupDenial = nil
        result.append(.report(.started(period: period)))
      case .keptAlive(let lateness): result.append(.report(.keptAlive(lateness: lateness)))
      case .recovered: result.append(.report(.recovered))
      case .doubtful: result.append(.report(.doubtful))
      case .failed(let error):
        result.append(.report(error.operation == .setup ? .setupError(error) : .heartbeatError(error)))
        result += pump(now: now)
      case .teardownFailed(var error):
        // Where a session is only replaced, playback goes on with the next one.
        if isRestarting { error.mustStop = false }
        result.append(.report(.teardownError(error)))
      case .released: if !isRestarting { result.append(.released) }
      case .ended(let left, let orphanPossible): result += sessionEnded(left: left, orphanPossible: orphanPossible)
      }
    }
    return result
  }

  private mutating func sessionEnded(left: Bool, orphanPossible: Bool) -> [Action] {
    var actions: [Action] = []
    mayHaveOrphan = mayHaveOrphan || orphanPossible
    if session.tokenGeneration > 0 { actions.append(.report(.ended(left: left))) }
    if let closing { actions += tellClosed(closing, orphanPossible: orphanPossible) }
    return actions
  }

  private mutating func tellClosed(_ status: Status, orphanPossible: Bool) -> [Action] {
    guard !isClosedTold else { return [] }
    isClosedTold = true
    return [.closed(status, orphanPossible: orphanPossible || mayHaveOrphan)]
  }

  private var hasRenewalInFlight: Bool { flows.contains { $0.isRenewal && !$0.isWaiting } }

  package mutating func timerFired(now: Milliseconds) -> [Action] {
    if hasRenewalInFlight, let later = session.renewalStillUnderWay(now: now) { return [.setTimer(later)] }
    return goingOn(perform(session.timerFired(now: now), now: now), now: now)
  }

  /// The actions, and what they make possible: the session that follows, licences that waited.
  mutating func goingOn(_ actions: consuming [Action], now: Milliseconds) -> [Action] {
    actions += restartIfFinished(now: now)
    actions += pump(now: now)
    return actions
  }

  /// - Parameters:
  ///   - ownTeardowns: whether other sessions of this context were being given back to the same head-end.
  ///   - queueDelay: how long the request waited in the request queue before it went out.
  package mutating func ssmReplied(
    _ request: RequestID, _ call: SSMSession.Call, _ outcome: SSMOutcome, ownTeardowns: SSMSession.OwnTeardowns,
    queueDelay: Milliseconds = 0, now: Milliseconds
  ) -> [Action] {
    let actions: [SSMSession.Action]
    switch call {
    case .setup:
      if let asked = reauthoriseSetup(request, outcome) { return asked }
      actions = session.setupReplied(request, outcome, ownTeardowns: ownTeardowns, now: now)
    case .heartbeat: actions = session.heartbeatReplied(request, outcome, queueDelay: queueDelay, now: now)
    case .teardown: actions = session.teardownReplied(request, outcome, now: now)
    }
    return goingOn(perform(actions, now: now), now: now)
  }

  /// Set-up was denied with 401 or 403, for the first time, and the token callback may have a better token: it is asked, then set-up begins anew.
  private mutating func reauthoriseSetup(_ request: RequestID, _ outcome: SSMOutcome) -> [Action]? {
    guard case .failure(let failure) = outcome, failure.isAuthorisation, hasTokenCallback, !isClosing,
      setupDenial == nil
    else { return nil }
    guard session.setupWithdrawn(request) else { return nil }
    setupDenial = Shared(failure)
    isReauthorising = true
    contentToken = .asking
    return [.askToken]
  }

  package mutating func ownTeardownsEnded(now: Milliseconds) -> [Action] {
    perform(session.ownTeardownsEnded(), now: now)
  }

  package mutating func suspended() -> [Action] { perform(session.suspended(), now: 0) }

  package mutating func resumed(now: Milliseconds) -> [Action] { perform(session.resumed(now: now), now: now) }

  package mutating func networkChanged(now: Milliseconds) -> [Action] {
    perform(session.networkChanged(now: now), now: now)
  }

  /// What a close that does not say does to the session.
  package func ending(isZap: Bool) -> SSMSession.Ending {
    isZap ? (policy.zapTearsDown ? .teardown : .leave) : (policy.leavesByDefault ? .leave : .teardown)
  }

  /// Playback stops. Idempotent.
  /// - Parameter status: what its waiting requests and its end are told: closed or replaced.
  package mutating func close(_ ending: SSMSession.Ending, status: Status, now: Milliseconds) -> [Action] {
    guard closing == nil else { return [] }
    closing = status
    var actions: [Action] = []
    for index in flows.indices where !flows[index].isAbandoned {
      actions.append(
        .failLicense(flows[index].id, UsherError(status, operation: flows[index].isRenewal ? .renewal : .license)))
      flows[index].isAbandoned = true
    }
    flows.removeAll { $0.isWaiting }
    contentToken = session.setupInFlight == nil ? .missing : contentToken
    guard policy.hasSSM else {
      return actions + [.released] + tellClosed(status, orphanPossible: false) + endWithoutSession(now: now)
    }
    // A session that is being replaced ends by itself; the player waits for that.
    if isRestarting {
      isRestarting = false
      // Its release, if it came, was kept from the player.
      let released: [Action] = session.wasReleased ? [.released] : []
      return actions + released + (session.isEnded ? tellClosed(status, orphanPossible: false) : [])
    }
    return actions + perform(session.close(ending, now: now), now: now)
  }

  private mutating func endWithoutSession(now: Milliseconds) -> [Action] {
    _ = session.close(.leave, now: now)
    flows.removeAll()
    return []
  }
}

extension SSMSession {
  /// A renewal that was asked for is on its way and slow: not asked for twice. When to look again; nil if none was asked for.
  func renewalStillUnderWay(now: Milliseconds) -> Milliseconds? {
    guard case .active = phase, case .asked = beat else { return nil }
    return now.adding(max(period, 1))
  }
}
