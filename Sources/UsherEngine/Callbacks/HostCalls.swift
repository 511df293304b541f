/// Hands calls of host code to the executor, in the order of their lane: one lane per playback, lane 0 for log lines.
final class HostCalls {
  let executor: any CallbackExecutor
  private let idle: IdleMonitor
  /// Jobs that came after the executor had shut down.
  private var refused: [() -> Void] = []

  init(executor: any CallbackExecutor, idle: IdleMonitor) {
    self.executor = executor
    self.idle = idle
  }

  /// I/O thread, or any thread under the engine's `afterEnd` lock.
  func run(_ lane: UInt64, _ job: @escaping () -> Void) {
    idle.noteActivity()
    if !executor.enqueue(lane, job) { refused.append(job) }
  }

  /// What completes a request of the host: on the I/O thread where a blocked thread waits for it, otherwise on the
  /// lane.
  func completion(_ lane: UInt64, isBlocking: Bool, _ complete: @escaping (Answer) -> Void) -> (Answer) -> Void {
    isBlocking ? complete : { answer in self.run(lane) { complete(answer) } }
  }

  /// The jobs that the executor refused; the caller runs them.
  func takeRefused() -> [() -> Void] {
    defer { refused = [] }
    return refused
  }
}
