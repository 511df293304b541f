internal import UsherCore

/// Handles everything that happens to a playback: the engine passes the event to the playback's machine, the machine
/// returns actions, and the engine performs them in order.
extension Engine {
  /// Passes an event to a playback's machine and performs the actions that the machine returns. If the engine performs
  /// the actions of another step now, the new step waits until the engine has performed all of those. So the actions
  /// keep their order.
  func step(_ entry: PlaybackEntry, _ happen: @escaping (inout PlaybackMachine) -> [PlaybackMachine.Action]) {
    guard steps.begin() else { return steps.append { self.stepNow(entry, happen) } }
    stepNow(entry, happen)
    performWaitingSteps()
  }

  private func performWaitingSteps() { while let next = steps.next() { next() } }

  private func stepNow(_ entry: PlaybackEntry, _ happen: (inout PlaybackMachine) -> [PlaybackMachine.Action]) {
    KillPoint.pass("step")
    let before = entry.machine.standing()
    let actions = happen(&entry.machine)
    // Update the recovery record before the actions, which may take some time. If the host dies meanwhile, the record
    // has the newest token.
    if recordKeeper != nil || recovery != nil { updateRecord(entry) }
    let after = entry.machine.standing()
    entry.shared.publish(after.sessionState)
    meter.changed(from: before.sessionState, to: after.sessionState)
    // Update the ledger of slots first, because the step may have ended a teardown. If one of the actions sends a
    // set-up, the ledger must already count this teardown as ended.
    noteSlot(entry, from: before, to: after)
    KillPoint.pass("actions")
    perform(actions, entry)
    KillPoint.pass("performed")
    if before.isGivingBack, !after.isGivingBack {
      if let teardown = entry.machine.unanswered { keepUnanswered(entry, teardown) }
      if entry.tearsDownLeft {
        entry.tearsDownLeft = false
        endCloseWaits(entry)
      }
      retryRefusedSetups()
    }
    if entry.setupStatus == nil, after.sessionState == .none, !after.isWaiting { endSetupWaits(entry, .ok) }
    if after.isFinished, playbacks.remove(entry) { timers.cancel(entry.sessionTimer) }
    closing.playbackChanged(from: before, to: after)
  }

  private func perform(_ actions: [PlaybackMachine.Action], _ entry: PlaybackEntry) {
    for action in actions {
      switch action {
      case .sendSSM(let request, let call, let token): sendSSM(entry, request, call, token)
      case .sendLicense(let request, let license, let content, let session, let renewal):
        sendLicense(entry, request, license, content: content, session: session, isRenewal: renewal)
      case .setTimer(let at):
        timers.cancel(entry.sessionTimer)
        entry.sessionTimer = timers.set(at: at, .session(entry.id))
      case .cancelTimer:
        timers.cancel(entry.sessionTimer)
        entry.sessionTimer = 0
      case .askToken: askToken(entry)
      case .awaitToken(let atMost):
        timers.cancel(entry.tokenTimer)
        entry.tokenTimer = timers.set(at: clock.now.adding(atMost), .token(entry.id))
      case .askPayload(let keySystem): askPayload(entry, keySystem)
      case .report(let report): emit(report, entry)
      case .deliverLicense(let license, let data): deliver(entry, license, data)
      case .failLicense(let license, let error): fail(entry, license, error)
      case .nextMayStart: startNext(after: entry)
      case .closed(let status, let orphanPossible): reportClosed(entry, status, orphanPossible: orphanPossible)
      }
    }
  }

  private func emit(_ report: PlaybackMachine.Report, _ entry: PlaybackEntry) {
    switch report {
    case .awaitsSlot(let error): events.emit(.waitingForSlot, entry, error: error)
    case .started(let period):
      meter.sessionStarted()
      events.emit(.sessionStarted, entry, period: period)
      endSetupWaits(entry, .ok)
    case .periodRaised(let asked, let period):
      guard events.logs(.warning) else { return }
      var line = LogLine(entry, "the server asked for a heartbeat every ")
      line.add(asked)
      line.add(" ms; the library sends one every ")
      line.add(period)
      line.add(" ms")
      events.write(.warning, line)
    case .setupError(let error):
      events.emit(.setupError, entry, error: error)
      endSetupWaits(entry, error.status, error)
    case .heartbeatError(let error): events.emit(.heartbeatError, entry, error: error)
    case .teardownError(let error, let afterClosed):
      meter.teardownFailed()
      guard afterClosed, !entry.tearsDownLeft else {
        return events.emit(.teardownError, entry, error: error)
      }
      // The session token came after PLAYBACK_CLOSED. No event may follow PLAYBACK_CLOSED, so only the log reports the
      // failure.
      guard events.logs(.warning) else { return }
      var line = LogLine(entry, "a session that came late could not be given back: ")
      line.add(error)
      events.write(.warning, line)
    case .keptAlive(let lateness):
      meter.keptAlive(lateness: lateness)
      events.emit(.keptAlive, entry, lateness: lateness)
    case .recovered: events.emit(.recovered, entry)
    case .doubtful: events.emit(.sessionDoubtful, entry)
    case .ended(let left): events.emit(.sessionEnded, entry, isLeft: left)
    case .sessionless: events.emit(.noSession, entry)
    }
  }

