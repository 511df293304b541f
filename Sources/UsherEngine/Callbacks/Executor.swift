internal import CPlatform
internal import Synchronization

/// Runs host code. Each playback has a lane: jobs of one lane run in order, different lanes run in parallel. The I/O
/// thread only enqueues jobs.
package protocol CallbackExecutor: AnyObject {
  /// Any thread: queues a job. Returns false after `shutDown`: then the executor never runs the job, and the caller
  /// itself must run a job that must not be lost.
  func enqueue(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool
  /// Does the same as `enqueue` with a job that frees host data. `afterCalls` does not wait for this job.
  func enqueueDestroy(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool
  /// The number of jobs queued or running. Work that `afterCalls` has accepted counts too, until this work has run.
  var pending: Int { get }
  /// Runs `work` as soon as the lane has no queued or running job that `enqueue` added; a job that `enqueue` adds in
  /// the meantime counts too. `work` runs on the thread that ran the last of these jobs. Returns false, and does not
  /// run `work`, if the lane has no such job now. In pumped mode this function always returns false: jobs run only when
  /// the host pumps, so no thread may wait for them.
  func afterCalls(of lane: UInt64, _ work: @escaping () -> Void) -> Bool
  /// Runs the queued jobs, then ends the threads. Must not be called in a callback.
  func shutDown()
}

/// Runs host code on callback threads. A new thread starts when all others are busy, up to a limit. If the system does
/// not start a thread, the running threads run the jobs. If no thread runs, the jobs wait until the owner calls
/// `startThreads` again.
final class ThreadedExecutor: CallbackExecutor {
  private struct Job {
    let run: () -> Void
    /// Whether `afterCalls` waits for this job.
    let isCall: Bool
  }
  private final class Lane {
    var jobs = Fifo<Job>()
    var isScheduled = false
    /// How many jobs of the lane that are calls (`isCall`) are queued or running.
    var calls = 0
    /// Whether the job that a thread has taken from `jobs` is a call (`isCall`).
    var runsCall = false
    /// What `afterCalls` runs when `calls` becomes 0.
    var afterwards: [() -> Void] = []
  }
  private let monitor = Monitor()
  private let cap: Int
  private let onChange: (Int) -> Void
  private var lanes: [UInt64: Lane] = [:]
  private var ready = Fifo<UInt64>()
  private var threads = 0
  private var idle = 0
  /// Whether this executor has woken or started a thread that has not taken a job yet. At most one thread at a time is
  /// in this state. This thread takes a job and, before it runs the job, wakes or starts the next thread if more lanes
  /// are ready. So few threads run many short callbacks, and a callback that blocks delays no other lane.
  private var isComing = false
  private var jobCount = 0
  private var isEnding = false
  private var onStarved: (() -> Void)?
  /// The thread that ended last. Each thread that ends joins the thread that ended before it. So after `shutDown` all
  /// threads have ended, and the system has freed the host's thread-local storage of these threads.
  private var lastEnded: UInt64?

  /// - Parameter onChange: a function that the executor calls after each job, with the number of jobs left, on a
  ///   callback thread, outside the lock.
  init(cap: Int, onChange: @escaping (Int) -> Void) {
    self.cap = max(1, cap)
    self.onChange = onChange
  }

  var pending: Int { monitor.locked { jobCount } }

  func enqueue(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool { add(lane, Job(run: job, isCall: true)) }

  func enqueueDestroy(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool { add(lane, Job(run: job, isCall: false)) }

  func afterCalls(of lane: UInt64, _ work: @escaping () -> Void) -> Bool {
    monitor.locked {
      guard let queue = lanes[lane], queue.calls > 0 else { return false }
      queue.afterwards.append(work)
      jobCount += 1
      return true
    }
  }

  private func add(_ lane: UInt64, _ job: Job) -> Bool {
    var help = Help.none
    let accepted = monitor.locked { () -> Bool in
      if isEnding && threads == 0 { return false }
      let queue = lanes[lane] ?? Lane()
      if job.isCall { queue.calls += 1 }
      lanes[lane] = queue
      queue.jobs.append(job)
      jobCount += 1
      if !queue.isScheduled {
        queue.isScheduled = true
        ready.append(lane)
      }
      help = sendForOne()
      return true
    }
    bring(help)
    return accepted
  }

  private enum Help { case none, waking, starting }

  /// Call inside the lock. Decides whether the ready lanes need one more thread; `bring` then wakes or starts that
  /// thread.
  @inline(never)
  private func sendForOne() -> Help {
    guard !isComing, !ready.isEmpty, idle > 0 || threads < cap else { return .none }
    isComing = true
    if idle > 0 { return .waking }
    threads += 1
    return .starting
  }

  /// Call after unlocking, so that the woken thread does not block on the lock. Returns false if the system did not
  /// start the thread.
  @discardableResult @inline(never)
  private func bring(_ help: Help) -> Bool {
    switch help {
    case .none: return true
    case .waking:
      monitor.signal()
      return true
    case .starting: return startThread()
    }
  }

  private func startThread() -> Bool {
    let me = Unmanaged.passRetained(self)
    if platform_thread_start(runExecutorThread, me.toOpaque(), 0, nil) == 0 { return true }
    me.release()
    let starved = monitor.locked { () -> (() -> Void)? in
      threads -= 1
      isComing = false
      monitor.broadcast()
      return onStarved
    }
    starved?()
    return false
  }

  /// Sets the function that runs, on any thread, when the system did not start a thread; nil removes it.
  func setOnStarved(_ call: (() -> Void)?) { monitor.locked { onStarved = call } }

  /// Any thread: wakes or starts a thread if jobs wait for one. Returns false if the system did not start the thread.
  func startThreads() -> Bool { bring(monitor.locked { sendForOne() }) }

  fileprivate func work() {
    beginThread("usher-callback")
    platform_thread_key_set(threadKeys.mark, 1)
    var before: UInt64?
    var isNew = true
    while let lane = runOne(&before, isNew: isNew) {
      isNew = false
      onChange(done(lane))
    }
    if let before { platform_thread_join(before) }
  }

  /// Runs one job. When this function returns, it has freed the job and everything that only the job held.
  private func runOne(_ before: inout UInt64?, isNew: Bool) -> UInt64? {
    guard let (lane, job) = next(&before, isNew: isNew) else { return nil }
    job()
    return lane
  }

  /// Waits for the next job and returns it. Returns nil if this thread must end; the thread then joins `before`.
  private func next(_ before: inout UInt64?, isNew: Bool) -> (UInt64, () -> Void)? {
    var help = Help.none
    let found = monitor.locked { () -> (UInt64, () -> Void)? in
      if isNew { isComing = false }
      while true {
        if let lane = ready.popFirst() {
          guard let job = take(lane) else { continue }
          // Decide whether another thread must start, before this thread runs the job: the job may block.
          help = sendForOne()
          return (lane, job)
        }
        var isDone = isEnding
        if !isDone {
          idle += 1
          let woken = monitor.wait(until: platform_monotonic_ms() &+ 5000)
          idle -= 1
          isComing = false
          isDone = !woken && ready.isEmpty && !isEnding
        }
        guard isDone else { continue }
        threads -= 1
        before = lastEnded
        lastEnded = platform_thread_self()
        if isEnding { monitor.broadcast() }  // wakes the idle threads too, so that they end
        return nil
      }
    }
    bring(help)
    return found
  }

  /// Call inside the lock.
  private func take(_ lane: UInt64) -> (() -> Void)? {
    guard let queue = lanes[lane], let job = queue.jobs.popFirst() else { return nil }
    queue.runsCall = job.isCall
    return job.run
  }

  /// Called when the job of this lane has ended. If no call of the lane is left, runs the work of `afterCalls`, outside
  /// the lock. The next job of the lane starts only after this work. Returns the number of jobs that are left.
  private func done(_ lane: UInt64) -> Int {
    let (left, afterwards) = monitor.locked { () -> (Int, [() -> Void]) in
      jobCount -= 1
      var afterwards: [() -> Void] = []
      if let queue = lanes[lane] {
        if queue.runsCall { queue.calls -= 1 }
        if queue.calls == 0 { swap(&afterwards, &queue.afterwards) }
      }
      return (afterwards.isEmpty ? leave(lane) : 0, afterwards)
    }
    if afterwards.isEmpty { return left }
    for work in afterwards { work() }
    return monitor.locked {
      jobCount -= afterwards.count
      return leave(lane)
    }
  }

  /// Call inside the lock. Lets the next job of the lane run. Returns the number of jobs that are left.
  @inline(never)
  private func leave(_ lane: UInt64) -> Int {
    guard let queue = lanes[lane] else { return jobCount }
    if queue.jobs.isEmpty {
      lanes.removeValue(forKey: lane)
    } else {
      // This thread takes its next job in a moment, so do not wake another thread for this lane.
      ready.append(lane)
    }
    if isEnding { monitor.broadcast() }
    return jobCount
  }

  func shutDown() {
    monitor.locked { isEnding = true }
    monitor.broadcast()
    while let help = monitor.locked({ helpAtEnd() }) {
      bring(help)
      workHereIfNoThreadRuns()
    }
    let last = monitor.locked { () -> UInt64? in
      defer { lastEnded = nil }
      return lastEnded
    }
    if let last { platform_thread_join(last) }
  }

  /// Call inside the lock. Waits until all threads have ended, or until jobs have waited 100 ms for a thread. Returns
  /// whether the caller must wake or start a thread for the jobs; nil if no thread and no job is left.
  private func helpAtEnd() -> Help? {
    while threads > 0 { if !monitor.wait(until: platform_monotonic_ms() &+ 100), !ready.isEmpty { break } }
    return ready.isEmpty && threads == 0 ? nil : sendForOne()
  }

  /// If the system starts no callback thread, runs the queued jobs on the calling thread. The thread that ends the
  /// context calls this function.
  private func workHereIfNoThreadRuns() {
    let isAlone = monitor.locked { () -> Bool in
      guard threads == 0 else { return false }
      threads = 1
      return true
    }
    if isAlone { withCallbackMark { while let lane = runOneHere() { onChange(done(lane)) } } }
  }

  /// Runs one job, as `runOne` does, but on the thread that ends the context. Never waits for a job.
  private func runOneHere() -> UInt64? {
    let next = monitor.locked { () -> (UInt64, () -> Void)? in
      while let lane = ready.popFirst() {
        if let job = take(lane) { return (lane, job) }
      }
      threads -= 1
      return nil
    }
    guard let (lane, job) = next else { return nil }
    job()
    return lane
  }
}

private func runExecutorThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let argument { Unmanaged<ThreadedExecutor>.fromOpaque(argument).takeRetainedValue().work() }
  return nil
}

/// Keys of thread-local values.
private struct ThreadKeys {
  /// 0 while the thread runs no host code. While it runs host code: the address of the `PumpedExecutor` that runs it,
  /// or 1 if no `PumpedExecutor` does.
  var mark: platform_thread_key = 0
  /// The number of the thread; 0: the thread has no number yet.
  var number: platform_thread_key = 0
  var areMade = false

  init() { areMade = platform_thread_key_new(&mark) == 0 && platform_thread_key_new(&number) == 0 }
}
private let threadKeys = ThreadKeys()
private let lastThreadNumber = Atomic<UInt64>(0)

/// Returns false if the process has no thread-specific key left for the mark and the number of a thread.
package func ensureCallbackMark() -> Bool { threadKeys.areMade }

/// Runs `job`, and meanwhile marks the thread as one that runs host code.
/// - Parameter mark: the mark to set. nil: the thread keeps its mark, or gets the mark 1 if it has none.
package func withCallbackMark(_ job: () -> Void, mark: UInt? = nil) {
  guard threadKeys.areMade else { return job() }
  let before = callbackMark()
  platform_thread_key_set(threadKeys.mark, mark ?? max(before, 1))
  job()
  platform_thread_key_set(threadKeys.mark, before)
}

func callbackMark() -> UInt { threadKeys.areMade ? platform_thread_key_get(threadKeys.mark) : 0 }

/// Returns whether the calling thread is inside a callback. A call that waits there could wait for the callback itself
/// and deadlock.
package func isCallbackThread() -> Bool { callbackMark() != 0 }

/// Returns the number of the calling thread. No other thread of the process ever gets this number, whereas the system
/// gives the identifier of an ended thread to a new thread.
func threadNumber() -> UInt64 {
  let known = platform_thread_key_get(threadKeys.number)
  if known != 0 { return UInt64(known) }
  let number = lastThreadNumber.wrappingAdd(1, ordering: .relaxed).newValue
  platform_thread_key_set(threadKeys.number, UInt(number))
  return number
}
