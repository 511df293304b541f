internal import CPlatform
internal import UsherCore

/// Notices after a wait of the loop that the I/O thread did not run for some time.
struct InterruptionWatch {
  enum Interruption {
    case none
    /// The machine was suspended for this time. When the machine runs again, it is often in another network.
    case slept(Milliseconds)
    /// The process was stopped (SIGSTOP, debugger, freezer), or got no processor, for this time after the wait should
    /// have ended.
    case stopped(Milliseconds)
  }
  /// The shortest interruption, in milliseconds: a shorter time does not count as an interruption.
  private static var least: Int64 { 1000 }
  private var sleptBefore = platform_slept_ms()

  /// Called when a wait of the loop has ended.
  /// - Parameter planned: when the wait should have ended at the latest; nil: the wait had no planned end.
  mutating func afterWait(until planned: Milliseconds?, now: Milliseconds) -> Interruption {
    let slept = platform_slept_ms()
    let asleep = slept &- sleptBefore
    sleptBefore = slept
    if asleep >= Self.least { return .slept(Milliseconds(asleep)) }
    let late = planned.map { now.since($0) } ?? 0
    return late >= Milliseconds(Self.least) ? .stopped(late) : .none
  }
}
