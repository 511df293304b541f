/// Calculates when keep-alives are due: one per period, counted from the start. A playback sends all its keep-alives
/// early by the same share of the period; the seed of the playback decides this share. So the playbacks of a context do
/// not all send at the same time, and the time between two keep-alives of one playback is never longer than the period.
package struct KeepAliveSchedule: Sendable {
  package private(set) var period: Milliseconds
  /// The instant by which the server expects the next keep-alive.
  package private(set) var due: Milliseconds
  /// The library assumes that the server began the lease at this instant: when the session sent the last keep-alive
  /// that the server answered, or at first, when it sent the request that began the session. The server began the lease
  /// at this instant or later, before it replied.
  package private(set) var extendedAt: Milliseconds
  /// How long before `due` the session sends a keep-alive, in thousandths of the period.
  private let early: UInt32

  /// - Parameters:
  ///   - start: when the reply to set-up, or to the request in place of set-up, arrived.
  ///   - leaseFrom: when that request was sent.
  ///   - seed: two schedules with the same seed have the same jitter.
  ///   - jitter: the longest time before `due` at which a keep-alive may be sent, in thousandths of the period.
  package init(
    start: Milliseconds, leaseFrom: Milliseconds, period: Milliseconds, jitter: UInt32, seed: UInt64
  ) {
    self.period = max(period, 1)
    (due, extendedAt) = (start, leaseFrom)
    var random = seed | 1
    random ^= random << 13
    random ^= random >> 7
    random ^= random << 17
    early = UInt32(truncatingIfNeeded: random % (UInt64(jitter) &+ 1))
    begin(start: start, leaseFrom: leaseFrom)
  }

  /// The next keep-alive is due one period after the reply at `start`. But if this reply came late, the keep-alive is
  /// due one and a half periods after the request at `leaseFrom`: the server's lease began before the reply, and half a
  /// period of this lease must be left for retries.
  @inline(never)
  private mutating func begin(start: Milliseconds, leaseFrom: Milliseconds) {
    let most = period.adding(period / 2)
    due = max(start, min(start.adding(period), leaseFrom.adding(most)))
    // If the reply came even later, the keep-alive is due at once. The server may have begun the lease later, too: the
    // session takes half a period for retries.
    extendedAt = max(leaseFrom, due.since(most))
  }

  /// When to send the next keep-alive. This is never later than `due`.
  package var sendAt: Milliseconds { due.since(period.permille(early)) }

  /// Returns the instant at which the retries of the next keep-alive end: this many thousandths of a period after the
  /// keep-alive is due, but not after the end of the lease. The library assumes that the lease has two periods.
  @inline(never)
  package func retriesEnd(permille: UInt32) -> Milliseconds {
    let one = extendedAt.adding(period)
    return min(one.adding(period), max(one, due).adding(period.permille(permille)))
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
  /// schedule have passed, the next keep-alive is due at the last of them. Does nothing if `sendAt` has not passed.
  package mutating func advance(upTo now: Milliseconds) {
    guard now >= sendAt else { return }
    due = due.adding(period)
    if due <= now { due = due.adding((now.since(due) / period) &* period) }
  }

  /// Starts a new schedule, whose period may be another one; the parameters are those of `init`.
  package mutating func change(period: Milliseconds, start: Milliseconds, leaseFrom: Milliseconds) {
    let before = extendedAt
    self.period = max(period, 1)
    begin(start: start, leaseFrom: leaseFrom)
    extendedAt = max(extendedAt, before)
  }
}
