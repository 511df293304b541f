/// When a failed keep-alive is retried, and how long each attempt may take.
extension SSMSession {
  /// The shortest time-out of a retry, and the shortest pause before a retry.
  private static var leastTimeout: Milliseconds { 300 }
  /// In this time before the end of the lease, a retry opens several connections and does not wait for the first one.
  private static var lastTime: Milliseconds { 1000 }

  /// Returns when to retry a keep-alive that was sent at `sentAt` and failed at `now`; nil if the time for retries is
  /// over.
  ///
  /// The pauses double. The first is one second, or an eighth of the period if that is shorter. No pause is longer than
  /// a quarter of the lease that is left, so the retries become denser. If the server asks for a pause (`Retry-After`),
  /// this pause applies instead; if it exceeds the lease, the last retry is sent when the lease ends. The library sends
  /// retries until shortly after the end that it assumes for the lease: the server's lease ends a moment later, because
  /// it began when the server had read the last keep-alive.
  ///
  /// In the last second of the lease, the next attempt follows at once if an attempt had no reply in time. But two
  /// attempts begin at least 0.3 s apart (with a period below 5 s: a sixteenth of the period). So a session makes at
  /// most six attempts in this second and until shortly after the lease.
  func retryTime(
    _ schedule: KeepAliveSchedule, after failure: WireFailure, attempt: UInt32, sentAt: Milliseconds, now: Milliseconds
  ) -> Milliseconds? {
    guard policy.retry > 0 else { return nil }
    let first = max(1, min(1000, schedule.period / 8))
    let asked = failure.retryAfter ?? 0
    // After a time-out the pause counts from the request, because the library has waited already. After a reply it
    // counts from the reply, because the server asks for less load.
    let start = failure.httpStatus > 0 ? now : sentAt
    let pause = attempt < 16 ? first << UInt64(attempt) : schedule.period
    guard !isInOutage else {
      // The lease is over. The retries now belong to the last keep-alive that became due, and do not become denser.
      let at = max(start.adding(pause), now.adding(asked))
      guard at <= schedule.due.adding(schedule.period.permille(policy.retry)) else { return nil }
      return max(at, now.adding(min(first, Self.leastTimeout)))
    }
    let least = max(1, first / 2)
    let end = schedule.retriesEnd(permille: policy.retry)
    guard now < end.adding(least) else { return nil }
    let shortest = min(least, Self.leastTimeout)
    let denser = start.adding(min(pause, max(end.since(now) / 4, failure.status == .timeout ? shortest : least)))
    let soonest = max(now, start.adding(shortest), min(now.adding(shortest), end.since(Self.lastTime)))
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

  /// The longest time-out of the keep-alive that is sent at `now`: seven tenths of the lease that is left. It applies
  /// if the server has received the request. If a packet of the reply is lost, TCP sends it again, so the reply may
  /// still arrive. A retry would make the server issue another token; if that reply were lost too, the server might not
  /// know the library's token any more. So if an earlier reply may have been lost, the time-out lasts until shortly
  /// after the lease: another retry would probably fail. 0 if the policy sets the time-out.
  package func longestKeepAliveTimeout(now: Milliseconds) -> Milliseconds {
    guard policy.keepAliveTimeout == nil, let schedule, !isInOutage else { return 0 }
    let left = schedule.retriesEnd(permille: policy.retry).since(now)
    return newest.mayHaveSuccessor ? left.adding(Self.leastTimeout) : left.permille(700)
  }

  /// The instant from which the keep-alive in flight opens more connections, until one is established: the last second
  /// of the lease, if the keep-alive is a retry. TCP repeats the first packet of a connection only after one second,
  /// after three seconds and so on, so an old connection notices late that the network is back.
  package var connectsAgainFrom: Milliseconds {
    guard let schedule, isRetry, !isInOutage else { return .never }
    return schedule.retriesEnd(permille: policy.retry).since(Self.lastTime)
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
