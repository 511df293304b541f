/// Passes calls of host code to the executor, in the order of their lane. Each playback has a lane; lane 0 is for log
/// lines.
final class HostCalls {
  let executor: any CallbackExecutor
  private let idle: IdleMonitor
  /// Jobs that were submitted after the executor had shut down.
  private var refused: [() -> Void] = []

  init(executor: any CallbackExecutor, idle: IdleMonitor) {
    self.executor = executor
    self.idle = idle
  }

  /// Called on the I/O thread, or on any thread under the engine's `afterEnd` lock.
  func run(_ lane: UInt64, _ job: @escaping () -> Void) {
    idle.noteActivity()
    if !executor.enqueue(lane, job) { refused.append(job) }
  }

  /// The function that completes a request of the host. If a blocked thread waits for the request, it runs on the I/O
  /// thread, otherwise on the lane.
  func completion(_ lane: UInt64, isBlocking: Bool, _ complete: @escaping (Answer) -> Void) -> (Answer) -> Void {
    isBlocking ? complete : { answer in self.run(lane) { complete(answer) } }
  }

  /// Removes and returns the jobs that the executor refused; the caller runs them.
  func takeRefused() -> [() -> Void] {
    defer { refused = [] }
    return refused
  }
}
