internal import CUsher
internal import UsherCore

/// The text that Prometheus reads, version 0.0.4 of its format. `$` stands for the next number, `~` for the next number
/// as thousandths, `%` for the host's labels in braces, and `&` for the host's labels with a comma after them.
private let page: StaticString = """
  # HELP usher_sessions_held Playbacks that hold a session now.
  # TYPE usher_sessions_held gauge
  usher_sessions_held% $
  # HELP usher_sessions_opened_total Sessions that began.
  # TYPE usher_sessions_opened_total counter
  usher_sessions_opened_total% $
  # HELP usher_sessions_lost_total Sessions that failed after they had begun.
  # TYPE usher_sessions_lost_total counter
  usher_sessions_lost_total% $
  # HELP usher_requests_sent_total Requests sent, by their purpose.
  # TYPE usher_requests_sent_total counter
  usher_requests_sent_total{&kind="setup"} $
  usher_requests_sent_total{&kind="heartbeat"} $
  usher_requests_sent_total{&kind="teardown"} $
  usher_requests_sent_total{&kind="license"} $
  usher_requests_sent_total{&kind="other"} $
  # HELP usher_retries_total Heartbeats, renewals and teardowns that were repeated.
  # TYPE usher_retries_total counter
  usher_retries_total% $
  # HELP usher_keep_alive_lateness_seconds How late the keep-alives were that succeeded.
  # TYPE usher_keep_alive_lateness_seconds histogram
  usher_keep_alive_lateness_seconds_bucket{&le="0.01"} $
  usher_keep_alive_lateness_seconds_bucket{&le="0.05"} $
  usher_keep_alive_lateness_seconds_bucket{&le="0.1"} $
  usher_keep_alive_lateness_seconds_bucket{&le="0.5"} $
  usher_keep_alive_lateness_seconds_bucket{&le="1"} $
  usher_keep_alive_lateness_seconds_bucket{&le="5"} $
  usher_keep_alive_lateness_seconds_bucket{&le="+Inf"} $
  usher_keep_alive_lateness_seconds_sum% ~
  usher_keep_alive_lateness_seconds_count% $
  # HELP usher_denials_total Replies that refused a request, by the server that sent them.
  # TYPE usher_denials_total counter
  usher_denials_total{&origin="ssm"} $
  usher_denials_total{&origin="license"} $
  usher_denials_total{&origin="certificate"} $
  usher_denials_total{&origin="entitlement"} $
  # HELP usher_teardowns_failed_total Sessions whose teardown failed.
  # TYPE usher_teardowns_failed_total counter
  usher_teardowns_failed_total% $
  # HELP usher_connections_opened_total Connections that were begun.
  # TYPE usher_connections_opened_total counter
  usher_connections_opened_total% $
  # HELP usher_connections_reused_total Replies over a connection that had brought a reply before.
  # TYPE usher_connections_reused_total counter
  usher_connections_reused_total% $
  # HELP usher_requests_queued Requests that wait in the queue now.
  # TYPE usher_requests_queued gauge
  usher_requests_queued% $
  # HELP usher_requests_in_flight Requests without a reply now.
  # TYPE usher_requests_in_flight gauge
  usher_requests_in_flight% $
  # HELP usher_callbacks Callbacks that wait or run now.
  # TYPE usher_callbacks gauge
  usher_callbacks% $

  """

/// Writes metrics as text.
/// - Parameter labels: labels for every sample: `name="value"` with commas between; empty: none.
func metricsText(_ metrics: usher_metrics, labels: [UInt8]) -> [UInt8] {
  let numbers = [
    metrics.sessions_held, metrics.sessions_opened, metrics.sessions_lost, metrics.setups_sent,
    metrics.heartbeats_sent, metrics.teardowns_sent, metrics.licenses_sent, metrics.others_sent, metrics.retries,
    metrics.late_at_most_10_ms, metrics.late_at_most_50_ms, metrics.late_at_most_100_ms, metrics.late_at_most_500_ms,
    metrics.late_at_most_1000_ms, metrics.late_at_most_5000_ms, metrics.keep_alives, metrics.lateness_ms,
    metrics.keep_alives, metrics.denials_ssm, metrics.denials_license, metrics.denials_certificate,
    metrics.denials_entitlement, metrics.teardowns_failed, metrics.connections_opened, metrics.connections_reused,
    metrics.requests_queued, metrics.requests_in_flight, metrics.callbacks
  ]
  var text = TextLine()
  var next = 0
  func takeNumber() -> UInt64 {
    defer { next += 1 }
    return next < numbers.count ? numbers[next] : 0
  }
  func addLabels(_ before: StaticString, _ after: StaticString) {
    guard !labels.isEmpty else { return }
    text.add(before)
    for byte in labels { text.add(byte) }
    text.add(after)
  }
  page.withUTF8Buffer { page in
    for byte in page {
      switch byte {
      case 0x24: text.add(takeNumber())
      case 0x7E:
        let number = takeNumber()
        text.add(number / 1000)
        text.add(".")
        for digit in [number / 100 % 10, number / 10 % 10, number % 10] { text.add(digit) }
      case 0x25: addLabels("{", "}")
      case 0x26: addLabels("", ",")
      default: text.add(byte)
      }
    }
  }
  return text.bytes
}
