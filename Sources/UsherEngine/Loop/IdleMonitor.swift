internal import Synchronization

/// Notices when a context has nothing left to do, so that tests can wait for this and need not sleep. It wakes the
/// waiting threads only if the condition of at least one of them may hold: if it woke them each time, the I/O thread
/// would lose time.
package final class IdleMonitor {
  private struct Condition {
    let id: UInt64
    let transfers: Int
    let callbacks: Int
  }
  private let monitor = Monitor()
  private let activity = Atomic<UInt64>(0)
  private let waiting = Atomic<Int>(0)
  private var conditions: [Condition] = []
  private var lastCondition: UInt64 = 0
  private var isIdle = false
  private var transfers = 0
  /// Counts the changes that may have made the condition of a waiting thread true.
  private var changes: UInt64 = 0

  /// Called when a command or a callback was queued.
  func noteActivity() { activity.wrappingAdd(1, ordering: .sequentiallyConsistent) }

  /// Called when a callback has ended.
  /// - Parameter left: how many callbacks are still queued or running.
  func callbackEnded(left: Int) {
    // If no thread waits now, there is no thread to wake. A thread that begins to wait later sees that the callback has
    // ended.
    guard waiting.load(ordering: .sequentiallyConsistent) > 0 else { return }
    update { conditions.contains { $0.callbacks >= left } }
  }

  /// Called when the I/O thread has run all queued commands and is about to wait.
  func becameIdle(transfers: Int) {
    update {
      isIdle = true
      self.transfers = transfers
      return conditions.contains { $0.transfers >= transfers }
    }
  }

  func becameBusy() { monitor.locked { isIdle = false } }

  /// Runs `change` under the lock. If it returns true, a condition may hold now: wakes the waiting threads.
  private func update(_ change: () -> Bool) {
    monitor.change {
      let mayHold = change()
      if mayHold { changes &+= 1 }
      return mayHold
    }
  }

  /// Waits until at most `transfers` transfers and `callbacksMost` callbacks are queued or running.
  /// - Parameters:
  ///   - callbacks: how many callbacks are queued or running now.
  ///   - commandsWaiting: whether the I/O thread has commands to run.
  /// - Returns: false if `deadline` has passed.
  func wait(
    transfers most: Int, callbacksMost: Int, until deadline: Int64, callbacks: () -> Int, commandsWaiting: () -> Bool
  ) -> Bool {
    let condition = monitor.locked { () -> UInt64 in
      lastCondition &+= 1
      conditions.append(Condition(id: lastCondition, transfers: most, callbacks: callbacksMost))
      return lastCondition
    }
    waiting.add(1, ordering: .sequentiallyConsistent)
    defer {
      waiting.subtract(1, ordering: .sequentiallyConsistent)
      monitor.locked { conditions.removeAll { $0.id == condition } }
    }
    while true {
      let seen = monitor.locked { changes }
      // Check first whether commands wait, and then read `isIdle`. When the I/O thread has taken a command, the queue
      // may be empty, but `isIdle` is false until the command has run. In the other order, this thread would miss a
      // command that the I/O thread takes between the two reads.
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
