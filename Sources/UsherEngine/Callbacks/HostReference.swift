/// A host's `user_data`: whatever may call with it holds this; when the last one lets go, `destroy` runs, once: on the calling thread where the
/// call that brought it failed, else on a callback thread where there still is one.
package final class HostReference {
  private let lane: UInt64
  private let executor: (any CallbackExecutor)?
  private let destroy: (() -> Void)?
  private var isAccepted = false

  /// - Parameter executor: nil where there is none (yet); `destroy` then runs on whichever thread lets go.
  package init(executor: (any CallbackExecutor)?, lane: UInt64, destroy: (() -> Void)?) {
    self.executor = executor
    self.lane = lane
    self.destroy = destroy
  }

  /// The call that brought it succeeds from here on. Before it is given to anything else.
  package func accept() { isAccepted = true }

  deinit {
    guard let destroy else { return }
    if isAccepted, let executor, executor.enqueue(lane, destroy) { return }
    destroy()
  }
}
