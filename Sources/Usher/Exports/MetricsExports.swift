public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_context_metrics`; contract in `include/usher/metrics.h`.
@_cdecl("usher_context_metrics") @implementation
public func usher_context_metrics(_ context: OpaquePointer!, _ out: UnsafeMutablePointer<usher_metrics>!) -> Int32 {
  report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    guard let out else { throw refused("out", isMissing) }
    try refuseInCallbacks()
    try fill(out, usher_metrics(object.engine.metrics()))
  }
}

/// Implements `usher_metrics_text`; contract in `include/usher/metrics.h`.
@_cdecl("usher_metrics_text") @implementation
public func usher_metrics_text(
  _ metrics: UnsafePointer<usher_metrics>!, _ labels: UnsafePointer<CChar>!, _ buffer: UnsafeMutablePointer<UInt8>!,
  _ size: UnsafeMutablePointer<Int>!
) -> Int32 {
  report { () throws(UsherError) in
    guard metrics != nil else { throw UsherError(.invalidArgument) }
    let given = try options(metrics)
    let labels = try bytes(labels, most: 4096, "labels") ?? []
    guard labels.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { throw UsherError(.invalidArgument) }
    try copy(metricsText(given, labels: labels), buffer, size)
  }
}

extension usher_metrics {
  fileprivate init(_ metrics: Metrics) {
    self.init(
      struct_size: MemoryLayout<usher_metrics>.size, sessions_held: metrics.sessionsHeld,
      sessions_opened: metrics.sessionsOpened,
      sessions_lost: metrics.sessionsLost, setups_sent: metrics.sent.setups, heartbeats_sent: metrics.sent.heartbeats,
      teardowns_sent: metrics.sent.teardowns, licenses_sent: metrics.sent.licenses, others_sent: metrics.sent.others,
      retries: metrics.retries, keep_alives: metrics.lateness.count, lateness_ms: metrics.lateness.sum,
      late_at_most_10_ms: metrics.lateness.atMost10, late_at_most_50_ms: metrics.lateness.atMost50,
      late_at_most_100_ms: metrics.lateness.atMost100, late_at_most_500_ms: metrics.lateness.atMost500,
      late_at_most_1000_ms: metrics.lateness.atMost1000, late_at_most_5000_ms: metrics.lateness.atMost5000,
      denials_ssm: metrics.denials.ssm, denials_license: metrics.denials.license,
      denials_certificate: metrics.denials.certificate, denials_entitlement: metrics.denials.entitlement,
      teardowns_failed: metrics.teardownsFailed, connections_opened: metrics.connectionsOpened,
      connections_reused: metrics.connectionsReused, requests_queued: UInt64(clamping: metrics.queued),
      requests_in_flight: UInt64(clamping: metrics.inFlight), callbacks: UInt64(clamping: metrics.callbacks))
  }
}
