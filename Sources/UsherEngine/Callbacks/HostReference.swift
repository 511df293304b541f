/// A reference to a host's `user_data`, held by every object that may call the host with it. When the last reference is
/// released, `destroy` runs, once. `destroy` runs on the calling thread if the call that passed `user_data` failed;
/// otherwise on a callback thread; or, if the context has ended, on the thread that released the last reference. `end`
/// runs it earlier.
package final class HostReference {
  private let lane: UInt64
  private let executor: (any CallbackExecutor)?
  private var destroy: (() -> Void)?
  private var isAccepted = false

  /// - Parameter executor: nil: `destroy` runs on the thread that releases the last reference.
  package init(executor: (any CallbackExecutor)?, lane: UInt64, destroy: (() -> Void)?) {
    self.executor = executor
    self.lane = lane
    self.destroy = destroy
  }

  /// Called when the call that passed `user_data` can no longer fail, before any other object holds the reference.
  package func accept() { isAccepted = true }

  /// The last call with `user_data` has returned, on this thread: runs `destroy` now.
  package func end() {
    let destroy = destroy
    self.destroy = nil
    destroy?()
  }

  deinit {
    guard let destroy else { return }
    if isAccepted, let executor, executor.enqueue(lane, destroy) { return }
    destroy()
  }
}
