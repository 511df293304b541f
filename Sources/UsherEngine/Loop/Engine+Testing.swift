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
      return Pending(
        transfers: self.requests.inFlightCount, queued: self.requests.queuedCount,
        callbacks: self.calls.executor.pending,
        next: self.timers.next().map { $0.since(now) }, now: now)
    }
  }

  /// Waits until at most `transfers` transfers and `callbacks` callbacks are queued or running. Returns false if
  /// `milliseconds` of real time pass first.
  package func settle(transfers: Int, callbacks: Int, within milliseconds: UInt32) -> Bool {
    idle.wait(
      transfers: transfers, callbacksMost: callbacks, until: monotonicMilliseconds() &+ Int64(milliseconds),
      callbacks: { self.calls.executor.pending },
      commandsWaiting: { self.hasCommands })
  }

  /// Moves the manual clock forward, timer by timer.
  package func advance(_ duration: Milliseconds, settlingWithin settle: UInt32) -> Bool {
    let target = sync { self.clock.instant(in: duration) }
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

  /// Moves the manual clock forward in one step: a timer for an earlier time fires at the new time.
  package func jump(_ duration: Milliseconds) {
    sync {
      self.clock.set(self.clock.instant(in: duration))
      self.fireTimers()
    }
  }
}
