extension SSMSession {
  mutating func beginSchedule(period: Milliseconds, now: Milliseconds) -> [Action] {
    schedule = KeepAliveSchedule(start: now, period: period, jitter: policy.jitter, seed: seed)
    return arm()
  }

  mutating func rearm() -> [Action] { arm() }

  /// Waits for the next instant of the schedule.
  private mutating func arm() -> [Action] {
    guard let sendAt = schedule?.sendAt, mode != .cdm, mode != .none else {
      beat = .off
      return [.cancelTimer]
    }
    beat = .waiting(sendAt: sendAt)
    return [.setTimer(sendAt)]
  }

  /// The timer rang.
  package mutating func timerFired(now: Milliseconds) -> [Action] {
    switch phase {
    case .active: return isPaused ? [] : beatDue(now: now)
    case .contested: return ownTeardownsEnded()
    case .closing, .tearingDown, .retryingTeardown: return capReached(now: now)
    case .idle, .settingUp, .failed, .ended: return []
    }
  }

  private mutating func beatDue(now: Milliseconds) -> [Action] {
    switch beat {
    case .waiting(let sendAt):
      guard now >= sendAt else { return [.setTimer(sendAt)] }
      return sendBeat(attempt: 0, now: now)
    case .retrying(let at, let attempt):
      guard now >= at else { return [.setTimer(at)] }
      return sendBeat(attempt: attempt, now: now)
    case .asked: return renewalMissed(now: now)
    case .off, .inFlight, .refused: return []
    }
  }

  mutating func sendBeat(attempt: UInt32, now: Milliseconds) -> [Action] {
    guard let due = schedule?.due, let token else { return [] }
    var actions: [Action] = []
    if attempt == 0 {
      if owedSince == nil { owedSince = due }
      // Overdue by far more than a busy machine explains: it slept, and the head-end may have given the slot away.
      let late = now.since(due)
      if late >= max(1000, period / 10), !toldDoubtful, !toldOutage {
        toldDoubtful = true
        actions.append(.doubtful)
      }
    }
    if mode == .enforced {
      beat = .asked(attempt: attempt)
      return actions + [.renewalDue, .setTimer(now.adding(period))]
    }
    let request = newRequest()
    beat = .inFlight(request, attempt: attempt, sentAt: now, generation: tokenGeneration)
    return actions + [.send(request, .heartbeat, token: token)]
  }

  /// - Parameter queueDelay: how long the heartbeat waited in the request queue before it went out.
  package mutating func heartbeatReplied(
    _ request: RequestID, _ outcome: SSMOutcome, queueDelay: Milliseconds = 0, now: Milliseconds
  ) -> [Action] {
    guard case .inFlight(request, let attempt, let sentAt, let generation) = beat else { return [] }
    if case .failure(let failure) = outcome, failure.isUnknownSession, case .active = phase {
      // A licence reply replaced the token while this beat was on its way: once more with the newest.
      if generation != tokenGeneration { return sendBeat(attempt: attempt, now: now) }
      // The licence that may have replaced it is still under way: its reply decides.
      if foreign > 0 {
        beat = .refused(failure, attempt: attempt, generation: generation)
        return []
      }
    }
    let isNewest = generation == tokenGeneration && foreign == 0
    return keepAliveAnswered(
      outcome, origin: .ssm, operation: .heartbeat, attempt: attempt, sentAt: sentAt, queueDelay: queueDelay,
      isNewest: isNewest, now: now)
  }

  /// A renewal of the library's or the host's was answered or could not be made. The licence flow has stored a new token already.
  package mutating func renewalEnded(_ failure: WireFailure?, origin: Origin, now: Milliseconds) -> [Action] {
    if let failure {
      if case .active = phase, mode == .cdm, !failure.isTransient {
        return beatRefused(failure, origin: origin, operation: .renewal)
      }
      guard case .active = phase, case .asked(let attempt) = beat else { return [] }
      return keepAliveAnswered(
        .failure(failure), origin: origin, operation: .renewal, attempt: attempt, sentAt: now, queueDelay: 0,
        isNewest: true, now: now)
    }
    guard case .active = phase else { return [] }
    switch (mode, beat) {
    case (_, .asked): return answeredWell(sentAt: now, now: now, advance: true)
    case (.enforced, .waiting), (.enforced, .retrying):
      // Renewed before it was due: the next one is a whole period away.
      let same = period
      schedule?.change(period: same, now: now)
      return answeredWell(sentAt: now, now: now, advance: false)
    case (.cdm, .off), (.cdm, .waiting), (.cdm, .retrying): return answeredWell(sentAt: now, now: now, advance: false)
    case (.enforced, _), (.cdm, _), (.heartbeat, _), (.none, _): return []
    }
  }

  private mutating func keepAliveAnswered(
    _ outcome: SSMOutcome, origin: Origin, operation: Operation, attempt: UInt32, sentAt: Milliseconds,
    queueDelay: Milliseconds, isNewest: Bool, now: Milliseconds
  ) -> [Action] {
    if case .failure(let failure) = outcome, failure.mayHaveTakenEffect { mayHaveLostToken = true }
    switch phase {
    case .active: break
    case .closing, .tearingDown, .retryingTeardown, .ended:
      beat = .off
      switch outcome {
      case .success(let fields): take(fields.token)
      case .failure(let failure):
        isUnknownToServer = isUnknownToServer || (isNewest && origin == .ssm && failure.isUnknownSession)
      }
      return foreignEnded(now: now)
    case .idle, .settingUp, .contested, .failed:
      beat = .off
      return []
    }
    switch outcome {
    case .success(let fields):
      take(fields.token)
      if policy.periodUpdates, let newPeriod = policy.period(fields.period), newPeriod != period {
        schedule?.change(period: newPeriod, now: sentAt)
        return answeredWell(sentAt: sentAt, queueDelay: queueDelay, now: now, advance: false)
      }
      return answeredWell(sentAt: sentAt, queueDelay: queueDelay, now: now, advance: true)
    case .failure(let failure):
      return failure.isTransient
        ? beatFailed(failure, origin: origin, operation: operation, attempt: attempt, now: now)
        : beatRefused(failure, origin: origin, operation: operation)
    }
  }

