extension PlaybackMachine {
  /// Converts the session's actions to the playback's actions.
  mutating func perform(_ actions: [SSMSession.Action], now: Milliseconds) -> [Action] {
    var result: [Action] = []
    result.reserveCapacity(actions.count)
    for action in actions {
      switch action {
      case .send(let request, let call, let token):
        if let token = token ?? knownToken { result.append(.sendSSM(request, call, token: token)) }
      case .setTimer(let at): result.append(.setTimer(at))
      case .cancelTimer: result.append(.cancelTimer)
      case .openAgain: result += sendWaiting(now: now)
      case .renewalDue: if !hasRenewalInFlight { result.append(.askPayload(lastKeySystem)) }
      case .awaitsSlot(let error): result.append(.report(.awaitsSlot(error)))
      case .started(let period):
        setupDenial = nil
        if isSessionless { lifecycle.sessionDecided() }
        result.append(.report(.started(period: period)))
      case .periodRaised(let asked):
        result.append(.report(.periodRaised(asked: asked, to: session.policy.periodMin)))
      case .keptAlive(let lateness): result.append(.report(.keptAlive(lateness: lateness)))
      case .recovered: result.append(.report(.recovered))
      case .doubtful: result.append(.report(.doubtful))
      case .failed(let error):
        if isSessionless { lifecycle.sessionDecided() }
        result.append(.report(error.operation == .setup ? .setupError(error) : .heartbeatError(error)))
        result += sendWaiting(now: now)
      case .teardownFailed(let error): result.append(.report(.teardownError(error, afterClosed: isClosed)))
      case .nextMayStart: if !isReplacing { result.append(.nextMayStart) }
      case .ended(let left, let orphanPossible): result += sessionEnded(left: left, orphanPossible: orphanPossible)
      }
    }
    return result
  }

  private mutating func sessionEnded(left: Bool, orphanPossible: Bool) -> [Action] {
    var actions: [Action] = []
    mayHaveOrphan = mayHaveOrphan || orphanPossible
    // The host closed the playback during set-up and left the session to expire, and no reply brought the session
    // token. The session may exist at the head-end. If the host now asks for its teardown, the library cannot send one
    // without the token: it reports an error, and reports the end of the session a second time.
    if isClosed, orphanPossible, session.tokenGeneration == 0 {
      var error = UsherError(.state, origin: .ssm, operation: .teardown, message: "no reply brought the session token")
      error.orphanPossible = true
      actions.append(.report(.teardownError(error, afterClosed: true)))
    }
    if left || isClosed || session.tokenGeneration > 0 { actions.append(.report(.ended(left: left))) }
    return actions + reportClosed(orphanPossible: orphanPossible)
  }

  /// If the playback is closing, reports that it is closed.
  private mutating func reportClosed(orphanPossible: Bool) -> [Action] {
    guard case .closing(let status) = lifecycle.phase else { return [] }
    lifecycle.closed(status)
    return [.closed(status, orphanPossible: orphanPossible || mayHaveOrphan)]
  }

  private var hasRenewalInFlight: Bool { licenses.contains { $0.isRenewal && $0.awaitsReply } }

  /// Called when the session's timer has fired.
  package mutating func timerFired(now: Milliseconds) -> [Action] {
    withFollowUps(perform(session.timerFired(now: now), now: now), now: now)
  }

  /// Returns `actions`, followed by the actions that they have made possible: start the next session, send waiting
  /// licence requests.
  mutating func withFollowUps(_ actions: consuming [Action], now: Milliseconds) -> [Action] {
    // Both lists are usually empty. To check this is cheaper than to add an empty list to `actions`.
    let replacement = startReplacement(now: now)
    if !replacement.isEmpty { actions += replacement }
    let waiting = sendWaiting(now: now)
    if !waiting.isEmpty { actions += waiting }
    return actions
  }

  /// Handles the reply to a request of the session, or the failure of this request.
  /// - Parameters:
  ///   - ownTeardowns: whether this context is tearing down, or has just torn down, other sessions at the same server.
  ///   - queueDelay: how long the request waited in the request queue before it was sent.
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
    return withFollowUps(perform(actions, now: now), now: now)
  }

  /// If the server denied set-up with 401 or 403 for the first time and there is a token callback, the playback asks
  /// the callback for another token and then starts set-up again. Otherwise returns nil.
  private mutating func reauthoriseSetup(_ request: RequestID, _ outcome: SSMOutcome) -> [Action]? {
    guard case .failure(let failure) = outcome, failure.isAuthorisation, failure.token == nil, hasTokenCallback,
      !isClosing, setupDenial == nil
    else { return nil }
    guard session.setupWithdrawn(request) else { return nil }
    setupDenial = Shared(failure)
    tokenAskedAfterDenial()
    return [.askToken]
  }

  package mutating func ownTeardownsEnded(now: Milliseconds) -> [Action] {
    perform(session.ownTeardownsEnded(now: now), now: now)
  }

  package mutating func suspended() -> [Action] { perform(session.suspended(), now: 0) }

  package mutating func resumed(now: Milliseconds) -> [Action] { perform(session.resumed(now: now), now: now) }

  package mutating func networkChanged(now: Milliseconds) -> [Action] {
    perform(session.networkChanged(now: now), now: now)
  }

  /// If the host did not choose, this function decides whether closing tears the session down or leaves it to expire.
  package func ending(isZap: Bool) -> SSMSession.Ending {
    isZap ? (policy.zapTearsDown ? .teardown : .leave) : (policy.leavesByDefault ? .leave : .teardown)
  }

  /// Closes the playback, for the host or for its player. A second call does nothing.
  /// - Parameter status: the status with which the playback and its open licence requests end: closed or replaced.
  package mutating func close(_ ending: SSMSession.Ending, status: Status, now: Milliseconds) -> [Action] {
    guard !isClosing else { return [] }
    let wasReplacing = isReplacing
    lifecycle.beganClosing(status)
    var actions: [Action] = []
    for index in licenses.indices where !licenses[index].isAbandoned {
      actions.append(
        .failLicense(
          licenses[index].id, UsherError(status, operation: licenses[index].isRenewal ? .renewal : .license)))
      licenses[index].isAbandoned = true
    }
    licenses.removeAll { $0.isWaiting }
    tokenUnneeded()
    guard policy.hasSSM else {
      return actions + [.nextMayStart] + reportClosed(orphanPossible: false) + endWithoutSession(now: now)
    }
    // The old session, which a new one should have replaced, is closing already. The player waits until the old session
    // has ended.
    if wasReplacing {
      // The old session may have returned `nextMayStart` already. The playback did not pass this action on, because it
      // wanted to start its next session, and not the player's next item.
      let next: [Action] = session.hasFreedSlot ? [.nextMayStart] : []
      return actions + next + (session.isEnded ? reportClosed(orphanPossible: false) : [])
    }
    return actions + perform(session.close(ending, now: now), now: now)
  }

  /// Called when the host asks, after the playback was closed, to tear down the session that the playback left to
  /// expire.
  package mutating func tearDownLeft(now: Milliseconds) -> [Action] {
    perform(session.tearDownLeft(now: now), now: now)
  }

  private mutating func endWithoutSession(now: Milliseconds) -> [Action] {
    _ = session.close(.leave, now: now)
    licenses.removeAll()
    return []
  }
}
