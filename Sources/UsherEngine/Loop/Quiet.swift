internal import Synchronization

/// Knows when a context has nothing left to do, so that tests wait for that instead of sleeping. Who waits is woken when what it waits for may have come, and
/// not before: the I/O thread would else spend its time on waking it.
package final class Quiet {
  private struct Wish {
    let id: UInt64
    let transfers: Int
    let callbacks: Int
  }
  private let monitor = Monitor()
  private let activity = Atomic<UInt64>(0)
  private let waiting = Atomic<Int>(0)
  private var wishes: [Wish] = []
  private var lastWish: UInt64 = 0
  private var isIdle = false
  private var transfers = 0
  /// Counts what may have fulfilled a wish.
  private var changes: UInt64 = 0

  /// Something was handed to the I/O thread or the callback threads.
  func stir() { activity.wrappingAdd(1, ordering: .sequentiallyConsistent) }

  /// A callback has ended; so many are left.
  func callbackEnded(left: Int) {
    // Who begins to wait after this look finds the callback ended.
    guard waiting.load(ordering: .sequentiallyConsistent) > 0 else { return }
    tell { wishes.contains { $0.callbacks >= left } }
  }

  /// The I/O thread has done all it can, and has seen all that was handed to it before.
  func idle(transfers: Int) {
    tell {
      isIdle = true
      self.transfers = transfers
      return wishes.contains { $0.transfers >= transfers }
    }
  }

  func busy() { monitor.locked { isIdle = false } }

  /// Wakes who waits if `happen`, inside the lock, may have fulfilled a wish.
  private func tell(_ happen: () -> Bool) {
    monitor.change {
      let isNews = happen()
      if isNews { changes &+= 1 }
      return isNews
    }
  }

  /// Waits until no more than so many transfers and callbacks are under way.
  /// - Parameters:
  ///   - callbacks: how many are queued or running now.
  ///   - commandsWaiting: whether the I/O thread has not seen something yet.
  func wait(
    transfers most: Int, callbacksMost: Int, until deadline: Int64, callbacks: () -> Int, commandsWaiting: () -> Bool
  ) -> Bool {
    let wish = monitor.locked { () -> UInt64 in
      lastWish &+= 1
      wishes.append(Wish(id: lastWish, transfers: most, callbacks: callbacksMost))
      return lastWish
    }
    waiting.add(1, ordering: .sequentiallyConsistent)
    defer {
      waiting.subtract(1, ordering: .sequentiallyConsistent)
      monitor.locked { wishes.removeAll { $0.id == wish } }
    }
    while true {
      let seen = monitor.locked { changes }
      // In this order: a command that is no longer waiting was taken by an I/O thread that is not idle until it is done with it.
      let before = activity.load(ordering: .sequentiallyConsistent)
      let callbacksNow = callbacks()
      let hasCommands = commandsWaiting()
      let isSettled = monitor.locked { isIdle && transfers <= most }
      if isSettled, callbacksNow <= callbacksMost, !hasCommands,
        activity.load(ordering: .sequentiallyConsistent) == before
      {
        return true
      }
      let isLate = monitor.locked { () -> Bool in
        while changes == seen { if !monitor.wait(until: deadline) { return monotonicMilliseconds() >= deadline } }
        return monotonicMilliseconds() >= deadline
      }
      if isLate { return false }
    }
  }
}
