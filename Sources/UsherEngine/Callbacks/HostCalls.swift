/// Passes calls of host code to the executor. Each playback has a lane; lane 0 is for log lines. The calls in one lane
/// run one after another, in the order in which they were passed.
final class HostCalls {
  let executor: any CallbackExecutor
  private let idle: IdleMonitor
  /// Jobs that the executor refused, because it had shut down already.
  private var refused: [() -> Void] = []

  init(executor: any CallbackExecutor, idle: IdleMonitor) {
    self.executor = executor
    self.idle = idle
  }

  /// Call this on the I/O thread, or on any thread that holds the engine's `afterEnd` lock.
  func run(_ lane: UInt64, _ job: @escaping () -> Void) {
    idle.noteActivity()
    if !executor.enqueue(lane, job) { refused.append(job) }
  }

  /// Returns the function that completes a request of the host. If a blocked thread waits for the answer, `complete`
  /// then runs on the I/O thread, otherwise in the playback's lane.
  func completion(_ lane: UInt64, isBlocking: Bool, _ complete: @escaping (Answer) -> Void) -> (Answer) -> Void {
    isBlocking ? complete : { answer in self.run(lane) { complete(answer) } }
  }

  /// Removes and returns the jobs that the executor refused; the caller runs them.
  func takeRefused() -> [() -> Void] {
    defer { refused = [] }
    return refused
  }
}
