internal import CPlatform

/// Runs host code only on the thread that calls `usher_context_pump()`. A file descriptor signals when jobs are due.
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
  /// Whether the file descriptor is readable, or is about to become readable.
  private var isSignalled = false
  private var afterPump: (() -> Void)?
  /// Readable while jobs are due.
  package let fileDescriptor: Int32

  /// Returns nil if the system gave no file descriptor.
  /// - Parameter onChange: called after each job, with the number of jobs left, outside the lock.
  static func make(onChange: @escaping (Int) -> Void) -> PumpedExecutor? {
    let descriptor = platform_eventfd_new()
    return descriptor < 0 ? nil : PumpedExecutor(descriptor, onChange)
  }

  private init(_ descriptor: Int32, _ onChange: @escaping (Int) -> Void) {
    self.onChange = onChange
    fileDescriptor = descriptor
  }

  deinit { platform_fd_close(fileDescriptor) }

  package var pending: Int { monitor.locked { jobs.count + running } }

  /// Always false: jobs run only when the host pumps, and a wait must not depend on the host.
  package func isBusy(_ lane: UInt64) -> Bool { false }

  package func enqueue(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool {
    monitor.locked {
      if isEnded { return false }
      jobs.append(job)
      if signal() { monitor.broadcast() }
      return true
    }
  }

  /// Makes the file descriptor readable if jobs are due, and makes `serve` check its condition again.
  package func wake() {
    monitor.locked {
      signal()
      monitor.broadcast()
    }
  }

  /// Call inside the lock. If jobs are due and the descriptor is not readable yet, makes it readable and returns true.
  @discardableResult
  private func signal() -> Bool {
    guard !jobs.isEmpty, !isSignalled else { return false }
    isSignalled = true
    platform_eventfd_signal(fileDescriptor)
    return true
  }

  /// Whether the calling thread made the last pump. If this thread waits for a callback, perhaps no thread pumps, and
  /// the wait never ends.
  package var isPumpingThread: Bool { monitor.locked { pumper == platform_thread_self() } }

  /// Runs the jobs that are due now; jobs that become due meanwhile wait for the next pump.
  package func pump() -> PumpResult {
    if isCallbackThread() { return .reentered }
    guard begin() else { return .busy }
    let taken = monitor.locked { take() }
    run(taken)
    end()
    return .ran(taken.count)
  }

  /// Runs jobs that are due, and jobs that become due, until `isDone` returns true. Called by the pumping thread while
  /// it waits outside callbacks. Does nothing if another thread pumps.
  func pump(until isDone: () -> Bool) {
    guard begin() else { return }
    while !isDone() {
      let taken = monitor.locked { () -> [() -> Void] in
        if jobs.isEmpty, !isDone() { monitor.wait() }
        return take()
      }
      run(taken)
    }
    end()
  }

  /// Returns false if a thread pumps already.
  private func begin() -> Bool {
    monitor.locked {
      if isPumping { return false }
      isPumping = true
      pumper = platform_thread_self()
      return true
    }
  }

  private func end() {
    let last = monitor.locked { () -> (() -> Void)? in
      isPumping = false
      signal()
      monitor.broadcast()
      defer { afterPump = nil }
      return afterPump
    }
    last?()
  }

  /// Call inside the lock. Takes all due jobs; the next job that is enqueued makes the descriptor readable again.
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

  /// Runs `work` on the pumping thread before the current pump returns. Call this in a callback of that pump; returns
  /// false if the calling thread is not pumping.
  package func afterThisPump(_ work: @escaping () -> Void) -> Bool {
    monitor.locked {
      guard isPumping, pumper == platform_thread_self() else { return false }
      afterPump = work
      return true
    }
  }

  /// Runs the due jobs on the calling thread, which frees the context. Returns false if no job was due.
  package func runDue() -> Bool {
    let taken = monitor.locked { () -> [() -> Void] in
      while isPumping { monitor.wait() }
      return take()
    }
    run(taken)
    return !taken.isEmpty
  }

  /// Runs due jobs, and those that become due, while `isWaiting` returns true. Called by the thread that frees the
  /// context.
  package func serve(while isWaiting: () -> Bool) {
    while isWaiting() {
      if !runDue() { monitor.locked { if jobs.isEmpty, isWaiting() { monitor.wait() } } }
    }
  }

  /// Waits until no other thread pumps, then runs the remaining jobs on the calling thread.
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
