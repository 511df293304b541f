/// What other threads want the I/O thread to do, in the order of submission.
final class CommandQueue {
  private let monitor = Monitor()
  private var commands: [() -> Void] = []
  private var isClosed = false

  /// Any thread.
  /// - Parameter wake: wakes the I/O thread. It runs under the lock, and only for the first command of an empty queue.
  /// - Returns: false after `close`; the command was not taken.
  func append(_ command: @escaping () -> Void, wake: () -> Void) -> Bool {
    monitor.locked {
      if isClosed { return false }
      commands.append(command)
      // Under the lock, because after `close` the transport that `wake` uses is gone.
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
