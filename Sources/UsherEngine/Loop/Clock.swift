internal import CPlatform
internal import Synchronization
internal import UsherCore

/// The context's time. Any thread reads it; only the I/O thread sets it. System time continues while the machine
/// sleeps; manual time moves only when a test moves it.
final class Clock {
  /// The last instant of manual time. This instant is far below the largest number, so that sums of instants and
  /// durations do not overflow.
  static var end: Milliseconds { 1 << 62 }
  let isManual: Bool
  private let startedAt: Int64
  private let manualNow = Atomic<Milliseconds>(0)

  init(isManual: Bool) {
    self.isManual = isManual
    startedAt = platform_boottime_ns()
  }

  var now: Milliseconds {
    if isManual { return manualNow.load(ordering: .acquiring) }
    let passed = platform_boottime_ns() &- startedAt
    return passed > 0 ? Milliseconds(passed / 1_000_000) : 0
  }

  func set(_ instant: Milliseconds) { manualNow.store(min(max(now, instant), Self.end), ordering: .releasing) }

  /// The instant `duration` from now, but not after the end of manual time.
  func instant(in duration: Milliseconds) -> Milliseconds { min(now.adding(duration), Self.end) }

  /// Returns the boot time, in nanoseconds, at which the clock shows `instant`; nil on the manual clock, or if
  /// `instant` is more than 200 years away.
  func bootTime(of instant: Milliseconds) -> Int64? {
    guard !isManual, instant < 1 << 43 else { return nil }
    return startedAt &+ Int64(instant) &* 1_000_000
  }
}
