internal import UsherCore

/// Passes the events of a context to its observers, and its log lines to its log function. The observers and the log
/// function are host code. Only the I/O thread uses this object.
final class EventSink {
  private struct Observer {
    let id: UInt64
    let call: (EngineEvent) -> Void
  }

  let calls: HostCalls
  let clock: Clock
  private let logLevel: Int32
  private var observers: [Observer] = []
  /// The players that have an observer.
  var observedPlayers: [PlayerShared] = []
  private var log: ((LogLevel, String) -> Void)?
  private var lastSequence: UInt64 = 0
  /// How many KEPT_ALIVE events and log lines the library has dropped since the last log line that reported such a
  /// number.
  private var dropped: UInt64 = 0
  /// A number of callbacks. If so many callbacks wait, or more, the library drops KEPT_ALIVE events. It also drops log
  /// lines that are less important than a warning.
  private static var waitingMost: Int { 10_000 }

  init(calls: HostCalls, clock: Clock, logLevel: Int32) {
    self.calls = calls
    self.clock = clock
    self.logLevel = logLevel
  }

  /// Adds an observer, which gets all later events.
  func addObserver(_ id: UInt64, _ call: @escaping (EngineEvent) -> Void) {
    observers.append(Observer(id: id, call: call))
  }

  /// Removes an observer of the context or of a player.
  func removeObserver(_ id: UInt64) {
    observers.removeAll { $0.id == id }
    for player in observedPlayers { player.observers.removeAll { $0.id == id } }
    forgetUnobservedPlayers()
  }

  func setLog(_ sink: @escaping (LogLevel, String) -> Void) { log = sink }

  /// Removes all observers and the log function.
  func close() {
    observers = []
    for player in observedPlayers { player.observers = [] }
    observedPlayers = []
    log = nil
  }

  /// Reports an event of a playback to every observer, and writes it to the log.
  /// - Parameter isOfItem: whether the event says something about the item, so that a notice may follow.
  func emit(
    _ kind: EventKind, _ entry: PlaybackEntry, isLeft: Bool = false, period: Milliseconds = 0,
    lateness: Milliseconds = 0, error given: UsherError? = nil, isOfItem: Bool = true
  ) {
    lastSequence &+= 1
    if kind != .keptAlive, isOfItem, let source = entry.noticeSource {
      tellNotice(source, kind, entry, isLeft: isLeft, given)
    }
    if observers.isEmpty, log == nil { return }
    let error = given ?? UsherError(.ok)
    if kind == .keptAlive, isFull() { return }
    let event = EngineEvent(
      kind: kind, playback: entry.host, sequence: lastSequence, time: clock.now, isLeft: isLeft, period: period,
      lateness: lateness, error: error)
    for observer in observers {
      calls.run(entry.id) { observer.call(event) }
    }
    if logs(.trace) { trace(event, entry.id) }
    if error.status != .ok, kind != .playbackClosed {
      guard logs(.warning) else { return }
      var line = LogLine(entry, kind.name)
      line.add(": ")
      line.add(error)
      write(.warning, line)
    } else if logs(.info) {
      write(.info, LogLine(entry, kind.name))
    }
  }

  /// Reports an event that belongs to no playback.
  func emitForContext(_ kind: EventKind, _ error: UsherError) {
    lastSequence &+= 1
    let event = EngineEvent(
      kind: kind, playback: HostPlayback(handle: 0, playerHandle: 0, tag: 0), sequence: lastSequence,
      time: clock.now, isLeft: false, period: 0, lateness: 0, error: error)
    for observer in observers {
      calls.run(0) { observer.call(event) }
    }
    if logs(.trace) { trace(event, nil) }
    let level = error.status == .ok || kind == .contextClosed ? LogLevel.info : .warning
    guard logs(level) else { return }
    var line = LogLine(kind.name)
    if level == .warning {
      line.add(": ")
      line.add(error)
    }
    write(level, line)
  }

  /// Returns whether too many callbacks wait, because the host hangs or does not pump; then the caller drops its event
  /// or log line. Without this limit such a host would use more and more memory.
  private func isFull() -> Bool {
    if calls.executor.pending >= Self.waitingMost {
      dropped &+= 1
      return true
    }
    guard dropped > 0, logs(.warning) else { return false }
    var line = LogLine("callbacks are late; KEPT_ALIVE events and log lines dropped: ")
    line.add(dropped)
    dropped = 0
    write(.warning, line)
    return false
  }

  /// Returns whether the host wants log lines of this level.
  func logs(_ level: LogLevel) -> Bool { log != nil && level.rawValue <= logLevel }

  /// Passes a line to the log function. All lines use lane 0, which keeps them in order.
  func write(_ level: LogLevel, _ line: LogLine) { write(level, text: line.text()) }

  func write(_ level: LogLevel, text: String) {
    guard let log, level.rawValue <= LogLevel.warning.rawValue || !isFull() else { return }
    calls.run(0) { log(level, text) }
  }
}
