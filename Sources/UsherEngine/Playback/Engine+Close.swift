package import UsherCore

/// The close of one playback, and the threads that wait for it or for the set-up of the session.
extension Engine {
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
    let queued = entry.jobs.values.map { $0.transfer } + [entry.callTransfer]
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
  func bound(_ wait: Wait<Status>, _ timeout: Milliseconds?, _ playback: PlaybackID) {
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
}
