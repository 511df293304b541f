package import UsherCore

/// The counters of a context, and its current values, such as the number of requests in flight. The engine reads all of
/// them at the same instant. For the meaning of each field see the comments of `usher_metrics` in
/// `include/usher/metrics.h`.
package struct Metrics: Sendable {
  /// The numbers of requests sent, by their purpose.
  package struct Sent: Sendable {
    package var setups: UInt64 = 0
    package var heartbeats: UInt64 = 0
    package var teardowns: UInt64 = 0
    package var licenses: UInt64 = 0
    package var others: UInt64 = 0
  }
  /// The numbers of replies that refused a request, by the server that sent them.
  package struct Denials: Sendable {
    package var ssm: UInt64 = 0
    package var license: UInt64 = 0
    package var certificate: UInt64 = 0
    package var entitlement: UInt64 = 0
  }
  /// How late keep-alives were: the number of keep-alives, the sum of their lateness in ms, and how many of them were
  /// late by at most 10, 50, … ms.
  package struct Lateness: Sendable {
    package var count: UInt64 = 0
    package var sum: Milliseconds = 0
    package var atMost10: UInt64 = 0
    package var atMost50: UInt64 = 0
    package var atMost100: UInt64 = 0
    package var atMost500: UInt64 = 0
    package var atMost1000: UInt64 = 0
    package var atMost5000: UInt64 = 0
  }

  package var sessionsHeld: UInt64 = 0
  package var sessionsOpened: UInt64 = 0
  package var sessionsLost: UInt64 = 0
  package var sent = Sent()
  package var retries: UInt64 = 0
  package var lateness = Lateness()
  package var denials = Denials()
  package var teardownsFailed: UInt64 = 0
  package var connectionsOpened: UInt64 = 0
  package var connectionsReused: UInt64 = 0
  package var queued = 0
  package var inFlight = 0
  package var callbacks = 0
}

/// Counts what a context does. Only the I/O thread uses this object.
final class Meter {
  private(set) var counts = Metrics()

  /// Called when a request is sent.
  func sent(_ transfer: Transfer) {
    if transfer.request.isRetry { counts.retries &+= 1 }
    switch transfer.purpose {
    case .ssm(_, _, .setup): counts.sent.setups &+= 1
    case .ssm(_, _, .heartbeat): counts.sent.heartbeats &+= 1
    case .ssm(_, _, .teardown), .recovery: counts.sent.teardowns &+= 1
    case .license: counts.sent.licenses &+= 1
    case .certificate, .connection, .load: counts.sent.others &+= 1
    }
  }

  /// Called when a reply has arrived over a connection that had brought a reply before.
  func connectionReused() { counts.connectionsReused &+= 1 }

  func teardownRepeated() { counts.retries &+= 1 }

  /// Called with each failure of a request; counts it if a server has refused the request.
  func failed(_ origin: Origin, _ failure: WireFailure) {
    failed(failure.origin ?? origin, failure.httpStatus, failure.serviceCode)
  }

  /// Does the same for a failure that the caller has as a `UsherError`.
  func failed(_ error: UsherError) { failed(error.origin, error.httpStatus, error.serviceCode) }

  @inline(never)
  private func failed(_ origin: Origin, _ httpStatus: Int32, _ serviceCode: Int64) {
    guard httpStatus >= 400 || serviceCode != 0 else { return }
    switch origin {
    case .local: break
    case .ssm: counts.denials.ssm &+= 1
    case .license: counts.denials.license &+= 1
    case .certificate: counts.denials.certificate &+= 1
    case .entitlement: counts.denials.entitlement &+= 1
    }
  }

  /// Called after each step of a playback.
  func changed(from before: PlaybackMachine.SessionState, to after: PlaybackMachine.SessionState) {
    guard before.isHeld != after.isHeld else { return }
    if after.isHeld {
      counts.sessionsHeld &+= 1
    } else {
      counts.sessionsHeld &-= 1
      if after == .failed { counts.sessionsLost &+= 1 }
    }
  }

  func sessionStarted() { counts.sessionsOpened &+= 1 }

  func teardownFailed() { counts.teardownsFailed &+= 1 }

  func keptAlive(lateness: Milliseconds) {
    counts.lateness.count &+= 1
    counts.lateness.sum &+= lateness
    if lateness <= 10 { counts.lateness.atMost10 &+= 1 }
    if lateness <= 50 { counts.lateness.atMost50 &+= 1 }
    if lateness <= 100 { counts.lateness.atMost100 &+= 1 }
    if lateness <= 500 { counts.lateness.atMost500 &+= 1 }
    if lateness <= 1000 { counts.lateness.atMost1000 &+= 1 }
    if lateness <= 5000 { counts.lateness.atMost5000 &+= 1 }
  }
}

extension PlaybackMachine.SessionState {
  fileprivate var isHeld: Bool { self == .active || self == .doubtful }
}

extension Engine {
  /// Returns the counters and the present values, all of the same instant. Must not be called in a callback or on the
  /// I/O thread.
  package func metrics() -> Metrics {
    sync {
      var metrics = self.meter.counts
      metrics.connectionsOpened = self.requests.connectionsOpened
      metrics.queued = self.requests.queuedCount
      metrics.inFlight = self.requests.inFlightCount
      metrics.callbacks = self.calls.executor.pending
      return metrics
    }
  }
}
