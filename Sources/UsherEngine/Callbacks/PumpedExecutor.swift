internal import CPlatform

/// Runs host code only where the host pumps; a file descriptor says when.
package final class PumpedExecutor: CallbackExecutor {
  package enum PumpResult {
    case ran(Int)
    case busy, reentered
  }

  private let monitor = Monitor()
  private let onChange: (Int) -> Void
  private var jobs: [() -> Void] = []
  private var running = 0
  private var isPumping = false
  private var pumper: UInt64?
  private var isEnded = false
  /// The file descriptor is readable, or about to be.
  private var isSignalled = false
  private var afterPump: (() -> Void)?
  /// Readable while jobs are due.
  package let fileDescriptor: Int32

  /// nil: no file descriptor could be had.
  /// - Parameter onChange: called after each job with the number of those left, without a lock held.
  init?(onChange: @escaping (Int) -> Void) {
    self.onChange = onChange
    fileDescriptor = platform_eventfd_new()
    if fileDescriptor < 0 { return nil }
  }

  deinit { platform_fd_close(fileDescriptor) }

  package var pending: Int { monitor.locked { jobs.count + running } }

  /// They end when the host pumps.
  package func isBusy(_ lane: UInt64) -> Bool { false }

  package func enqueue(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool {
    monitor.locked {
      if isEnded { return false }
      jobs.append(job)
      if signal() { monitor.broadcast() }
      return true
    }
  }

  /// Also has `serve` look again.
  package func wake() {
    monitor.locked {
      signal()
      monitor.broadcast()
    }
  }

  /// Inside the lock. True: it became readable just now.
  @discardableResult
  private func signal() -> Bool {
    guard !jobs.isEmpty, !isSignalled else { return false }
    isSignalled = true
    platform_eventfd_signal(fileDescriptor)
    return true
  }

  /// Whether the calling thread is the one that pumped last: what it waits for could need itself.
  package var isPumpingThread: Bool { monitor.locked { pumper == platform_thread_self() } }

  /// Runs what is due now; what becomes due meanwhile waits.
  package func pump() -> PumpResult {
    if isCallbackThread() { return .reentered }
    let taken = monitor.locked { () -> [() -> Void]? in
      if isPumping { return nil }
      isPumping = true
      pumper = platform_thread_self()
      return take()
    }
    guard let taken else { return .busy }
    run(taken)
    let last = monitor.locked { () -> (() -> Void)? in
      isPumping = false
      signal()
      monitor.broadcast()
      defer { afterPump = nil }
      return afterPump
    }
    last?()
    return .ran(taken.count)
  }

  /// Inside the lock: all that is due. What comes now is told anew.
  private func take() -> [() -> Void] {
    platform_fd_drain(fileDescriptor)
    isSignalled = false
    defer { jobs = [] }
    running = jobs.count
    return jobs
  }

  private func run(_ taken: [() -> Void]) {
    for job in taken {
      withCallbackMark(job)
      let left = monitor.locked { () -> Int in
        running -= 1
        return jobs.count + running
      }
      onChange(left)
    }
  }

  /// From inside one of its callbacks: runs `work` on the pumping thread before its pump returns. False: this thread is not pumping it.
  package func afterThisPump(_ work: @escaping () -> Void) -> Bool {
    monitor.locked {
      guard isPumping, pumper == platform_thread_self() else { return false }
      afterPump = work
      return true
    }
  }

  /// For who frees the context: runs on the calling thread what is due now. False: nothing was.
  package func runDue() -> Bool {
    let taken = monitor.locked { () -> [() -> Void] in
      while isPumping { monitor.wait() }
      return take()
    }
    run(taken)
    return !taken.isEmpty
  }

  /// For who frees the context: runs what is due and what becomes so, as long as it waits for something that may need it.
  package func serve(while isWaiting: () -> Bool) {
    while isWaiting() {
      if !runDue() { monitor.locked { if jobs.isEmpty, isWaiting() { monitor.wait() } } }
    }
  }

  /// Waits for a pump of another thread, then runs what is left on the calling one.
  package func shutDown() {
    while true {
      let taken = monitor.locked { () -> [() -> Void] in
        while isPumping { monitor.wait() }
        if jobs.isEmpty { isEnded = true }
        return take()
      }
      if taken.isEmpty { return }
      run(taken)
    }
  }
}
