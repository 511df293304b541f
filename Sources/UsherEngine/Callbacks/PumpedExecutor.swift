internal import CPlatform

/// Runs host code only on the thread that calls `usher_context_pump()`. A file descriptor signals when jobs are due.
package final class PumpedExecutor: CallbackExecutor {
  package enum PumpResult {
    case ran(Int)
    case busy, reentered
  }

  private let monitor = Monitor()
  private let onChange: (Int) -> Void
  private var jobs = Fifo<() -> Void>()
  /// The jobs that the current turn still has to run. A turn is one pump, or one run of jobs by the thread that frees
  /// the context.
  private var due = Fifo<() -> Void>()
  private var isRunningJob = false
  /// Whether a thread has a turn now. Only one thread at a time may have a turn.
  private var isTurn = false
  /// The number of the thread that pumped last; before the first pump, the number of the thread that made the context.
  private var pumper = threadNumber()
  private var hasPumped = false
  private var isEnded = false
  /// Whether the file descriptor is readable, or is about to become readable.
  private var isSignalled = false
  private var afterTurn: [() -> Void] = []
  /// Readable while jobs are due.
  package let fileDescriptor: Int32

  /// Returns nil if the system gave no file descriptor.
  /// - Parameter onChange: a function that the executor calls after each job, with the number of jobs left, outside the
  ///   lock.
  static func make(onChange: @escaping (Int) -> Void) -> PumpedExecutor? {
    let descriptor = platform_eventfd_new()
    return descriptor < 0 ? nil : PumpedExecutor(descriptor, onChange)
  }

  private init(_ descriptor: Int32, _ onChange: @escaping (Int) -> Void) {
    self.onChange = onChange
    fileDescriptor = descriptor
  }

  deinit { platform_fd_close(fileDescriptor) }

  /// Call inside the lock.
  private var count: Int { jobs.count + due.count + (isRunningJob ? 1 : 0) }

  package var pending: Int { monitor.locked { count } }

  /// Returns false for every lane: jobs run only when the host pumps, so no thread may wait for them.
  package func afterCalls(of lane: UInt64, _ work: @escaping () -> Void) -> Bool { false }

  package func enqueueDestroy(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool { enqueue(lane, job) }

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

  /// Whether the calling thread made the last pump. Such a thread must not wait for a callback: perhaps no other thread
  /// pumps, and then the callback would never run.
  package var isPumpingThread: Bool {
    monitor.locked { hasPumped } && mayPumpHere
  }

  /// Whether callbacks may run on the calling thread in pumped mode: it is the thread that pumped last or, before the
  /// first pump, the thread that made the context.
  package var mayPumpHere: Bool {
    let me = threadNumber()
    return monitor.locked { pumper == me }
  }

  /// The executor whose pump has called the callback that the calling thread runs now; nil if the thread runs no
  /// callback of a pump.
  package static var ofThisCallback: PumpedExecutor? {
    let mark = callbackMark()
    guard mark > 1, let pointer = UnsafeMutableRawPointer(bitPattern: mark) else { return nil }
    return Unmanaged<PumpedExecutor>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// Runs the jobs that are due now; jobs that become due meanwhile wait for the next pump.
  package func pump() -> PumpResult {
    if isCallbackThread() { return .reentered }
    guard beginPump() else { return .busy }
    let taken = monitor.locked { take() }
    runTaken()
    endTurn()
    return .ran(taken)
  }

  /// Runs jobs, also those that become due meanwhile, until `isDone` returns true. The pumping thread calls this
  /// function while the thread waits outside callbacks. Does nothing if another thread pumps.
  func pump(until isDone: () -> Bool) {
    guard beginPump() else { return }
    while !isDone() {
      monitor.locked {
        if jobs.isEmpty, !isDone() { monitor.wait() }
        take()
      }
      runTaken()
    }
    endTurn()
  }

  /// Begins a turn on this thread (see `due`). Returns false if another thread has a turn now.
  private func beginPump() -> Bool {
    let me = threadNumber()
    return monitor.locked {
      if isTurn { return false }
      isTurn = true
      hasPumped = true
      pumper = me
      return true
    }
  }

  /// Call inside the lock, in a turn. Takes all due jobs; the next job that is enqueued makes the descriptor readable
  /// again. Returns how many jobs it took.
  @discardableResult
  private func take() -> Int {
    platform_fd_drain(fileDescriptor)
    isSignalled = false
    due = jobs
    jobs = Fifo()
    return due.count
  }

  private func runTaken() {
    while runOne() {
      onChange(
        monitor.locked {
          isRunningJob = false
          return count
        })
    }
  }

  private func endTurn() {
    let after = monitor.locked { () -> [() -> Void] in
      isTurn = false
      signal()
      monitor.broadcast()
      defer { afterTurn = [] }
      return afterTurn
    }
    for work in after { work() }
  }

  /// Runs one job. When this function returns, it has freed the job and everything that only the job held, so that no
  /// `destroy` runs after the turn.
  private func runOne() -> Bool {
    let next = monitor.locked { () -> (() -> Void)? in
      let job = due.popFirst()
      isRunningJob = job != nil
      return job
    }
    guard let next else { return false }
    withCallbackMark(next, mark: UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()))
    return true
  }

  /// Runs `work` when the current turn has ended, on the thread that has the turn. Returns false if no thread has a
  /// turn.
  package func afterThisTurn(_ work: @escaping () -> Void) -> Bool {
    monitor.locked {
      if isTurn { afterTurn.append(work) }
      return isTurn
    }
  }

  /// Runs the due jobs on the calling thread. Only the thread that frees the context calls this. Returns false if no
  /// job was due.
  package func runDue() -> Bool {
    let taken = monitor.locked { () -> Int in
      while isTurn { monitor.wait() }
      isTurn = true
      return take()
    }
    runTaken()
    endTurn()
    return taken > 0
  }

  /// Runs due jobs, and those that become due, while `isWaiting` returns true. The thread that frees the context calls
  /// this function.
  package func serve(while isWaiting: () -> Bool) {
    while isWaiting() {
      if !runDue() { monitor.locked { if jobs.isEmpty, isWaiting() { monitor.wait() } } }
    }
  }

  /// Waits until no other thread pumps, then runs the remaining jobs on the calling thread.
  package func shutDown() {
    while !monitor.locked({ endsNow() }) { _ = runDue() }
  }

  /// Call inside the lock.
  private func endsNow() -> Bool {
    while isTurn { monitor.wait() }
    isEnded = jobs.isEmpty
    return isEnded
  }
}
