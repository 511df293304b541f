internal import Synchronization
package import UsherCore

extension Engine {
  package struct Pending {
    package let transfers: Int
    package let queued: Int
    package let callbacks: Int
    package let next: Milliseconds?
    package let now: Milliseconds
  }

  package func pending() -> Pending {
    sync {
      let now = self.clock.now
      let waiting = self.queue.waitingCount
      return Pending(
        transfers: self.transfers.count - waiting, queued: waiting, callbacks: self.executor.pending,
        next: self.timers.next().map { $0.since(now) }, now: now)
    }
  }

  /// Waits until no more than so many transfers and callbacks are under way; false when the real time given ran out.
  package func settle(transfers: Int, callbacks: Int, within milliseconds: UInt32) -> Bool {
    quiet.wait(
      transfers: transfers, callbacksMost: callbacks, until: monotonicMilliseconds() &+ Int64(milliseconds),
      callbacks: { self.executor.pending },
      commandsWaiting: { self.hasCommands })
  }

  /// Moves the manual clock on, timer by timer.
  package func advance(_ duration: Milliseconds, settlingWithin settle: UInt32) -> Bool {
    let target = sync { self.clock.now.adding(duration) }
    var allSettled = true
    while true {
      if settle > 0, !self.settle(transfers: 0, callbacks: 0, within: settle) { allSettled = false }
      let isThere = sync { () -> Bool in
        guard let next = self.timers.next(), next <= target else {
          self.clock.set(target)
          return true
        }
        self.clock.set(next)
        self.fireTimers()
        return false
      }
      if isThere { break }
    }
    if settle > 0, !self.settle(transfers: 0, callbacks: 0, within: settle) { allSettled = false }
    return allSettled
  }

  /// Moves the manual clock on at one blow.
  package func jump(_ duration: Milliseconds) {
    sync {
      self.clock.set(self.clock.now.adding(duration))
      self.fireTimers()
    }
  }
}

extension Engine {
  /// Waits until all playbacks are closed, for who frees the context. What of that is the host's to do (a customer's teardown) runs here in pumped mode, since
  /// nobody pumps any more. On the manual clock nobody else moves time, so this does.
  package func finishClosing(within timeout: Milliseconds) {
    beginClosing()
    if options.isManualClock { return moveClockUntilClosed(within: timeout) }
    // One cap for the whole of closing, also where the host waited for a part of it before.
    let passed = Milliseconds(max(0, monotonicMilliseconds() &- closingBegan.load(ordering: .relaxed)))
    guard let pump else {
      _ = close(within: timeout.since(passed))
      return
    }
    let closed = Wait<Status>(onEnd: { pump.wake() })
    waitForAllClosed(closed, within: timeout.since(passed))
    pump.serve { !closed.isEnded }
  }

  private func moveClockUntilClosed(within timeout: Milliseconds) {
    let end = sync { self.clock.now.adding(timeout) }
    while true {
      _ = settle(transfers: 0, callbacks: pump == nil ? 0 : .max, within: 1000)
      if pump?.runDue() == true { continue }
      let isDone = sync { () -> Bool in
        guard !self.isAllClosed, let next = self.timers.next(), next <= end else { return true }
        self.clock.set(next)
        self.fireTimers()
        return false
      }
      if isDone { return }
    }
  }
}
