internal import UsherCore

/// The purpose of a timer of a context.
enum TimerTarget {
  case session(PlaybackID)
  case transfer(TransferID)
  case ask(HostQuestion)
  case license(PlaybackID, LicenseID)
  case certificate(CertificateSource, CertificateWaiter)
  /// A blocked host thread waits for this playback; 0: the thread waits for the close of the context.
  case wait(Wait<Status>, PlaybackID)
  case token(PlaybackID)
  case load(PlaybackID, LoadingJob)
  case recovery(LeftSession)
  case connection(ReadyOrigin)

  /// Whether the timer limits how long the host waits for a server's reply.
  var isLimitOfReply: Bool {
    switch self {
    case .license, .certificate, .load: return true
    case .session, .transfer, .ask, .wait, .token, .recovery, .connection: return false
    }
  }
}

/// The timers of a context. The engine shares them with a few other types; all use them on the I/O thread only.
final class Timers {
  private var heap = TimerHeap<TimerTarget>()

  /// If the I/O thread handles a time limit more than this many milliseconds after the limit has passed, the thread was
  /// late: it did not run for some time.
  private static var lateness: Milliseconds { 100 }
  /// How much longer a time limit may become because the I/O thread was late.
  static var extensionMax: Milliseconds { 1000 }

  /// Returns the new end of a time limit that ended at `due`, if the I/O thread was late; otherwise nil. While the
  /// thread did not run, it could not read or send anything, so this function adds the lost time to the limit.
  static func extended(_ due: Milliseconds, now: Milliseconds, atMost: Milliseconds = extensionMax) -> Milliseconds? {
    let late = now.since(due)
    return late > lateness ? now.adding(min(late, atMost)) : nil
  }

  var count: Int { heap.count }

  func set(at instant: Milliseconds, _ target: TimerTarget) -> UInt64 { heap.set(at: instant, target) }
  @inline(never)
  func cancel(_ id: UInt64?) { heap.cancel(id) }

  /// Returns the instant of the soonest timer.
  func next() -> Milliseconds? { heap.next() }

  /// Moves the soonest timer to a later instant, if two conditions are true: the timer limits how long the host waits
  /// for a server's reply, and the I/O thread was late. In this case the reply may have arrived already. `due` is the
  /// instant of the soonest timer. Returns whether this function has moved the timer.
  func postpone(dueAt due: Milliseconds, now: Milliseconds) -> Bool {
    guard let again = Self.extended(due, now: now), heap.first?.isLimitOfReply == true else { return false }
    // The request gets the same additional time. This timer fires one millisecond after the request's time limit. So if
    // the request fails, the host gets the error of the request, and not the time-out of this timer.
    heap.postponeFirst(to: again.adding(1))
    return true
  }

  /// Removes and returns the soonest timer if it is due.
  func popDue(now: Milliseconds) -> TimerTarget? { heap.popDue(now: now) }

  /// The open questions: each has a timer until it is answered or its deadline has passed.
  var questions: [HostQuestion] {
    var found: [HostQuestion] = []
    heap.forEachDue(now: .max) { if case .ask(let question) = $0 { found.append(question) } }
    return found
  }

  func removeAll() { heap = TimerHeap() }
}