  // MARK: Slots

  private func noteSlot(
    _ entry: PlaybackEntry, from before: PlaybackMachine.Standing, to after: PlaybackMachine.Standing
  ) {
    if before.waitsForOwnTeardowns != after.waitsForOwnTeardowns {
      if after.waitsForOwnTeardowns {
        slots.setupWaits(entry.id, at: entry.headEnd)
      } else {
        slots.setupWaitsNoLonger(entry.id)
      }
    }
    if before.isGivingBack != after.isGivingBack {
      if after.isGivingBack {
        slots.teardownBegan(entry.id, at: entry.headEnd)
      } else {
        slots.teardownEnded(entry.id)
      }
    }
  }

  /// Called before a request that sets up a session. Before the first such request of a playback, sends the teardowns
  /// once more that got no answer. If the head-end refuses the set-up because of them, the library repeats the set-up
  /// when they have ended.
  func noteSetup(_ entry: PlaybackEntry) {
    entry.slotsAtSetup = slots.mark
    if entry.machine.session.isFirstSetup { retryUnanswered(at: entry.headEnd) }
  }

  func retryRefusedSetups() {
    for id in slots.readyToRetry {
      if let entry = playbacks[id] { step(entry) { $0.ownTeardownsEnded(now: self.clock.now) } }
    }
  }

  /// Returns whether other playbacks are giving slots back to the head-end of `entry`, or have given one back since the
  /// playback of `entry` asked for its session.
  func ownTeardowns(besides entry: PlaybackEntry) -> SSMSession.OwnTeardowns {
    slots.ownTeardowns(besides: entry.id, at: entry.headEnd, since: entry.slotsAtSetup)
  }

  // MARK: The session's requests and timer

  private func sendSSM(_ entry: PlaybackEntry, _ request: RequestID, _ call: SSMSession.Call, _ token: Secret) {
    if entry.delegate.isCustomer { return askCustomer(entry, request, call) }
    guard let message = entry.delegate.ssmRequest(call, token: token) else { return }
    message.isRetry = call == .heartbeat && entry.machine.isKeepAliveRetry()
    if call == .teardown, entry.machine.isTeardownRetry() { meter.teardownRepeated() }
    if call == .setup { noteSetup(entry) }
    secrets.note(token, of: entry)
    let now = clock.now
    let isBeat = call == .heartbeat
    let id = requests.send(
      message, for: .ssm(entry.id, request, call),
      atMost: isBeat ? entry.machine.keepAliveTimeout(now: now) : .never,
      ifReceived: isBeat ? entry.machine.longestKeepAliveTimeout(now: now) : 0,
      connectingAgainFrom: message.isRetry ? entry.machine.connectsAgainFrom() : .never)
    if call != .teardown { entry.callTransfer = id }
  }

  func ssmReplied(
    _ playback: PlaybackID, _ request: RequestID, _ call: SSMSession.Call, _ outcome: SSMOutcome,
    queueDelay: Milliseconds = 0
  ) {
    guard let entry = playbacks[playback] else { return }
    // This does the same as `step`, but allocates no closure for each heartbeat.
    guard steps.begin() else {
      return steps.append { self.ssmRepliedNow(entry, request, call, outcome, queueDelay: queueDelay) }
    }
    ssmRepliedNow(entry, request, call, outcome, queueDelay: queueDelay)
    performWaitingSteps()
  }

  private func ssmRepliedNow(
    _ entry: PlaybackEntry, _ request: RequestID, _ call: SSMSession.Call, _ outcome: SSMOutcome,
    queueDelay: Milliseconds
  ) {
    switch outcome {
    case .success(let fields): secrets.note(fields, of: entry)
    case .failure(let failure): meter.failed(.ssm, failure)
    }
    let others = call == .setup ? ownTeardowns(besides: entry) : .none
    stepNow(entry) {
      $0.ssmReplied(request, call, outcome, ownTeardowns: others, queueDelay: queueDelay, now: clock.now)
    }
  }

  func sessionTimerFired(_ id: PlaybackID) {
    guard let entry = playbacks[id] else { return }
    entry.sessionTimer = 0
    guard steps.begin() else {
      return steps.append { self.stepNow(entry) { $0.timerFired(now: self.clock.now) } }
    }
    stepNow(entry) { $0.timerFired(now: clock.now) }
    performWaitingSteps()
  }
}
