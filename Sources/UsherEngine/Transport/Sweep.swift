/// A sweep gives each ready socket a turn: one call of libcurl. If this takes long, the transport makes the sweep in
/// parts, and between two parts the engine can send keep-alives. In each part, sockets of slow servers get their turns
/// after all others, but at least one of them gets a turn.
struct Sweep {
  /// After this many milliseconds a part gives no more turns, with one exception: if no slow server has had a turn in
  /// this part, one socket of a slow server gets a turn. The part ends only when the current turn has ended.
  private static var partTime: Int64 { 10 }

  /// The number of this sweep. For each socket, `Connections` stores the number of the sweep in which the socket had
  /// its last turn.
  private(set) var number: UInt32 = 1
  /// Whether this part continues a sweep that an earlier part began. If so, a socket that has had its turn in this
  /// sweep gets no other turn, with one exception. When all sockets of fast servers have had their turns, these sockets
  /// get more turns, so that a fast server need not wait for slow ones.
  private var isContinued = false
  private var hasServedFast = false

  // The next properties are the state of the current part.
  private var isOver = false
  private var hasServedSlow = false
  private var leavesFast = false
  private var leavesSlow = false
  private var start: Int64 = 0
  private var looks: UInt64 = 0

  /// Begins a new sweep, although the last one may not be complete.
  mutating func restart() {
    number &+= 1
    isContinued = false
    hasServedFast = false
  }

  /// Begins a part of the sweep.
  /// - Parameter looks: how many times the watchdog's thread has looked for a long turn so far; see `TurnWatchdog`.
  mutating func beginPart(now: Int64, looks: UInt64) {
    start = now
    self.looks = looks
    isOver = false
    hasServedSlow = false
    leavesFast = false
    leavesSlow = false
  }

  /// Whether a ready socket gets a turn now.
  /// - Parameter last: the sweep in which the socket had its last turn.
  mutating func givesTurn(last: UInt32, isSlow: Bool) -> Bool {
    let isServed = last == number
    if isContinued, isServed, isSlow || !hasServedFast { return false }
    if isOver, isServed || !isSlow || hasServedSlow {
      if !isServed, isSlow { leavesSlow = true }
      if !isServed, !isSlow { leavesFast = true }
      return false
    }
    if isSlow { hasServedSlow = true }
    return true
  }

  /// Called after each turn. Reads the clock only if the watchdog has looked for a long turn meanwhile.
  /// - Returns: whether the watchdog has looked since the last turn or the beginning of the part.
  mutating func turnEnded(looks now: UInt64, clock: () -> Int64) -> Bool {
    guard now != looks else { return false }
    looks = now
    if clock() &- start >= Self.partTime { isOver = true }
    return true
  }

  /// Ends the current part.
  /// - Returns: whether the sweep is complete: each socket that was ready has had its turn.
  mutating func endPart() -> Bool {
    let isComplete = !leavesFast && !leavesSlow
    hasServedFast = !leavesFast
    isContinued = !isComplete
    if isComplete { number &+= 1 }
    return isComplete
  }

  /// Whether this part gives no more turns to fast servers.
  var isPartOver: Bool { isOver }
}
