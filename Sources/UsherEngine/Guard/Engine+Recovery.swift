internal import UsherCore

extension Engine {
  /// Tells the host what is wrong with the journal, and begins to give back the sessions that dead processes have left
  /// there. The engine calls it when the host adds its first observer, and before the host's first playback.
  func beginRecovery() {
    guard let recovery, !recovery.hasBegun else { return }
    recovery.hasBegun = true
    reportJournalFault()
    recovery.awaitedCount = recovery.journal.left.count
    for session in recovery.journal.left {
      do throws(UsherError) {
        session.request = try LeftSession.request(
          session.record, insecure: options.allowsInsecureHTTP, sendsCookies: options.transport.keepsCookies)
      } catch { session.error = error }
      if session.request != nil {
        tearDown(session)
      } else {
        let text = "the options of this context do not allow the recorded request"
        session.error = session.error ?? UsherError(.invalidArgument, message: text)
        end(session)
        noLongerAwaited()
      }
    }
  }

  /// Returns whether the start of this playback waits until the sessions of dead processes are given back. If so,
  /// `noLongerAwaited` starts the playback later. Until then, the account may have no free slot.
  func waitsForRecovery(_ id: PlaybackID) -> Bool {
    guard let recovery, recovery.awaitedCount > 0, playbacks[id]?.delegate.policy.hasSSM == true else { return false }
    recovery.waitingStarts.append(id)
    return true
  }

  func recoveryTimerFired(_ session: LeftSession) { perform(session.timerFired(now: clock.now), session) }

  func recoveryReplied(_ session: LeftSession, _ request: RequestID, _ outcome: SSMOutcome) {
    if case .failure(let failure) = outcome { meter.failed(.ssm, failure) }
    perform(session.teardownReplied(request, outcome, now: clock.now), session)
  }

  private func tearDown(_ session: LeftSession) {
    if let headEnd = session.headEnd { slots.teardownBegan(session.slotID, at: headEnd) }
    perform(session.tearDown(now: clock.now), session)
  }

  @inline(never)
  private func perform(_ actions: [SSMSession.Action], _ session: LeftSession) {
    for action in actions {
      switch action {
      case .send(let request, _, _):
        guard let message = session.request else { continue }
        if session.session.isTeardownRetry { meter.teardownRepeated() }
        requests.send(message, for: .recovery(session, request))
      case .setTimer(let at):
        timers.cancel(session.timer)
        session.timer = 0
        if case .playback = session.source, closing.hasBegun {
          slots.teardownEnded(session.slotID)
          continue
        }
        session.timer = timers.set(at: at, .recovery(session))
      case .cancelTimer:
        timers.cancel(session.timer)
        session.timer = 0
      case .teardownFailed(let error):
        if case .journal = session.source { meter.teardownFailed() }
        session.failed(error, now: clock.now)
      case .nextMayStart:
        if case .journal = session.source { noLongerAwaited() }
      case .ended:
        slots.teardownEnded(session.slotID)
        end(session)
        retryRefusedSetups()
      // The library only tears this session down, so the machine never returns these actions.
      case .openAgain, .renewalDue, .awaitsSlot, .started, .periodRaised, .keptAlive, .recovered, .doubtful, .failed:
        break
      }
    }
  }

  /// Called once for each session of the journal: when the session is given back, or when its teardown takes too long
  /// or is not possible.
  private func noLongerAwaited() {
    guard let recovery else { return }
    recovery.awaitedCount -= 1
    guard recovery.awaitedCount == 0 else { return }
    let waiting = recovery.waitingStarts
    recovery.waitingStarts = []
    for id in waiting {
      if let entry = playbacks[id] { step(entry) { $0.start(now: self.clock.now) } }
    }
  }

  // MARK: Teardowns of this context without an answer

  /// How many sessions without an answer to their teardown a context remembers: the newest ones. The journal has room
  /// for 64 records, so most of this room stays free for live sessions.
  private static var unansweredMost: Int { 16 }
  /// How many of their teardowns the library sends before a set-up, so that the set-up does not wait long behind them.
  private static var beforeSetupMost: Int { 4 }

  /// Called when a session has ended without an answer to its teardown, although the library repeated it.
  /// `retryUnanswered` sends the teardown again when an answer has become more likely, or is needed.
  func keepUnanswered(_ entry: PlaybackEntry, _ teardown: SSMSession.Unanswered) {
    // With customer SSM only the host knows the session.
    guard !entry.delegate.isCustomer, let request = entry.delegate.ssmRequest(.teardown, token: teardown.token)
    else { return }
    dropExpired()
    // A late reply may have brought a newer token of the same session.
    let session = LeftSession(
      entry.id, teardown, request, retries: entry.delegate.policy.teardownRetries,
      until: clock.now.adding(recordLifetime(entry)))
    unanswered.removeAll { $0.slotID == session.slotID }
    if unanswered.count >= Self.unansweredMost { drop(unanswered[0]) }
    unanswered.append(session)
  }

  /// Sends the teardowns without an answer once more: all; or before a set-up, the newest ones to this head-end.
  func retryUnanswered(at headEnd: SlotLedger.HeadEnd? = nil) {
    if unanswered.isEmpty { return }
    dropExpired()
    var most = headEnd == nil ? Self.unansweredMost : Self.beforeSetupMost
    for session in unanswered.reversed()
    where most > 0 && session.isReady(now: clock.now) && (headEnd == nil || headEnd == session.headEnd) {
      most -= 1
      tearDown(session)
    }
  }

  /// Called when the close of the context begins: sends no further retries of these teardowns.
  func endRetriesOfUnanswered() {
    for session in unanswered {
      timers.cancel(session.timer)
      session.timer = 0
      slots.teardownEnded(session.slotID)
    }
  }

  /// Forgets the sessions that the head-end no longer holds, because their leases have ended.
  func dropExpired() {
    for session in unanswered where session.until <= clock.now && !session.isGivingBack { drop(session) }
  }

  private func drop(_ session: LeftSession) {
    guard let index = unanswered.firstIndex(where: { $0 === session }) else { return }
    unanswered.remove(at: index)
    if case .playback(let id) = session.source { clearRecord(id) }
  }

  // MARK: Reports

  /// Called when the teardown of a session has ended. If a request was sent, but the server may still execute it when
  /// it comes again, the session stays: in the journal for the next context, or in `unanswered`.
  private func end(_ session: LeftSession) {
    let error = session.error ?? UsherError(.ok)
    let isOver = error.origin == .local || isFinalReply(httpStatus: error.httpStatus, serviceCode: error.serviceCode)
    switch session.source {
    case .journal:
      if isOver { recovery?.journal.remove(session) }
    case .playback:
      if isOver { drop(session) }
      // The host knows already that this teardown has failed.
      guard error.status == .ok else { return }
    }
    events.emitForContext(.recoveredSlot, error)
  }

  /// Reports what has gone wrong with the journal since the last call.
  func reportJournalFault() {
    guard let journal = recovery?.journal, !journal.faults.isEmpty else { return }
    events.emitForContext(.journalError, UsherError(.system, message: journal.takeFaults()))
  }
}
