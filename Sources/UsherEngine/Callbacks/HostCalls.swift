/// Runs the host code of one context: its callbacks, and the functions that destroy `user_data`. Each playback has a
/// queue for these calls, its lane; lane 0 is for log lines. The calls of one lane run one after another, in the order
/// in which the engine queued them.
package final class HostCalls {
  package let executor: any CallbackExecutor
  /// The executor of pumped mode, which runs host code when the host pumps; nil in other modes.
  package let pump: PumpedExecutor?
  /// The callback threads; nil in pumped mode, and if a test runs the host code.
  let threads: ThreadedExecutor?
  /// Every `user_data` that the host has passed to functions of this context.
  package let userData: AcceptedUserData
  private let idle: IdleMonitor
  /// Jobs that the executor refused, because the executor had shut down already.
  private var refused: [() -> Void] = []

  private init(
    _ executor: any CallbackExecutor, pump: PumpedExecutor?, threads: ThreadedExecutor?, _ idle: IdleMonitor
  ) {
    self.executor = executor
    self.pump = pump
    self.threads = threads
    self.idle = idle
    userData = AcceptedUserData(executor: executor)
  }

  /// Makes an object whose host code runs on callback threads.
  convenience init(threadsMax: Int, _ idle: IdleMonitor) {
    let threads = ThreadedExecutor(cap: threadsMax, onChange: { idle.callbackEnded(left: $0) })
    self.init(threads, pump: nil, threads: threads, idle)
  }

  /// Makes an object whose host code runs when the host pumps.
  convenience init(pump: PumpedExecutor, _ idle: IdleMonitor) { self.init(pump, pump: pump, threads: nil, idle) }

  /// Makes an object whose host code runs in the executor of a test.
  convenience init(executor: any CallbackExecutor, _ idle: IdleMonitor) {
    self.init(executor, pump: nil, threads: nil, idle)
  }

  /// Queues a job in a lane. Call this on the I/O thread, or on any thread that holds the engine's `afterEnd` lock.
  func run(_ lane: UInt64, _ job: @escaping () -> Void) {
    idle.noteActivity()
    if !executor.enqueue(lane, job) { refused.append(job) }
  }

  /// Returns a function that takes the answer of a request and calls `complete` with it. If a blocked thread waits for
  /// the answer, `complete` runs on the I/O thread; otherwise it runs in the playback's lane.
  func completion(
    _ lane: UInt64, isBlocking: Bool, _ complete: @escaping (RequestResult) -> Void
  ) -> (RequestResult) -> Void {
    isBlocking ? complete : { answer in self.run(lane) { complete(answer) } }
  }

  /// Removes and returns the jobs that the executor refused; the caller runs these jobs.
  func takeRefused() -> [() -> Void] {
    defer { refused = [] }
    return refused
  }

  /// Waits until the queued callbacks have run, ends the callback threads, and destroys all `user_data`.
  func shutDown() {
    executor.shutDown()
    userData.endAll()
  }
}
