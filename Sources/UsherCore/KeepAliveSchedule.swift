/// When keep-alives are due: a fixed rate from the start, each sent early by a part of the jitter that is the playback's own.
package struct KeepAliveSchedule: Sendable {
  /// Keep-alive period.
  package private(set) var period: Milliseconds
  /// The next instant the head-end expects one.
  package private(set) var due: Milliseconds
  private let jitter: UInt32
  private var random: UInt64

  /// - Parameters:
  ///   - seed: same seed, same jitter.
  ///   - jitter: most a beat is early, in thousandths of the period.
  package init(start: Milliseconds, period: Milliseconds, jitter: UInt32, seed: UInt64) {
    self.period = period
    self.jitter = jitter
    due = start.adding(period)
    random = seed | 1
  }

  /// When to send what is due next. Never later than `due`.
  package mutating func sendAt() -> Milliseconds {
    guard jitter > 0 else { return due }
    random ^= random << 13
    random ^= random >> 7
    random ^= random << 17
    let most = period.permille(jitter)
    return due.since(most == 0 ? 0 : random % (most &+ 1))
  }

  /// Moves on to the first instant of the grid after `now`.
  package mutating func advance(past now: Milliseconds) {
    due = due.adding(period)
    if due <= now {
      let missed = now.since(due) / period
      due = due.adding((missed &+ 1) &* period)
    }
  }

  /// A new period from `now` on.
  package mutating func change(period: Milliseconds, now: Milliseconds) {
    self.period = period
    due = now.adding(period)
  }
}
