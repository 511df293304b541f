/// Calculates when keep-alives are due: one per period, counted from the start. A playback sends all its keep-alives
/// early by the same share of the period; the seed of the playback decides this share. So the playbacks of a context do
/// not all send at the same time, and the time between two keep-alives of one playback is never longer than the period.
package struct KeepAliveSchedule: Sendable {
  package private(set) var period: Milliseconds
  /// The instant by which the server expects the next keep-alive.
  package private(set) var due: Milliseconds
  /// When the session sent the last keep-alive that the server answered; at first, when it sent set-up. The server
  /// extended the lease at this instant or later, before it replied.
  package private(set) var extendedAt: Milliseconds
  /// How early a keep-alive is sent, in thousandths of the period.
  private let early: UInt32

  /// The first keep-alive is due one period after `start`, but at most one and a half periods after `leaseFrom`. So if
  /// the reply to set-up comes late, half a period of the lease is left for retries.
  /// - Parameters:
  ///   - start: when the reply to set-up arrived.
  ///   - leaseFrom: when set-up was sent. The server began the lease at this instant or later.
  ///   - seed: two schedules with the same seed have the same jitter.
  ///   - jitter: how early a keep-alive may be sent at most, in thousandths of the period.
  package init(
    start: Milliseconds, leaseFrom: Milliseconds, period: Milliseconds, jitter: UInt32, seed: UInt64
  ) {
    self.period = max(period, 1)
    due = max(start, min(start.adding(self.period), leaseFrom.adding(self.period).adding(self.period / 2)))
    extendedAt = leaseFrom
    var random = seed | 1
    random ^= random << 13
    random ^= random >> 7
    random ^= random << 17
    early = UInt32(truncatingIfNeeded: random % (UInt64(jitter) &+ 1))
  }

  /// When to send the next keep-alive. This is never later than `due`.
  package var sendAt: Milliseconds { due.since(period.permille(early)) }

  /// Returns the instant at which the retries of a keep-alive end. With 1000 `permille` this is the end of the lease:
  /// the library assumes that the server keeps a session for two periods after the last keep-alive that it answered.
  package func retriesEnd(permille: UInt32) -> Milliseconds {
    extendedAt.adding(period).adding(period.permille(permille))
  }

  /// Called when the server answered the keep-alive that was sent at `sentAt`.
  package mutating func extendLease(from sentAt: Milliseconds) { extendedAt = max(extendedAt, sentAt) }

  /// Called when the keep-alive sent at `now` was answered: the next one is due one period after `due`. If that instant
  /// is not after `now`, the next one is due at the first instant of the schedule after `now`. Does nothing if `now` is
  /// before `sendAt`, because that keep-alive was an additional one.
  package mutating func advance(past now: Milliseconds) {
    guard now >= sendAt else { return }
    due = due.adding(period)
    if due <= now {
      let missed = now.since(due) / period
      due = due.adding((missed &+ 1) &* period)
    }
  }

  /// Called when the due keep-alive has failed: the next one is due one period later. If several instants of the
  /// schedule have passed, it is due at the last of them. Does nothing if `sendAt` has not passed.
  package mutating func advance(upTo now: Milliseconds) {
    guard now >= sendAt else { return }
    due = due.adding(period)
    if due <= now { due = due.adding((now.since(due) / period) &* period) }
  }

  /// Starts a new schedule with another period at `now`.
  package mutating func change(period: Milliseconds, now: Milliseconds) {
    self.period = max(period, 1)
    due = now.adding(self.period)
    extendedAt = now
  }
}
