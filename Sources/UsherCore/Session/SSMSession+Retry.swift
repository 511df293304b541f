/// When a failed keep-alive is retried, and how long each attempt may take.
extension SSMSession {
  /// Returns when to retry a keep-alive that was sent at `sentAt` and failed at `now`; nil: the time for retries is
  /// over.
  ///
  /// The pauses double, beginning with a second (or an eighth of the period). Before the lease ends they are at most a
  /// quarter of the time that is left, so that the retries become denser. A pause asked for with Retry-After replaces
  /// them; if it exceeds the lease, the last retry is sent shortly before the lease ends.
  func retryTime(
    _ schedule: KeepAliveSchedule, after failure: WireFailure, attempt: UInt32, sentAt: Milliseconds, now: Milliseconds
  ) -> Milliseconds? {
    let first = max(1, min(1000, schedule.period / 8))
    let least = max(1, first / 2)
    var pause = attempt < 16 ? first << UInt64(attempt) : schedule.period
    let until: Milliseconds
    if isInOutage {
      // The lease is over: the retries belong to the keep-alive that was due last, and do not become denser.
      until = schedule.due.adding(schedule.period.permille(policy.retry))
      guard now.adding(max(pause, failure.retryAfter ?? 0)) <= until else { return nil }
    } else {
      until = schedule.retriesEnd(permille: policy.retry)
      pause = min(pause, max(until.since(now) / 4, least))
    }
    guard policy.retry > 0, until.since(now) > least else { return nil }
    // A time-out counts as a pause. A reply does not: the server asks for less load.
    let at = max(now, (failure.httpStatus > 0 ? now : sentAt).adding(pause))
    return min(max(at, now.adding(failure.retryAfter ?? 0)), until.since(least))
  }

  /// The time-out of the keep-alive that is sent at `now`. A retry gets a third of the time that is left of the lease
  /// (or a second, if that is longer), so that a connection that hangs does not use all of it.
  package func keepAliveTimeout(now: Milliseconds) -> Milliseconds {
    let usual = policy.keepAliveTimeout ?? max(1000, period.permille(375))
    guard let schedule, isRetry, !isInOutage else { return usual }
    let left = schedule.retriesEnd(permille: policy.retry).since(now)
    return max(1, min(usual, left, max(1000, left / 3)))
  }

  /// Whether the keep-alive in flight, or the renewal asked for, is not the first attempt.
  private var isRetry: Bool {
    switch beat {
    case .inFlight(_, let attempt, _, _), .asked(let attempt): return attempt > 0
    case .off, .waiting, .refused, .retrying: return false
    }
  }

  private var isInOutage: Bool {
    if case .outage = health { return true }
    return false
  }
}
