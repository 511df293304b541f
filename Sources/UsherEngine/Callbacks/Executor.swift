internal import CPlatform

/// Runs host code: one lane per playback, in order; different lanes in parallel. The I/O thread only ever enqueues.
package protocol CallbackExecutor: AnyObject {
  /// Any thread. False: it has shut down, and the caller runs the job itself if it must run.
  func enqueue(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool
  /// Jobs queued or running.
  var pending: Int { get }
  /// Whether some of the lane are that end without the host's doing.
  func isBusy(_ lane: UInt64) -> Bool
  /// Runs what is queued, then ends. Not from a callback.
  func shutDown()
}

/// Callback threads, made as callbacks block, up to a cap.
final class ThreadedExecutor: CallbackExecutor {
  private final class Lane {
    var jobs = Fifo<() -> Void>()
    var isScheduled = false
  }
  private let monitor = Monitor()
  private let cap: Int
  private let onChange: (Int) -> Void
  private var lanes: [UInt64: Lane] = [:]
  private var ready = Fifo<UInt64>()
  private var threads = 0
  private var idle = 0
  /// A thread was sent for and has not come yet. One at a time: it takes what is ready, and sends for the next where more is; so short callbacks of many
  /// lanes are run by few threads, and those that block hold up nobody.
  private var isComing = false
  private var jobCount = 0
  private var isEnding = false
  /// The thread that ended last. Each joins the one before it, so that after `shutDown` none is left, nor what the host keeps by thread.
  private var lastEnded: UInt64?

  /// - Parameter onChange: called after each job with the number of those left, from a callback thread, without a lock held.
  init(cap: Int, onChange: @escaping (Int) -> Void) {
    self.cap = max(1, cap)
    self.onChange = onChange
  }

  var pending: Int { monitor.locked { jobCount } }

  func isBusy(_ lane: UInt64) -> Bool { monitor.locked { lanes[lane] != nil } }

  func enqueue(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool {
    var help = Help.none
    let accepted = monitor.locked { () -> Bool in
      if isEnding && threads == 0 { return false }
      let queue = lanes[lane] ?? Lane()
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

  /// Inside the lock: who is to come for what is ready, and is counted as coming; `bring` has it come.
  private func sendForOne() -> Help {
    guard !isComing, !ready.isEmpty, idle > 0 || threads < cap else { return .none }
    isComing = true
    if idle > 0 { return .waking }
    threads += 1
    return .starting
  }

  /// After the lock, since who is woken would else have to wait for it at once.
  private func bring(_ help: Help) {
    switch help {
    case .none: break
    case .waking: monitor.signal()
    case .starting: startThread()
    }
  }

  private func startThread() {
    let me = Unmanaged.passRetained(self)
    if platform_thread_start(runExecutorThread, me.toOpaque(), 0, nil) != 0 {
      me.release()
      // Those that run take the work; with none running it waits for the next try.
      monitor.locked {
        threads -= 1
        isComing = false
        monitor.broadcast()
      }
    }
  }

  fileprivate func work() {
    platform_thread_key_set(callbackThreadKey, 1)
    var before: UInt64?
    var isNew = true
    while let lane = runOne(&before, isNew: isNew) {
      isNew = false
      onChange(done(lane))
    }
    if let before { platform_thread_join(before) }
  }

  /// The job, and what it alone held, are gone when this returns.
  private func runOne(_ before: inout UInt64?, isNew: Bool) -> UInt64? {
    guard let (lane, job) = next(&before, isNew: isNew) else { return nil }
    job()
    return lane
  }

  /// nil: this thread ends, and joins `before`.
  private func next(_ before: inout UInt64?, isNew: Bool) -> (UInt64, () -> Void)? {
    var help = Help.none
    let found = monitor.locked { () -> (UInt64, () -> Void)? in
      if isNew { isComing = false }
      while true {
        if let lane = ready.popFirst() {
          guard let job = lanes[lane]?.jobs.popFirst() else { continue }
          // Before it runs, since it may block.
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
        if isEnding { monitor.broadcast() }  // else those that rest would rest anew
        return nil
      }
    }
    bring(help)
    return found
  }

  /// How many jobs are left.
  private func done(_ lane: UInt64) -> Int {
    monitor.locked {
      jobCount -= 1
      guard let queue = lanes[lane] else { return jobCount }
      if queue.jobs.isEmpty {
        lanes.removeValue(forKey: lane)
      } else {
        // The thread that is done with one looks for the next.
        ready.append(lane)
      }
      if isEnding { monitor.broadcast() }
      return jobCount
    }
  }

  func shutDown() {
    let help = monitor.locked { () -> Help in
      isEnding = true
      return threads == 0 ? sendForOne() : .none
    }
    monitor.broadcast()
    bring(help)
    let last = monitor.locked { () -> UInt64? in
      while threads > 0 { monitor.wait() }
      defer { lastEnded = nil }
      return lastEnded
    }
    if let last { platform_thread_join(last) }
  }
}

private func runExecutorThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let argument { Unmanaged<ThreadedExecutor>.fromOpaque(argument).takeRetainedValue().work() }
  return nil
}

/// Marks the threads that run host code.
private let callbackThreadKey: platform_thread_key = {
  var key: platform_thread_key = 0
  _ = platform_thread_key_new(&key)
  return key
}()

/// Marks the thread while host code runs on it.
func withCallbackMark(_ job: () -> Void) {
  let before = platform_thread_key_get(callbackThreadKey)
  platform_thread_key_set(callbackThreadKey, 1)
  job()
  platform_thread_key_set(callbackThreadKey, before)
}

/// Whether host code runs on this thread right now, so that a wait could be one for itself.
package func isCallbackThread() -> Bool { platform_thread_key_get(callbackThreadKey) != 0 }
