internal import UsherCore

/// The purpose of a timer of a context.
enum TimerTarget {
  case session(PlaybackID)
  case transfer(TransferID)
  case ask(HostQuestion)
  case license(PlaybackID, LicenseID)
  case certificate(CertificateSource, CertificateWaiter)
  /// The playback for which the thread waits; 0: the close of the context.
  case wait(Wait<Status>, PlaybackID)
  case token(PlaybackID)
  case load(PlaybackID, LoadingJob)

  /// Whether the host limits with this timer how long it waits for a server's reply.
  var isLimitOfReply: Bool {
    switch self {
    case .license, .certificate, .load: return true
    case .session, .transfer, .ask, .wait, .token: return false
    }
  }
}

/// The timers of a context. The engine shares them with a few other types; all use them on the I/O thread only.
final class Timers {
  private var heap = TimerHeap<TimerTarget>()

  /// If a time limit is judged later than this, the I/O thread did not run in between.
  private static var lateness: Milliseconds { 100 }
  /// How much of the lost time a limit gets back at most.
  static var extensionMax: Milliseconds { 1000 }

  /// The new end of a time limit that ended at `due`, if the I/O thread was late: it could not read or send anything
  /// meanwhile, so the limit gets the lost time back. Nil if the thread was not late.
  static func extended(_ due: Milliseconds, now: Milliseconds, atMost: Milliseconds = extensionMax) -> Milliseconds? {
    let late = now.since(due)
    return late > lateness ? now.adding(min(late, atMost)) : nil
  }

  var count: Int { heap.count }

  func set(at instant: Milliseconds, _ target: TimerTarget) -> UInt64 { heap.set(at: instant, target) }
  func cancel(_ id: UInt64?) { heap.cancel(id) }

  /// Returns the instant of the soonest timer.
  func next() -> Milliseconds? { heap.next() }

  /// Moves the soonest timer, which was due at `due`, if it limits how long the host waits for a reply and the I/O
  /// thread was late: the reply may be on its way. Returns whether it has moved the timer.
  func postpone(dueAt due: Milliseconds, now: Milliseconds) -> Bool {
    guard let again = Self.extended(due, now: now), heap.first?.isLimitOfReply == true else { return false }
    // The request gets as much time. If it fails, the host must get the request's error and not this limit's.
    heap.postponeFirst(to: again.adding(1))
    return true
  }

  /// Removes and returns the soonest timer if it is due.
  func popDue(now: Milliseconds) -> TimerTarget? { heap.popDue(now: now) }

  func removeAll() { heap = TimerHeap() }
}
