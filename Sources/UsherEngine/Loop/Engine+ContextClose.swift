package import UsherCore

/// The close of the whole context, and the threads that wait for it.
extension Engine {
  /// Any thread: begins to close all playbacks.
  /// - Parameter limit: how long freeing the context may wait until they are closed; 0: the default time. nil: the time
  ///   limit of an earlier call stays valid; without an earlier call, `ContextClosing.longest` limits that wait.
  package func beginClosing(within limit: Milliseconds? = nil) {
    submit(noting: { closing.noteRequest(within: limit) }) {
      guard self.closing.begin() else { return }
      self.endConnectingAhead()
      self.endRetriesOfUnanswered()
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
