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
      if let origin = session.request?.endpoint.origin {
        let headEnd = SlotLedger.HeadEnd(delegate: ObjectIdentifier(session), teardownOrigin: origin)
        slots.teardownBegan(session.slotID, at: headEnd)
        perform(session.session.tearDownRecovered(now: clock.now), session, recovery)
      } else {
        let text = "the options of this context do not allow the recorded request"
        session.error = session.error ?? UsherError(.invalidArgument, message: text)
        end(session, recovery)
        noLongerAwaited(recovery)
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

  func recoveryTimerFired(_ session: LeftSession) {
    if let recovery { perform(session.session.timerFired(now: clock.now), session, recovery) }
  }

  func recoveryReplied(_ session: LeftSession, _ request: RequestID, _ outcome: SSMOutcome) {
    if case .failure(let failure) = outcome { meter.failed(.ssm, failure) }
    if let recovery { perform(session.session.teardownReplied(request, outcome, now: clock.now), session, recovery) }
  }

  private func perform(_ actions: [SSMSession.Action], _ session: LeftSession, _ recovery: Recovery) {
    for action in actions {
      switch action {
      case .send(let request, _, _):
        guard let message = session.request else { continue }
        if session.session.isTeardownRetry { meter.teardownRepeated() }
        requests.send(message, for: .recovery(session, request))
      case .setTimer(let at):
        timers.cancel(session.timer)
        session.timer = timers.set(at: at, .recovery(session))
      case .cancelTimer:
        timers.cancel(session.timer)
        session.timer = 0
      case .teardownFailed(let error):
        meter.teardownFailed()
        session.error = error
      case .nextMayStart: noLongerAwaited(recovery)
      case .ended:
        slots.teardownEnded(session.slotID)
        end(session, recovery)
        retryRefusedSetups()
      // The library only tears this session down, so the machine never returns these actions.
      case .openAgain, .renewalDue, .awaitsSlot, .started, .periodRaised, .keptAlive, .recovered, .doubtful, .failed:
        break
      }
    }
  }

  /// Called once for each session: when the session is given back, or when its teardown takes too long or is not
  /// possible.
  private func noLongerAwaited(_ recovery: Recovery) {
    recovery.awaitedCount -= 1
    guard recovery.awaitedCount == 0 else { return }
    let waiting = recovery.waitingStarts
    recovery.waitingStarts = []
    for id in waiting {
      if let entry = playbacks[id] { step(entry) { $0.start(now: self.clock.now) } }
    }
  }

  // MARK: Reports

  /// Reports how the teardown of a session has ended. If a request was sent, but the server has not answered it, or has
  /// answered with HTTP 500 or more, the record stays in the journal for the next context that opens the journal.
  private func end(_ session: LeftSession, _ recovery: Recovery) {
    let error = session.error ?? UsherError(.ok)
    let isAnswered = error.origin == .local || (error.httpStatus > 0 && error.httpStatus < 500)
    if isAnswered { recovery.journal.remove(session) }
    events.emitForContext(.recoveredSlot, error)
  }

  /// Reports what has gone wrong with the journal since the last call.
  func reportJournalFault() {
    guard let journal = recovery?.journal, !journal.faults.isEmpty else { return }
    events.emitForContext(.journalError, UsherError(.system, message: journal.takeFaults()))
  }
}
