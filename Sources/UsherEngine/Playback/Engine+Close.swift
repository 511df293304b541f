package import UsherCore

/// The close of one playback and of the whole context, and the threads that wait for it.
extension Engine {
  // MARK: One playback

  /// Any thread: closes a playback. If an earlier close left the session at the head-end, and this close asks for a
  /// teardown, this close tears that session down.
  /// - Parameters:
  ///   - ending: what to do with the session; nil: the default of the delegate.
  ///   - isFreed: whether the host frees the handle. If so, the host can no longer ask to tear down a session that it
  ///     left.
  ///   - timeout: how long to wait until the playback is closed; 0: do not wait.
  /// - Returns: false if the host asked for a teardown of a session that was left, and the library no longer has the
  ///   token.
  package func closePlayback(
    _ playback: PlaybackShared, _ ending: SSMSession.Ending?, freeing isFreed: Bool = false,
    waiting timeout: Milliseconds = 0
  ) -> Bool {
    if ending == .teardown, !isOpen(playback) {
      let answer = Wait<Bool>()
      closeAndWait({}, timeout) {
        answer.end(self.tearDownLeft(playback))
        return playback.id
      }
      return answer.wait()
    }
    closeAndWait({ playback.requestClose() }, timeout) {
      if let entry = self.playbacks[playback.id] {
        self.close(entry, ending, .closed)
        if isFreed, entry.machine.session.isLeft {
          playback.noteLeftForGood()
          _ = self.playbacks.remove(entry)
        }
      }
      return playback.id
    }
    return true
  }

  /// Any thread: runs `close` on the I/O thread and waits at most `timeout` until the playback that `close` returns is
  /// closed. With a `timeout` of 0 this function does not wait.
  func closeAndWait(_ note: () -> Void, _ timeout: Milliseconds, _ close: @escaping () -> PlaybackID) {
    let wait = timeout > 0 ? Wait<Status>() : nil
    submit(noting: note) {
      let id = close()
      if let wait { self.waitForClose(wait, id, timeout) }
    }
    if let wait { _ = end(of: wait, within: timeout) }
  }

  /// Waits until the I/O thread ends `wait`, at the latest after `timeout`. If another thread has freed the context,
  /// the I/O thread and the timer of `wait` no longer exist. Then this thread ends `wait` itself after `timeout`: this
  /// thread must not wait longer for a callback that blocks.
  private func end(of wait: Wait<Status>, within timeout: Milliseconds?) -> Status {
    if let timeout, !clock.isManual, wait.wait(until: monotonicMilliseconds() &+ Int64(clamping: timeout)) == nil {
      submit { wait.end(.timeout) }
    }
    return wait.wait()
  }

  /// Tears down the session that an earlier close left at the head-end. Does nothing if none was left.
  /// - Returns: false if the session was left and the library does not have its token.
  func tearDownLeft(_ playback: PlaybackShared) -> Bool {
    guard let entry = playbacks[playback.id] else { return !playback.isLeftForGood }
    guard entry.machine.session.isLeft else { return true }
    guard entry.machine.session.mayTearDownLeft else { return false }
    entry.tearsDownLeft = true
    step(entry) { $0.tearDownLeft(now: self.clock.now) }
    if !entry.machine.session.isGivingBack { entry.tearsDownLeft = false }
    return true
  }

  func close(_ entry: PlaybackEntry, _ ending: SSMSession.Ending?, _ status: Status) {
    requests.withoutStartingQueued { closeNow(entry, ending, status) }
  }

  private func closeNow(_ entry: PlaybackEntry, _ ending: SSMSession.Ending?, _ status: Status) {
    KillPoint.pass("close")
    // Publish the state first, so that all later callbacks see the playback as ended.
    entry.shared.publish(.ended)
    if !entry.machine.isClosing { endSetupWaits(entry, status) }
    // The queue keeps the commands in order, so the engine has handled every answer that the host gave before it asked
    // to close. From here on at the latest, the questions refuse answers, except those that stay open when the playback
    // closes. `shut` also stops the deadline of a question.
    let questions = entry.questions.filter { $0.atClose != .staysOpen && $0.shut() }
    let queued =
      entry.jobs.values.map { $0.transfer } + entry.abandoned.values.map { $0.transfer } + [entry.callTransfer]
    timers.cancel(entry.tokenTimer)
    releaseMappedTokens(entry)
    // These requests of the host must complete before PLAYBACK_CLOSED, the last event of a playback.
    for question in questions where question.atClose == .completesBeforeClosed { question.end(status) }
    endCertificates(of: entry, status)
    endLoads(entry, status)
    step(entry) { $0.close(ending ?? $0.ending(isZap: false), status: status, now: self.clock.now) }
    // Take the queued licence requests, and the queued set-up or heartbeat, out of the queue: the transport must not
    // send them after the teardown or after the end of the playback.
    for id in queued { handle(requests.withdrawQueued(id)) }
    // The machine is closing now. So when these questions end without an answer, the machine reports no error.
    for question in questions where question.atClose == .endsAfterwards { question.end(status) }
  }

