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
}

/// The timers of a context. The engine shares them with a few other types; all use them on the I/O thread only.
final class Timers {
  private var heap = TimerHeap<TimerTarget>()

  var count: Int { heap.count }

  func set(at instant: Milliseconds, _ target: TimerTarget) -> UInt64 { heap.set(at: instant, target) }
  func cancel(_ id: UInt64?) { heap.cancel(id) }

  /// Returns the instant of the soonest timer.
  func next() -> Milliseconds? { heap.next() }

  /// Removes and returns the soonest timer if it is due.
  func popDue(now: Milliseconds) -> TimerTarget? { heap.popDue(now: now) }

  func removeAll() { heap = TimerHeap() }
}
