internal import UsherCore

/// Takes replies from the transport and passes them to the engine. A reply that has arrived in time must not count as
/// missing because the I/O thread was late. So before the engine runs a timer, this type reads all replies that had
/// arrived when the timer was due. Only the I/O thread uses this type.
final class ReplyReader {
  private let transport: any Transport
  private let clock: Clock
  /// An instant: the engine has handled all replies that had arrived by then.
  private(set) var readUntil: Milliseconds = 0
  /// How many long replies the engine has handled so far.
  private var longHandled = 0
  /// How many milliseconds `handle` spends on long replies before the loop does other work: the loop then sends the
  /// keep-alives that are due, and handles the short replies that have arrived.
  private static var longRepliesTime: Int64 { 10 }

  init(_ transport: any Transport, _ clock: Clock) {
    self.transport = transport
    self.clock = clock
  }

  /// Waits until replies arrive or another thread wakes the transport.
  /// - Parameters:
  ///   - end: the boot time at which the wait ends at the latest; nil: no limit.
  ///   - timer: the instant of the timer that is due at `end`; nil: the wait ends at `end` for another reason.
  func wait(until end: Int64?, _ timer: Milliseconds?) {
    let isRead = transport.wait(until: end)
    if isRead, transport.longCount == 0, let timer { readUntil = max(readUntil, timer) }
  }

  /// Handles the replies that the transport has read. If long replies take more than `longRepliesTime`, the other long
  /// replies wait for the next call.
  func handle(for engine: Engine) {
    var left = transport.longCount
    var end: Int64?
    while true {
      let finished = transport.takeFinished()
      if finished.isEmpty { return }
      for one in finished { engine.handle(one) }
      guard left > 0, transport.longCount < left else { continue }
      left -= 1
      longHandled &+= 1
      let now = monotonicMilliseconds()
      if let end, now >= end { return }
      end = end ?? now &+ Self.longRepliesTime
    }
  }

  /// Reads and handles all replies that have arrived. If this takes long, the engine meanwhile sends the keep-alives
  /// that become due.
  func readAll(for engine: Engine) {
    let now = clock.now
    while !transport.read() {
      handle(for: engine)
      engine.sendDueKeepAlives()
    }
    let all = longHandled &+ transport.longCount
    handle(for: engine)
    while longHandled < all {
      engine.sendDueKeepAlives()
      _ = transport.read()
      handle(for: engine)
    }
    readUntil = now
  }
}
