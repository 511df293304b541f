internal import CPlatform

/// A thread that makes the system write the journal to the disk: at once after the first change, and then at most once
/// a second. So the I/O thread never waits for the disk.
final class JournalSync {
  private let file: JournalFile
  private let monitor = Monitor()
  private var isChanged = false
  private var isEnding = false
  /// The result of the last platform_file_sync(); a negative errno says why the system did not write to the disk.
  private var result: Int32 = 0
  private var thread: UInt64 = 0
  private static var pause: Int64 { 1000 }

  private init(_ file: JournalFile) { self.file = file }

  /// Starts the thread for a file.
  /// - Returns: nil if the system does not start a thread.
  static func start(_ file: JournalFile) -> JournalSync? {
    let sync = JournalSync(file)
    let me = Unmanaged.passRetained(sync)
    guard platform_thread_start(runSync, me.toOpaque(), 0, &sync.thread) == 0 else {
      me.release()
      return nil
    }
    return sync
  }

  /// Called when the journal has changed.
  /// - Returns: negative if the disk did not write the last changes.
  func noteChange() -> Int32 {
    var last: Int32 = 0
    monitor.change {
      last = result
      defer { isChanged = true }
      return !isChanged
    }
    return last
  }

  /// Ends the thread. If the thread is in a call that writes to the disk, waits until this call returns.
  func stop() {
    monitor.change {
      isEnding = true
      return true
    }
    platform_thread_join(thread)
  }

  fileprivate func run() {
    while waitForChange() {
      let end = monotonicMilliseconds() &+ Self.pause
      let result = platform_file_sync(file.descriptor)
      monitor.locked {
        self.result = result
        while !isEnding, monitor.wait(until: end) {}
      }
    }
  }

  /// Waits until the journal has changed.
  /// - Returns: false if the thread must end.
  private func waitForChange() -> Bool {
    monitor.locked {
      while !isChanged, !isEnding { monitor.wait() }
      isChanged = false
      return !isEnding
    }
  }
}

private func runSync(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  beginThread("usher-journal")
  if let argument { Unmanaged<JournalSync>.fromOpaque(argument).takeRetainedValue().run() }
  return nil
}
