/// When a failed keep-alive is retried, and how long each attempt may take.
extension SSMSession {
  /// The least time-out of a retry, and the least pause before one.
  private static var leastTimeout: Milliseconds { 300 }

  /// Returns when to retry a keep-alive that was sent at `sentAt` and failed at `now`; nil: the time for retries is
  /// over.
  ///
  /// The pauses double, beginning with a second (or an eighth of the period). They are at most a quarter of the lease
  /// that is left, so that the retries become denser. A pause asked for with Retry-After replaces them; if it exceeds
  /// the lease, the last retry is sent when the lease ends. The server's lease ends a moment later than the library
  /// assumes, since it began when the server had read the last keep-alive: retries are sent until shortly after.
  func retryTime(
    _ schedule: KeepAliveSchedule, after failure: WireFailure, attempt: UInt32, sentAt: Milliseconds, now: Milliseconds
  ) -> Milliseconds? {
    guard policy.retry > 0 else { return nil }
    let first = max(1, min(1000, schedule.period / 8))
    let asked = failure.retryAfter ?? 0
    // A time-out counts as a pause. A reply does not: the server asks for less load.
    let start = failure.httpStatus > 0 ? now : sentAt
    let pause = attempt < 16 ? first << UInt64(attempt) : schedule.period
    guard !isInOutage else {
      // The lease is over: the retries belong to the keep-alive that was due last, and do not become denser.
      let at = max(start.adding(pause), now.adding(asked))
      guard at <= schedule.due.adding(schedule.period.permille(policy.retry)) else { return nil }
      return max(at, now.adding(min(first, Self.leastTimeout)))
    }
    let least = max(1, first / 2)
    let end = schedule.retriesEnd(permille: policy.retry)
    guard now < end.adding(least) else { return nil }
    let denser = start.adding(min(pause, max(end.since(now) / 4, least)))
    let soonest = now.adding(min(least, Self.leastTimeout))
    return max(soonest, min(max(denser, now.adding(asked)), max(end, now.adding(least))))
  }

  /// The time-out of the keep-alive that is sent at `now`. A retry gets half of the lease that is left, so that a
  /// connection that hangs does not use all of it.
  package func keepAliveTimeout(now: Milliseconds) -> Milliseconds {
    let usual = policy.keepAliveTimeout ?? max(1000, period.permille(375))
    guard let schedule, isRetry, !isInOutage else { return usual }
    let left = schedule.retriesEnd(permille: policy.retry).since(now)
    return min(usual, max(Self.leastTimeout, left / 2))
  }

  /// The time-out of the keep-alive that is sent at `now`, if the server has received it: seven tenths of the lease
  /// that is left. A lost reply may still come, because TCP sends it again. A retry would make the server issue another
  /// token; if that reply were lost too, the server might not know our token any more. 0 if the policy has a time-out.
  package func longestKeepAliveTimeout(now: Milliseconds) -> Milliseconds {
    guard policy.keepAliveTimeout == nil, let schedule, !isInOutage else { return 0 }
    return schedule.retriesEnd(permille: policy.retry).since(now).permille(700)
  }

  /// Whether the keep-alive in flight, or the renewal asked for, is not the first attempt.
  package var isRetry: Bool {
    switch beat {
    case .inFlight(_, let attempt, _, _), .asked(let attempt): return attempt > 0
    case .off, .waiting, .refused, .retrying: return false
    }
  }

  var isInOutage: Bool {
    if case .outage = health { return true }
    return false
  }
}
