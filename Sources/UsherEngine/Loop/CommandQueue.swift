/// The commands that other threads submit to the I/O thread, in the order of submission.
final class CommandQueue {
  private let monitor = Monitor()
  private var commands: [() -> Void] = []
  private var isClosed = false

  /// Any thread: appends a command.
  /// - Parameter wake: wakes the I/O thread. It runs under the lock, and only for the first command of an empty queue.
  /// - Returns: false after `close`: the queue did not take the command.
  func append(_ command: @escaping () -> Void, wake: () -> Void) -> Bool {
    monitor.locked {
      if isClosed { return false }
      commands.append(command)
      // Wake under the lock, because after `close` the transport that `wake` uses no longer exists.
      if commands.count == 1 { wake() }
      return true
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
