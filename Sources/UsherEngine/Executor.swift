internal import CPlatform

/// Runs host code: one lane per playback, in order; different lanes in parallel. The I/O thread only ever enqueues.
package protocol CallbackExecutor: AnyObject {
  /// Any thread. False: it has shut down, and the caller runs the job itself if it must run.
  func enqueue(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool
  /// Jobs queued or running.
  var pending: Int { get }
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
  private let onChange: () -> Void
  private var lanes: [UInt64: Lane] = [:]
  private var ready = Fifo<UInt64>()
  private var threads = 0
  private var idle = 0
  private var jobCount = 0
  private var isEnding = false
  /// The thread that ended last. Each joins the one before it, so that after `shutDown` none is left, nor what the host keeps by thread.
  private var lastEnded: UInt64?

  /// - Parameter onChange: called after each job, from a callback thread, without a lock held.
  init(cap: Int, onChange: @escaping () -> Void) {
    self.cap = max(1, cap)
    self.onChange = onChange
  }

  var pending: Int { monitor.locked { jobCount } }

  func enqueue(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool {
    var mustStart = false
    let accepted = monitor.locked { () -> Bool in
      if isEnding && threads == 0 { return false }
      let queue = lanes[lane] ?? Lane()
      lanes[lane] = queue
      queue.jobs.append(job)
      jobCount += 1
      if !queue.isScheduled {
        queue.isScheduled = true
        ready.append(lane)
        if idle >= ready.count {
          monitor.signal()
        } else if threads < cap {
          threads += 1
          mustStart = true
        }
      }
      return true
    }
    if mustStart { startThread() }
    return accepted
  }

  private func startThread() {
    let me = Unmanaged.passRetained(self)
    if up_thread_start(runExecutorThread, me.toOpaque(), 0, nil) != 0 {
      me.release()
      // Those that run take the work; with none running it waits for the next try.
      monitor.locked { threads -= 1; monitor.broadcast() }
    }
  }

  fileprivate func work() {
    up_key_set(callbackThreadKey, 1)
    var before: UInt64?
    while let lane = runOne(&before) {
      done(lane)
      onChange()
    }
    if let before { up_thread_join(before) }
  }

  /// The job, and what it alone held, are gone when this returns.
  private func runOne(_ before: inout UInt64?) -> UInt64? {
    guard let (lane, job) = next(&before) else { return nil }
    job()
    return lane
  }

  /// nil: this thread ends, and joins `before`.
  private func next(_ before: inout UInt64?) -> (UInt64, () -> Void)? {
    monitor.locked {
      while true {
        if let lane = ready.popFirst() {
          if let job = lanes[lane]?.jobs.popFirst() { return (lane, job) }
          continue
        }
        var isDone = isEnding
        if !isDone {
          idle += 1
          let woken = monitor.wait(until: up_monotonic_ms() &+ 5000)
          idle -= 1
          isDone = !woken && ready.isEmpty && !isEnding
        }
        guard isDone else { continue }
        threads -= 1
        before = lastEnded
        lastEnded = up_thread_self()
        if isEnding { monitor.broadcast() }  // else those that rest would rest anew
        return nil
      }
    }
  }

  private func done(_ lane: UInt64) {
    monitor.locked {
      jobCount -= 1
      guard let queue = lanes[lane] else { return }
      if queue.jobs.isEmpty {
        lanes.removeValue(forKey: lane)
      } else {
        ready.append(lane)
        if idle > 0 { monitor.signal() }
      }
      if isEnding { monitor.broadcast() }
    }
  }

  func shutDown() {
    let mustStart = monitor.locked { () -> Bool in
      isEnding = true
      monitor.broadcast()
      if threads == 0 && jobCount > 0 { threads += 1; return true }
      return false
    }
    if mustStart { startThread() }
    let last = monitor.locked { () -> UInt64? in
      while threads > 0 { monitor.wait() }
      defer { lastEnded = nil }
      return lastEnded
    }
    if let last { up_thread_join(last) }
  }
}

private func runExecutorThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let argument { Unmanaged<ThreadedExecutor>.fromOpaque(argument).takeRetainedValue().work() }
  return nil
}

/// Marks the threads that run host code.
private let callbackThreadKey: up_key = {
  var key: up_key = 0
  _ = up_key_new(&key)
  return key
}()

/// Marks the thread while host code runs on it.
func withCallbackMark(_ job: () -> Void) {
  let before = up_key_get(callbackThreadKey)
  up_key_set(callbackThreadKey, 1)
  job()
  up_key_set(callbackThreadKey, before)
}

/// Whether host code runs on this thread right now, so that a wait could be one for itself.
package func isCallbackThread() -> Bool { up_key_get(callbackThreadKey) != 0 }
