/// When keep-alives are due: a fixed rate from the start, each sent early by the same part of the period, which is the playback's own. So beats of
/// many playbacks spread, and no two of one playback are further apart than the period.
package struct KeepAliveSchedule: Sendable {
  /// Keep-alive period.
  package private(set) var period: Milliseconds
  /// The next instant the head-end expects one.
  package private(set) var due: Milliseconds
  /// Thousandths of the period by which a beat is early.
  private let early: UInt32

  /// - Parameters:
  ///   - seed: same seed, same jitter.
  ///   - jitter: most a beat is early, in thousandths of the period.
  package init(start: Milliseconds, period: Milliseconds, jitter: UInt32, seed: UInt64) {
    self.period = max(period, 1)
    due = start.adding(self.period)
    var random = seed | 1
    random ^= random << 13
    random ^= random >> 7
    random ^= random << 17
    early = UInt32(truncatingIfNeeded: random % (UInt64(jitter) &+ 1))
  }

  /// When to send what is due next. Never later than `due`.
  package var sendAt: Milliseconds { due.since(period.permille(early)) }

  /// Moves on to the first instant of the grid after `now`; a beat that went out before its time leaves the next where it is.
  package mutating func advance(past now: Milliseconds) {
    guard now >= sendAt else { return }
    due = due.adding(period)
    if due <= now {
      let missed = now.since(due) / period
      due = due.adding((missed &+ 1) &* period)
    }
  }

  /// Moves on to the next instant of the grid; where more have passed, to the last of them. Before its time it stays where it is.
  package mutating func advance(upTo now: Milliseconds) {
    guard now >= sendAt else { return }
    due = due.adding(period)
    if due <= now { due = due.adding((now.since(due) / period) &* period) }
  }

  /// A new period from `now` on.
  package mutating func change(period: Milliseconds, now: Milliseconds) {
    self.period = max(period, 1)
    due = now.adding(self.period)
  }
}
