extension SSMSession {
  /// Begins the schedule of the keep-alives.
  /// - Parameter leaseFrom: when the request was sent whose reply begins the schedule.
  mutating func beginSchedule(period: Milliseconds, leaseFrom: Milliseconds, now: Milliseconds) -> [Action] {
    newSchedule(period: period, leaseFrom: leaseFrom, now: now)
    return [arm()]
  }

  /// Sets the timer for the next beat of the schedule.
  mutating func arm() -> Action {
    guard let sendAt = schedule?.sendAt, mode != .cdm, mode != .none else {
      beatEnded()
      return .cancelTimer
    }
    beatScheduled(at: sendAt)
    return .setTimer(sendAt)
  }

  /// Called when the session's timer has fired.
  package mutating func timerFired(now: Milliseconds) -> [Action] {
    switch lifecycle.phase {
    case .active: return isPaused ? [] : beatDue(now: now)
    case .contested: return ownTeardownsEnded(now: now)
    case .awaitingSlot(let at): return slotTimerFired(at: at, now: now)
    case .closing, .tearingDown, .retryingTeardown: return closingTimerFired(now: now)
    case .idle, .settingUp, .failed, .ended: return []
    }
  }

  /// Whether the session sends a keep-alive when its timer fires now. While the session waits for the host's renewal,
  /// the timer only limits this wait, so the result is false.
  package func isKeepAliveDue(now: Milliseconds) -> Bool {
    guard isActive, !isPaused else { return false }
    switch beat {
    case .waiting(let at), .retrying(let at, _): return now >= at
    case .asked, .off, .inFlight, .refused: return false
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
    var isDoubtful = false
    if attempt == 0 {
      if owedSince == nil { owedSince = due }
      // The beat is so late that the device must have slept: the server may have given the slot to another session.
      if case .good = health, now.since(due) >= max(1000, period / 10) {
        becameDoubtful()
        isDoubtful = true
      }
    }
    if mode == .enforced {
      renewalAsked(attempt: attempt)
      let asked = [Action.renewalDue, .setTimer(now.adding(period))]
      return isDoubtful ? [.doubtful] + asked : asked
    }
    let request = newRequest()
    beatSent(request, attempt: attempt, now: now)
    let send = Action.send(request, .heartbeat, token: token)
    return isDoubtful ? [.doubtful, send] : [send]
  }

  /// Called when the reply to a heartbeat has arrived, or the heartbeat has failed.
  /// - Parameter queueDelay: how long the heartbeat waited in the request queue before it was sent.
  package mutating func heartbeatReplied(
    _ request: RequestID, _ outcome: SSMOutcome, queueDelay: Milliseconds = 0, now: Milliseconds
  ) -> [Action] {
    guard case .inFlight(request, let attempt, let sentAt, let generation) = beat else { return [] }
    beatEnded()
    if case .success(let fields) = outcome {
      newest.confirm(request)
      if fields.mayBeCut { loseReply() }
      take(fields.token, inReplyTo: generation)
    } else if case .failure(let failure) = outcome, failure.isUnknownSession, isActive {
      // A licence reply has replaced the token while this beat was in flight: send the beat once more, with the newest
      // token.
      if generation != tokenGeneration { return sendBeat(attempt: attempt, now: now) }
      // A licence request in flight may have replaced the token: wait for its reply, which decides whether the session
      // failed.
      if licensesInFlight > 0 {
        beatDenied(failure, attempt: attempt, generation: generation)
        return []
      }
      if newest.useOther() { return sendBeat(attempt: attempt, now: now) }
    }
    let isNewest = generation == tokenGeneration && licensesInFlight == 0
    return keepAliveAnswered(
      outcome, origin: .ssm, operation: .heartbeat, attempt: attempt, sentAt: sentAt, queueDelay: queueDelay,
      isNewest: isNewest, now: now)
  }

  /// Called when a renewal of the library or of the host has failed, or could not be sent.
  package mutating func renewalFailed(_ failure: WireFailure, origin: Origin, now: Milliseconds) -> [Action] {
    // If the CDM renews the licence itself, or during an outage, no beat waits for this renewal. Nevertheless the
    // session fails if the server refused the renewal for good.
    if isActive, mode == .cdm || (mode == .enforced && isInOutage), !failure.isTransient {
      return beatRefused(failure, origin: origin, operation: .renewal)
    }
    guard isActive, case .asked(let attempt) = beat else { return [] }
    return keepAliveAnswered(
      .failure(failure), origin: origin, operation: .renewal, attempt: attempt, sentAt: now, queueDelay: 0,
      isNewest: true, now: now)
  }

  /// Called when a renewal of the library or of the host, which was sent at `sentAt`, has succeeded. If the reply had a
  /// new token, the caller has already stored the token.
  package mutating func renewed(sentAt: Milliseconds, now: Milliseconds) -> [Action] {
    guard isActive else { return [] }
    switch (mode, beat) {
    case (_, .asked): return answeredWell(sentAt: now, leaseFrom: sentAt, queueDelay: 0, now: now, advance: true)
    case (.enforced, .waiting), (.enforced, .retrying):
      // The host has renewed the licence before the renewal was due: the next renewal is due one period from now.
      let same = period
      schedule?.change(period: same, start: now, leaseFrom: sentAt)
      return answeredWell(sentAt: now, leaseFrom: sentAt, queueDelay: 0, now: now, advance: false)
    case (.cdm, .off), (.cdm, .waiting), (.cdm, .retrying):
      return answeredWell(sentAt: now, leaseFrom: sentAt, queueDelay: 0, now: now, advance: false)
    case (.enforced, .off), (.enforced, .inFlight), (.enforced, .refused), (.cdm, .inFlight), (.cdm, .refused),
      (.heartbeat, .off), (.heartbeat, .waiting), (.heartbeat, .inFlight), (.heartbeat, .refused),
      (.heartbeat, .retrying), (.none, .off), (.none, .waiting), (.none, .inFlight), (.none, .refused),
      (.none, .retrying):
      return []
    }
  }

  @inline(never)
  private mutating func keepAliveAnswered(
    _ outcome: SSMOutcome, origin: Origin, operation: Operation, attempt: UInt32, sentAt: Milliseconds,
    queueDelay: Milliseconds, isNewest: Bool, now: Milliseconds
  ) -> [Action] {
    if case .failure(let failure) = outcome {
      if failure.mayHaveTakenEffect { loseReply() }
      if !isActive, isNewest, failure.isUnknownSession { newest.refuseAsUnknown() }
    }
    guard isActive else { return continueClosing(now: now) }
    switch outcome {
    case .success(let fields):
      if policy.periodUpdates, let newPeriod = policy.period(fields.period), newPeriod != period {
        schedule?.change(period: newPeriod, start: sentAt, leaseFrom: sentAt)
        return answeredWell(sentAt: sentAt, leaseFrom: sentAt, queueDelay: queueDelay, now: now, advance: false)
          + periodRaised(fields.period)
      }
      return answeredWell(sentAt: sentAt, leaseFrom: sentAt, queueDelay: queueDelay, now: now, advance: true)
    case .failure(let failure):
      return failure.isTransient
        ? beatFailed(failure, origin: origin, operation: operation, attempt: attempt, sentAt: sentAt, now: now)
        : beatRefused(failure, origin: origin, operation: operation)
    }
  }

  /// - Parameters:
  ///   - sentAt: when the session made the keep-alive; its lateness counts until then.
  ///   - leaseFrom: when the request was sent that keeps the session alive.
  @inline(never)
  private mutating func answeredWell(
    sentAt: Milliseconds, leaseFrom: Milliseconds, queueDelay: Milliseconds, now: Milliseconds, advance: Bool
  ) -> [Action] {
    let lateness = (owedSince.map { sentAt.since($0) } ?? 0).adding(queueDelay)
    var wasOutage = false
    if case .outage = health { wasOutage = true }
    keepAliveSucceeded()
    owedSince = nil
    schedule?.extendLease(from: leaseFrom)
    if advance { schedule?.advance(past: sentAt) }
    let next = catchUp(now: now)
    return wasOutage ? [.keptAlive(lateness: lateness), .recovered, next] : [.keptAlive(lateness: lateness), next]
  }

  /// Sets the timer for the next beat. If the time of that beat passed while the previous one was in flight, the beat
  /// is due at once.
  private mutating func catchUp(now: Milliseconds) -> Action {
    guard let due = schedule?.due, due <= now else { return arm() }
    guard mode == .heartbeat || mode == .enforced else { return arm() }
    beatScheduled(at: now)
    return .setTimer(now)
  }

  /// Called when the server has refused a keep-alive for good: the session fails and sends no more beats. If the server
  /// refused a renewal while a heartbeat is in flight, the session still takes the token of the heartbeat's reply.
  mutating func beatRefused(_ failure: WireFailure, origin: Origin, operation: Operation) -> [Action] {
    if !isBeatInFlight { beatEnded() }
    if origin == .ssm, failure.isUnknownSession { newest.refuseAsUnknown() }
    var error = failure.error(origin, operation).stopping()
    error.orphanPossible = newest.isUnknownToServer && newest.mayHaveSuccessor
    lifecycle.failed(error)
    return [.cancelTimer, .failed(error)]
  }

  /// Called when a keep-alive has failed but a retry may succeed: the session retries it until the lease ends. If the
  /// retries fail too, the session reports one outage and continues its schedule.
  private mutating func beatFailed(
    _ failure: WireFailure, origin: Origin, operation: Operation, attempt: UInt32, sentAt: Milliseconds,
    now: Milliseconds
  ) -> [Action] {
    guard let schedule else { return [] }
    if let at = retryTime(schedule, after: failure, attempt: attempt, sentAt: sentAt, now: now) {
      retryScheduled(at: at, attempt: attempt &+ 1)
      return [.setTimer(at)]
    }
    return outage(failure.error(origin, operation).stopping(), now: now)
  }

  /// Called when a whole period has passed since the session asked the host for a renewal, and no renewal has come: the
  /// session reports this error, unless it has already reported an outage, and asks the host again.
  private mutating func renewalMissed(now: Milliseconds) -> [Action] {
    outage(UsherError(.renewalMissed, operation: .renewal, mustStop: true), now: now)
  }

  private mutating func outage(_ error: UsherError, now: Milliseconds) -> [Action] {
    let report: [Action]
    var failedPeriods: UInt32 = 1
    switch health {
    case .good, .doubtful: report = [.failed(error)]
    case .outage(let before):
      report = []
      failedPeriods = before &+ 1
    }
    periodsFailed(failedPeriods)
    if let most = policy.failuresMax, failedPeriods >= most {
      beatEnded()
      lifecycle.failed(error)
      return [.cancelTimer] + report
    }
    // If several beats became due during the retries, the session sends only one of them now, and skips the others.
    schedule?.advance(upTo: now)
    return report + [catchUp(now: now)]
  }

  /// Sets what keeps the session alive, as the first licence reply says. Later licence replies (key rotation) change
  /// nothing.
  /// - Parameter sentAt: when the licence request was sent.
  package mutating func modeDecided(
    _ newMode: KeepAliveMode, sentAt: Milliseconds, now: Milliseconds
  ) -> [Action] {
    guard isActive, case .awaited(let period) = firstLicense else { return [] }
    firstLicenseSeen()
    if let period {
      setMode(newMode)
      return beginSchedule(period: period, leaseFrom: sentAt, now: now)
    }
    guard newMode != mode else { return [] }
    setMode(newMode)
    switch beat {
    case .inFlight, .refused: return []  // the reply to the beat sets the timer for the new mode
    case .asked where newMode == .enforced: return []
    case .asked, .retrying: return [catchUp(now: now)]
    case .off, .waiting: return schedule == nil ? [] : [arm()]
    }
  }

  /// Called when the host is suspended, in any phase. If the policy says so, keep-alives pause until the host resumes,
  /// also those of a session that is not set up yet.
  package mutating func suspended() -> [Action] {
    guard policy.suspend == .pause else { return [] }
    isPaused = true
    return isActive ? [.cancelTimer] : []
  }

  /// Called when the host resumes: the session sends an overdue beat at once, and any other beat at its time.
  package mutating func resumed(now: Milliseconds) -> [Action] {
    let wasPaused = isPaused
    isPaused = false
    guard isActive, let due = schedule?.due else { return [] }
    switch beat {
    case .waiting(let sendAt):
      return now >= due ? sendBeat(attempt: 0, now: now) : (wasPaused ? [.setTimer(sendAt)] : [])
    case .retrying(let at, _): return wasPaused ? [.setTimer(at)] : []
    case .asked: return wasPaused ? [.setTimer(now.adding(period))] : []
    case .off, .inFlight, .refused: return []
    }
  }

  /// Called when the network is back or has changed: the session retries a failed beat at once, and does not wait for
  /// its retry time.
  package mutating func networkChanged(now: Milliseconds) -> [Action] {
    guard isActive, !isPaused else { return [] }
    switch (beat, health) {
    case (.retrying(_, let attempt), _): return sendBeat(attempt: attempt, now: now)
    case (.waiting, .outage): return sendBeat(attempt: 0, now: now)
    case (.waiting, .good), (.waiting, .doubtful), (.off, _), (.inFlight, _), (.refused, _), (.asked, _): return []
    }
  }

  /// Called with the period in the reply to a licence request that carried the session token. Such a reply changes the
  /// period only in customer SSM.
  /// - Parameter sentAt: when the licence request was sent.
  package mutating func periodChanged(
    _ field: PeriodField, sentAt: Milliseconds, now: Milliseconds
  ) -> [Action] {
    guard policy.opening == .customer, isActive else { return [] }
    if field.isZero, schedule != nil {
      schedule = nil
      beatEnded()
      return [.cancelTimer]
    }
    guard let new = policy.period(field), new != period else { return [] }
    guard schedule != nil else { return beginSchedule(period: new, leaseFrom: sentAt, now: now) }
    schedule?.change(period: new, start: now, leaseFrom: sentAt)
    if case .waiting = beat { return [arm()] }
    return []
  }
}

extension PeriodField {
  /// Whether the reply says that the session needs no keep-alives.
  var isZero: Bool {
    switch self {
    case .number(let number), .text(let number): return number == 0
    case .missing, .wrongType: return false
    }
  }
}
