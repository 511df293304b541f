package import UsherCore

/// A reference to a host's `user_data`. Every object that may call the host with the `user_data` holds this reference.
/// `destroy` runs once:
/// - on the calling thread, if the call that passed `user_data` failed;
/// - otherwise on a thread that runs callbacks, when the last reference is released, or when `end` is called;
/// - at the latest while the context is freed, although another thread may still hold the reference for a moment.
package final class HostReference {
  private let lane: UInt64
  private let accepted: AcceptedUserData
  private let userData: HostUserData?

  package init(_ accepted: AcceptedUserData, lane: UInt64, destroy: (() -> Void)?) {
    self.accepted = accepted
    self.lane = lane
    userData = destroy.map { HostUserData($0) }
  }

  /// Called when the call that passed `user_data` can no longer fail, before any other object holds the reference.
  /// Throws if the context has ended.
  package func accept() throws(UsherError) {
    if let userData, !accepted.add(userData) { throw UsherError(.closed) }
  }

  /// Runs `destroy` now, on this thread. Called when the last call with `user_data` has returned on this thread.
  package func end() { if let userData { accepted.end(userData) } }

  deinit {
    guard let userData else { return }
    let accepted = accepted
    switch accepted.state(of: userData) {
    case .ended: break
    case .new: accepted.end(userData)
    case .accepted:
      // If the executor has shut down, it refuses the job. Then `endAll` runs `destroy`, or has run it already.
      _ = accepted.executor.enqueueDestroy(lane) { accepted.end(userData) }
    }
  }
}

/// One `user_data` of the host. The object stores only the closure that calls `destroy` with the `user_data`.
private final class HostUserData {
  enum State { case new, accepted, ended }

  let destroy: () -> Void
  // Only `AcceptedUserData` uses these properties, under its lock. While its list contains this object, `state` is
  // `accepted`, and `next` and `previous` are the neighbours in the list.
  var state = State.new
  var next: HostUserData?
  var previous: HostUserData?

  init(_ destroy: @escaping () -> Void) { self.destroy = destroy }
}

/// Every `user_data` of a context for which `destroy` has not run yet.
package final class AcceptedUserData {
  fileprivate let executor: any CallbackExecutor
  private let monitor = Monitor()
  private var first: HostUserData?
  private var hasEnded = false

  init(executor: any CallbackExecutor) { self.executor = executor }

  fileprivate func state(of one: HostUserData) -> HostUserData.State { monitor.locked { one.state } }

  /// Returns false if the context has ended.
  fileprivate func add(_ one: HostUserData) -> Bool {
    monitor.locked {
      if hasEnded { return false }
      one.state = .accepted
      one.next = first
      first?.previous = one
      first = one
      return true
    }
  }

  /// Runs `destroy`, unless `destroy` has run already.
  fileprivate func end(_ one: HostUserData) {
    let mustRun = monitor.locked { () -> Bool in
      defer { one.state = .ended }
      if one.state == .accepted { remove(one) }
      return one.state != .ended
    }
    if mustRun { withCallbackMark(one.destroy) }
  }

  /// Call inside the lock.
  private func remove(_ one: HostUserData) {
    if let previous = one.previous { previous.next = one.next } else { first = one.next }
    one.next?.previous = one.previous
    one.next = nil
    one.previous = nil
  }

  /// Called after the last callback of the context: runs every `destroy` that has not run.
  func endAll() {
    while let one = monitor.locked({ takeFirst() }) { end(one) }
  }

  /// Call inside the lock.
  private func takeFirst() -> HostUserData? {
    hasEnded = true
    return first
  }
}
