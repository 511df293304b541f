internal import Synchronization

/// Knows when a context has nothing left to do, so that tests wait for that instead of sleeping.
package final class Quiet {
  private let monitor = Monitor()
  private let activity = Atomic<UInt64>(0)
  private var isIdle = false
  private var transfers = 0

  /// Something was handed to the I/O thread or the callback threads.
  func stir() { activity.wrappingAdd(1, ordering: .sequentiallyConsistent) }

  func notify() { monitor.locked { monitor.broadcast() } }

  /// The I/O thread has done all it can, and has seen all that was handed to it before.
  func idle(transfers: Int) {
    monitor.locked {
      isIdle = true
      self.transfers = transfers
      monitor.broadcast()
    }
  }

  func busy() { monitor.locked { isIdle = false } }

  /// Waits until no more than so many transfers and callbacks are under way.
  /// - Parameters:
  ///   - callbacks: how many are queued or running now.
  ///   - commandsWaiting: whether the I/O thread has not seen something yet.
  func wait(transfers most: Int, callbacksMost: Int, until deadline: Int64, callbacks: () -> Int, commandsWaiting: () -> Bool) -> Bool {
    while true {
      // In this order: a command that is no longer waiting was taken by an I/O thread that is not idle until it is done with it.
      let before = activity.load(ordering: .sequentiallyConsistent)
      let callbacksNow = callbacks()
      let hasCommands = commandsWaiting()
      let isSettled = monitor.locked { isIdle && transfers <= most }
      if isSettled, callbacksNow <= callbacksMost, !hasCommands, activity.load(ordering: .sequentiallyConsistent) == before { return true }
      let now = monotonicMilliseconds()
      if now >= deadline { return false }
      // A change between the look and the wait is caught by the short bound.
      monitor.locked { _ = monitor.wait(until: min(deadline, now &+ 20)) }
    }
  }
}