  func reportClosed(_ entry: PlaybackEntry, _ status: Status, orphanPossible: Bool) {
    var error = UsherError(status == .replaced ? .replaced : .ok)
    error.orphanPossible = orphanPossible
    if let onDrop = entry.onDrop { onDrop() } else { events.emit(.playbackClosed, entry, error: error) }
    entry.onDrop = nil
    endCloseWaits(entry)
    entry.callbacks = PlaybackCallbacks()
    entry.lastPayload = nil
  }

  /// Called when the context ends. If the playback is not closed, or if its late teardown (`tearsDownLeft`) has not
  /// ended, reports its end with `orphanPossible`: the server may still have the session.
  func reportUnfinished(_ entry: PlaybackEntry) {
    guard !entry.machine.isClosed || entry.tearsDownLeft else { return }
    let session = entry.machine.session
    if session.isGivingBack, session.tokenGeneration > 0 || entry.tearsDownLeft {
      var error = UsherError(.timeout, origin: .ssm, operation: .teardown)
      error.message = "the context was freed before the answer"
      error.orphanPossible = true
      events.emit(.teardownError, entry, error: error)
      events.emit(.sessionEnded, entry)
    }
    if !entry.machine.isClosed { reportClosed(entry, .closed, orphanPossible: true) }
  }

  // MARK: Waits

  func endSetupWaits(_ entry: PlaybackEntry, _ status: Status, _ failure: UsherError? = nil) {
    entry.setupStatus = status
    for wait in entry.setupWaits {
      wait.failure = failure
      end(wait, status)
    }
    entry.setupWaits = []
  }

  /// Sets the timer that ends `wait` after `timeout`; nil: sets no timer.
  /// - Parameter playback: the playback for which the thread waits; 0: the thread waits for the close of the context.
  private func bound(_ wait: Wait<Status>, _ timeout: Milliseconds?, _ playback: PlaybackID) {
    if let timeout { wait.timer = timers.set(at: clock.now.adding(timeout), .wait(wait, playback)) }
  }

  func waitTimedOut(_ wait: Wait<Status>, _ playback: PlaybackID) {
    if playback == 0 {
      closing.remove(wait)
    } else if let entry = playbacks[playback] {
      entry.setupWaits.removeAll { $0 === wait }
      entry.closeWaits.removeAll { $0 === wait }
    }
    wait.end(.timeout)
  }

  func end(_ wait: Wait<Status>, _ status: Status) {
    timers.cancel(wait.timer)
    wait.end(status)
  }

  /// Any thread, not in a callback: waits until set-up has ended.
  /// - Parameter isPumping: whether the thread runs callbacks while it waits.
  package func waitForSession(
    _ id: PlaybackID, _ timeout: Milliseconds, pumping isPumping: Bool = false
  ) -> UsherError {
    let pump = isPumping ? calls.pump : nil
    let wait = Wait<Status>(onEnd: pump.map { pump in { pump.wake() } })
    submit {
      guard let entry = self.playbacks[id] else { return wait.end(.closed) }
      if let failure = entry.machine.session.failure {
        wait.failure = failure
        return wait.end(failure.status)
      }
      if let status = entry.setupStatus { return wait.end(status) }
      if entry.needsLicenseRequest {
        wait.failure = UsherError(.state, message: "the session begins with the first licence request")
        return wait.end(.state)
      }
      entry.setupWaits.append(wait)
      self.bound(wait, timeout, id)
    }
    pump?.pump { wait.isEnded }
    let status = wait.wait()
    return wait.failure ?? UsherError(status)
  }

  /// Ends the wait of a thread that waits for the close of the playback. The wait ends when no callback of the playback
  /// is queued or running (a `destroy` does not count), so that the observers have received all events before the
  /// thread continues. In pumped mode observers run only when the host pumps, so there the wait ends at once.
  private func endCloseWait(_ wait: Wait<Status>, _ id: PlaybackID) {
    let endsLater = calls.executor.afterCalls(of: id) {
      wait.end(.ok)
      self.submit { self.timers.cancel(wait.timer) }
    }
    if !endsLater { end(wait, .ok) }
  }

  func endCloseWaits(_ entry: PlaybackEntry) {
    for wait in entry.closeWaits { endCloseWait(wait, entry.id) }
    entry.closeWaits = []
  }

  /// Any thread, not in a callback: waits until a playback is closed.
  package func waitForClose(_ id: PlaybackID, _ timeout: Milliseconds?) -> Status {
    let wait = Wait<Status>()
    submit { self.waitForClose(wait, id, timeout) }
    return end(of: wait, within: timeout)
  }

