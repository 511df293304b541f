/// A host's `user_data`. Everything that may call the host with it holds this reference. When the last one is released,
/// `destroy` runs, once: on the calling thread if the call that passed it failed; otherwise on a callback thread, or,
/// if the context has ended, on the thread that released the last reference.
package final class HostReference {
  private let lane: UInt64
  private let executor: (any CallbackExecutor)?
  private let destroy: (() -> Void)?
  private var isAccepted = false

  /// - Parameter executor: nil: there is none; `destroy` runs on the thread that releases the last reference.
  package init(executor: (any CallbackExecutor)?, lane: UInt64, destroy: (() -> Void)?) {
    self.executor = executor
    self.lane = lane
    self.destroy = destroy
  }

  /// The call that passed it can no longer fail. To be called before anything else holds the reference.
  package func accept() { isAccepted = true }

  deinit {
    guard let destroy else { return }
    if isAccepted, let executor, executor.enqueue(lane, destroy) { return }
    destroy()
  }
}
