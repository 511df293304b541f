/// When a failed keep-alive is retried, and how long each attempt may take.
extension SSMSession {
  /// The shortest time-out of a retry. With a period of at least 4.8 s, also the shortest time from the beginning of
  /// one attempt to the beginning of the next.
  private static var leastTimeout: Milliseconds { 300 }
  /// In this time before the end of the lease, a retry opens several connections and does not wait for the first one.
  private static var lastTime: Milliseconds { 1000 }

  /// Returns when to retry a keep-alive that was sent at `sentAt` and failed at `now`; nil if the time for retries is
  /// over.
  ///
  /// The pauses double. The first is one second, or an eighth of the period if that is shorter. A pause is at most a
  /// quarter of the lease that is left, so the pauses become shorter towards the end of the lease. But a pause is at
  /// least half of the first pause; after a time-out, at least 0.3 s if that is shorter. If the server asks for a
  /// longer pause (`Retry-After`), the session uses that pause; if that pause would end after the lease, the session
  /// sends the last retry when the lease ends. The last retry may begin shortly after the end of the lease that the
  /// session calculates. The session counts the lease from the sending of a keep-alive, but the server starts it only
  /// when it has read the keep-alive. So the lease at the server ends a little later.
  ///
  /// In the last second of the lease, a session does not pause after an attempt that got no reply in time: the next
  /// attempt follows at once. But from the beginning of one attempt to the beginning of the next, at least 0.3 s pass
  /// (with a period below 4.8 s, at least a sixteenth of the period). So from the beginning of this second until the
  /// last retry, a session makes at most six attempts.
  func retryTime(
    _ schedule: KeepAliveSchedule, after failure: WireFailure, attempt: UInt32, sentAt: Milliseconds, now: Milliseconds
  ) -> Milliseconds? {
    guard policy.retry > 0 else { return nil }
    let first = max(1, min(1000, schedule.period / 8))
    let asked = failure.retryAfter ?? 0
    // If no reply arrived, the pause begins when the keep-alive was sent, because the library has already waited since
    // then. If an error reply arrived, the pause begins now, because the server is probably overloaded.
    let start = failure.httpStatus > 0 ? now : sentAt
    let pause = attempt < 16 ? first << UInt64(attempt) : schedule.period
    guard !isInOutage else {
      // The time for retries of the earlier keep-alive is over. The session now retries the last keep-alive that became
      // due, and the pauses between the retries do not become shorter.
      let at = max(start.adding(pause), now.adding(asked))
      guard at <= schedule.due.adding(schedule.period.permille(policy.retry)) else { return nil }
      return max(at, now.adding(min(first, Self.leastTimeout)))
    }
    let least = max(1, first / 2)
    let end = schedule.retriesEnd(permille: policy.retry)
    guard now < end.adding(least) else { return nil }
    let shortest = min(least, Self.leastTimeout)
    let denser = start.adding(min(pause, max(end.since(now) / 4, failure.status == .timeout ? shortest : least)))
    // Until the last second of the lease begins, a retry also waits at least `shortest` from now on.
    let soonest = max(now, start.adding(shortest), min(now.adding(shortest), end.since(Self.lastTime)))
    return max(soonest, min(max(denser, now.adding(asked)), max(end, now.adding(least))))
  }

  /// The time-out of the keep-alive that is sent at `now`. For a retry it is at most half of the lease that is left, so
  /// that a connection that hangs does not use the whole rest of the lease. This limit is never below 0.3 s.
  package func keepAliveTimeout(now: Milliseconds) -> Milliseconds {
    let usual = policy.keepAliveTimeout ?? max(1000, period.permille(375))
    guard let schedule, isRetry, !isInOutage else { return usual }
    let left = schedule.retriesEnd(permille: policy.retry).since(now)
    return min(usual, max(Self.leastTimeout, left / 2))
  }

  /// The longest time-out of the keep-alive that is sent at `now`, for the case that the server has received the
  /// request: seven tenths of the lease that is left. 0 if the policy sets the time-out, or in an outage.
  ///
  /// If the network loses a packet of the reply, TCP sends the packet again, so the reply may still arrive. A retry
  /// instead would make the server issue another token. If that second reply were lost too, the server might no longer
  /// accept the token that the library has. If an earlier reply may have been lost already, the server would probably
  /// refuse a retry; so in this case the attempt may last until shortly after the end of the lease.
  package func longestKeepAliveTimeout(now: Milliseconds) -> Milliseconds {
    guard policy.keepAliveTimeout == nil, let schedule, !isInOutage else { return 0 }
    let left = schedule.retriesEnd(permille: policy.retry).since(now)
    return newest.mayHaveSuccessor ? left.adding(Self.leastTimeout) : left.permille(700)
  }

  /// The instant from which the keep-alive in flight opens more connections, until one is established. Only a retry
  /// does this, in the last second of the lease. If the first packet of a connection is lost, TCP repeats it only after
  /// one second, after three seconds and so on. So a connection attempt that began during an outage of the network
  /// continues only some time after the network is back.
  package var connectsAgainFrom: Milliseconds {
    guard let schedule, isRetry, !isInOutage else { return .never }
    return schedule.retriesEnd(permille: policy.retry).since(Self.lastTime)
  }

  /// Whether the keep-alive in flight, or the renewal that the session has asked the host for, is a retry.
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
