/// The commands that other threads submit to the I/O thread, in the order of submission.
final class CommandQueue {
  private let monitor = Monitor()
  private var commands: [() -> Void] = []
  private var isClosed = false

  enum Appended { case taken, refused, ended }

  /// Any thread: appends a command.
  /// - Parameters:
  ///   - isAllowed: runs under the lock, so that what it reads and notes has the order of the commands; false: the
  ///     queue refuses the command.
  ///   - wake: wakes the I/O thread. It runs under the lock, and only for the first command of an empty queue.
  /// - Returns: `ended` after `close`: the queue takes no command.
  func append(_ command: @escaping () -> Void, if isAllowed: () -> Bool, wake: () -> Void) -> Appended {
    monitor.locked {
      if isClosed { return .ended }
      guard isAllowed() else { return .refused }
      commands.append(command)
      // Wake under the lock, because after `close` the transport that `wake` uses no longer exists.
      if commands.count == 1 { wake() }
      return .taken
    }
  }

  var isEmpty: Bool { monitor.locked { commands.isEmpty } }

  func takeAll() -> [() -> Void] {
    monitor.locked {
      defer { commands = [] }
      return commands
    }
  }

  func close() { monitor.locked { isClosed = true } }
}
