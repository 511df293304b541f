internal import CPlatform

/// The commands that other threads submit to the I/O thread, in the order of submission. The queue is bounded: if a
/// thread submits commands faster than the I/O thread runs them, the thread waits. This cannot deadlock, because the
/// I/O thread runs no host code and waits for no callback.
final class CommandQueue {
  private let monitor = Monitor()
  private let most: Int
  private var commands = Fifo<() -> Void>()
  /// The commands that the I/O thread has taken and not run yet. Only the I/O thread uses this property.
  private var taken = Fifo<() -> Void>()
  /// The command that the I/O thread performs part by part. Only the I/O thread uses this property.
  private var round: CommandRound?
  /// The I/O thread. This thread must not wait in `append`, because only it takes commands out of the queue.
  private var consumer: UInt64?
  private var waiters = 0
  private var isClosed = false

  enum Appended { case taken, refused, ended }

  /// - Parameter most: how many commands may wait before `append` blocks.
  init(most: Int) { self.most = most }

  /// Any thread: appends a command. While the queue is full, a thread other than the I/O thread waits.
  /// - Parameters:
  ///   - isAllowed: if it returns false, the queue refuses the command. The queue calls it under its lock, directly
  ///     before it appends the command. So it sees everything that the `isAllowed` of an earlier command has changed.
  ///   - wake: wakes the I/O thread. `wake` runs under the lock, and only for the first command of an empty queue.
  /// - Returns: `ended` after `close`: the queue takes no command.
  func append(_ command: @escaping () -> Void, if isAllowed: () -> Bool, wake: () -> Void) -> Appended {
    monitor.locked {
      while commands.count >= most, !isClosed, consumer != platform_thread_self() {
        waiters += 1
        monitor.wait()
        waiters -= 1
      }
      if isClosed { return .ended }
      guard isAllowed() else { return .refused }
      commands.append(command)
      // Wake the I/O thread under the lock: after `close`, the transport that `wake` uses no longer exists.
      if commands.count == 1 { wake() }
      return .taken
    }
  }

  /// Any thread: whether no command waits. The commands that the I/O thread has taken do not count.
  var isEmpty: Bool { monitor.locked { commands.isEmpty } }

  /// I/O thread: takes all commands that wait; `runNext` runs them one by one. Does nothing while commands that it took
  /// earlier have not run yet.
  func take() {
    guard taken.isEmpty else { return }
    let mustSignal = monitor.locked { () -> Bool in
      consumer = platform_thread_self()
      swap(&taken, &commands)
      return waiters > 0
    }
    if mustSignal { monitor.broadcast() }
  }

  /// I/O thread: whether commands that `take` took have not run completely yet.
  var hasTaken: Bool { round != nil || !taken.isEmpty }

  /// I/O thread: runs the next command that `take` took. If that command is a `CommandRound`, each call performs it on
  /// one playback.
  /// - Returns: false if no command is left.
  func runNext() -> Bool {
    if let round, let id = round.next() {
      round.perform(id)
      return true
    }
    round = nil
    guard let command = taken.popFirst() else { return false }
    command()
    return true
  }

  /// Only a command calls this. In each turn, the loop performs the round for a few of its playbacks. Later commands
  /// wait until the loop has performed the round for all of them.
  func begin(_ round: CommandRound) { self.round = round }

  /// Refuses further commands. The threads that wait in `append` return.
  func close() {
    monitor.change {
      isClosed = true
      return true
    }
  }
}