  /// Ends `wait` when the playback is closed. If the host has asked to tear down a session that the playback left,
  /// `wait` ends when that teardown has ended.
  private func waitForClose(_ wait: Wait<Status>, _ id: PlaybackID, _ timeout: Milliseconds?) {
    bound(wait, timeout, id)
    guard let entry = playbacks[id], !entry.machine.isClosed || entry.tearsDownLeft else {
      return endCloseWait(wait, id)
    }
    entry.closeWaits.append(wait)
  }

  // MARK: The context

  /// Any thread: begins to close all playbacks.
  /// - Parameter limit: how long freeing the context may wait until they are closed; 0: the default time. nil: the time
  ///   limit of an earlier call stays valid; without an earlier call, `ContextClosing.longest` limits that wait.
  package func beginClosing(within limit: Milliseconds? = nil) {
    submit(noting: { closing.noteRequest(within: limit) }) {
      guard self.closing.begin() else { return }
      self.endConnectingAhead()
      self.requests.withoutStartingQueued {
        // First close the playbacks that wait to start, so that none of them starts when the playback before it ends.
        let entries = self.playbacks.sortedIDs.compactMap { self.playbacks[$0] }
        for entry in entries where entry.machine.isWaiting { self.close(entry, nil, .closed) }
        for entry in entries where !entry.machine.isClosing { self.close(entry, nil, .closed) }
      }
      self.closing.endWaitsIfDone()
    }
  }

  /// Any thread, not in a callback, after `beginClosing`: waits until all playbacks are closed, or until the time limit
  /// has passed. This function also waits for replies that may bring a session token, and tears the session of such a
  /// token down.
  /// - Parameter limit: 0: the default time.
  /// - Returns: how many playbacks are still open.
  package func waitUntilClosed(atMost limit: Milliseconds) -> Int {
    waitForAllClosed(within: ContextClosing.limit(limit))
    return sync { self.closing.openCount }
  }

  /// Any thread, after `beginClosing`: waits as `waitUntilClosed(atMost:)` does, but at most until an instant of real
  /// time (monotonic milliseconds). This function does not run callbacks, and does not wait for callbacks.
  package func waitUntilClosed(until instant: Int64) {
    let wait = Wait<Status>()
    submit { self.closing.add(wait) }
    _ = wait.wait(until: instant)
  }

  private func waitForAllClosed(within timeout: Milliseconds) {
    let wait = Wait<Status>()
    waitForAllClosed(wait, within: timeout)
    _ = wait.wait()
  }

  /// Any thread, after `beginClosing`: emits CONTEXT_CLOSED when all playbacks are closed, or when the time limit has
  /// passed.
  /// - Parameter limit: 0: the default time.
  package func reportClosed(within limit: Milliseconds) {
    // No thread waits here: the closure runs on the I/O thread when the wait ends.
    let wait = Wait<Status>(onEnd: {
      self.events.emitForContext(.contextClosed, UsherError(self.closing.isDone ? .ok : .timeout))
    })
    waitForAllClosed(wait, within: ContextClosing.limit(limit))
  }

  /// Any thread: ends the wait when all playbacks are closed, or when `timeout` has passed.
  private func waitForAllClosed(_ wait: Wait<Status>, within timeout: Milliseconds) {
    submit {
      self.bound(wait, timeout, 0)
      self.closing.add(wait)
    }
  }

  /// Waits, at most one second, until the callbacks for the last events have run. In pumped mode it does not wait,
  /// because callbacks run only when the host pumps.
  package func settleCallbacks() {
    if calls.pump == nil { _ = settle(transfers: .max, callbacks: 0, within: 1000) }
  }

  /// Waits until all playbacks are closed, or until the time limit has passed. The thread that frees the context calls
  /// this function. In pumped mode, the function itself runs the callbacks that the close needs (a customer's
  /// teardown), because the host no longer pumps. On the manual clock, the function moves the clock.
  package func finishClosing() {
    beginClosing()
    // If the host has already asked to close the context, the rest of that call's time limit counts.
    let left = closing.left ?? sync { self.closing.longest }
    if options.isManualClock { return moveClockUntilClosed(within: left) }
    guard let pump = calls.pump else { return waitForAllClosed(within: left) }
    let closed = Wait<Status>(onEnd: { pump.wake() })
    waitForAllClosed(closed, within: left)
    pump.serve { !closed.isEnded }
  }

  private func moveClockUntilClosed(within timeout: Milliseconds) {
    if timeout == 0 { return }
    let end = sync { self.clock.instant(in: timeout) }
    while true {
      _ = settle(transfers: 0, callbacks: calls.pump == nil ? 0 : .max, within: 1000)
      if calls.pump?.runDue() == true { continue }
      let isDone = sync { () -> Bool in
        guard !self.closing.isDone, let next = self.timers.next(), next <= end else { return true }
        self.clock.set(next)
        self.fireTimers()
        return false
      }
      if isDone { return }
    }
  }
}