  private mutating func answeredWell(
    sentAt: Milliseconds, queueDelay: Milliseconds = 0, now: Milliseconds, advance: Bool
  ) -> [Action] {
    let lateness = (owedSince.map { sentAt.since($0) } ?? 0).adding(queueDelay)
    var actions: [Action] = []
    actions.reserveCapacity(3)
    actions.append(.keptAlive(lateness: lateness))
    if toldOutage { actions.append(.recovered) }
    owedSince = nil
    mayHaveLostToken = false
    toldDoubtful = false
    toldOutage = false
    failedPeriods = 0
    if advance { schedule?.advance(past: sentAt) }
    actions += catchUp(now: now)
    return actions
  }

  /// Arms for the next instant; one that passed while the last beat was under way is due at once, once.
  private mutating func catchUp(now: Milliseconds) -> [Action] {
    guard let due = schedule?.due, due <= now else { return arm() }
    guard mode == .heartbeat || mode == .enforced else { return arm() }
    beat = .waiting(sendAt: now)
    return [.setTimer(now)]
  }

  /// The server's last word: told at once, no more beats.
  mutating func beatRefused(_ failure: WireFailure, origin: Origin, operation: Operation) -> [Action] {
    beat = .off
    isUnknownToServer = origin == .ssm && failure.isUnknownSession
    var error = failure.error(origin, operation).stopping()
    error.orphanPossible = isUnknownToServer && mayHaveLostToken
    phase = .failed(error)
    return [.cancelTimer, .failed(error)]
  }

  /// Tried again inside the period, then told once; the schedule goes on.
  private mutating func beatFailed(
    _ failure: WireFailure, origin: Origin, operation: Operation, attempt: UInt32, now: Milliseconds
  ) -> [Action] {
    guard let due = schedule?.due else { return [] }
    let first = max(1, min(1000, period / 8))
    let backoff = attempt < 16 ? first << UInt64(attempt) : period
    let at = now.adding(max(backoff, failure.retryAfter ?? 0))
    if policy.retry > 0, at <= due.adding(period.permille(policy.retry)) {
      beat = .retrying(at: at, attempt: attempt &+ 1)
      return [.setTimer(at)]
    }
    return outage(failure.error(origin, operation).stopping(), now: now)
  }

  /// A whole period passed without the renewal the host was asked for: told, and asked again.
  private mutating func renewalMissed(now: Milliseconds) -> [Action] {
    outage(UsherError(.renewalMissed, operation: .renewal, mustStop: true), now: now)
  }

  private mutating func outage(_ error: UsherError, now: Milliseconds) -> [Action] {
    failedPeriods &+= 1
    var actions: [Action] = []
    if let most = policy.failuresMax, failedPeriods >= most {
      beat = .off
      phase = .failed(error)
      actions.append(.cancelTimer)
      if !toldOutage { actions.append(.failed(error)) }
      toldOutage = true
      return actions
    }
    if !toldOutage {
      toldOutage = true
      actions.append(.failed(error))
    }
    // What fell due meanwhile is due at once, once.
    schedule?.advance(upTo: now)
    return actions + catchUp(now: now)
  }

  /// The first licence said how the session is kept alive; further ones (key rotation) change nothing.
  package mutating func modeDecided(_ newMode: KeepAliveMode, now: Milliseconds) -> [Action] {
    guard case .active = phase, !isModeDecided else { return [] }
    isModeDecided = true
    if let waiting = periodPending {
      periodPending = nil
      setMode(newMode)
      return beginSchedule(period: waiting, now: now)
    }
    guard newMode != mode else { return [] }
    setMode(newMode)
    switch beat {
    case .inFlight, .refused: return []  // goes on in the new mode after its answer
    case .asked where newMode == .enforced: return []
    case .asked, .retrying: return catchUp(now: now)
    case .off, .waiting: return schedule == nil ? [] : arm()
    }
  }

  /// The host is going to sleep. What it wants of keep-alives meanwhile is its policy's.
  package mutating func suspended() -> [Action] {
    guard policy.suspend == .pause, case .active = phase else { return [] }
    isPaused = true
    return [.cancelTimer]
  }

  /// The host came back from a suspension: a beat that is overdue goes out at once, one that is not when it is due.
  package mutating func resumed(now: Milliseconds) -> [Action] {
    let wasPaused = isPaused
    isPaused = false
    guard case .active = phase, let due = schedule?.due else { return [] }
    switch beat {
    case .waiting(let sendAt):
      return now >= due ? sendBeat(attempt: 0, now: now) : (wasPaused ? [.setTimer(sendAt)] : [])
    case .retrying(let at, _): return wasPaused ? [.setTimer(at)] : []
    case .asked: return wasPaused ? [.setTimer(now.adding(period))] : []
    case .off, .inFlight, .refused: return []
    }
  }

  /// The network is back, or another one: what failed is tried at once instead of at its time.
  package mutating func networkChanged(now: Milliseconds) -> [Action] {
    guard case .active = phase, !isPaused else { return [] }
    switch beat {
    case .retrying(_, let attempt): return sendBeat(attempt: attempt, now: now)
    case .waiting where toldOutage: return sendBeat(attempt: 0, now: now)
    case .waiting, .off, .inFlight, .refused, .asked: return []
    }
  }
}
