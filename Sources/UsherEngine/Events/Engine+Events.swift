internal import UsherCore

/// Someone who is told every event.
final class Observer {
  let id: UInt64
  let tell: (EngineEvent) -> Void
  init(id: UInt64, tell: @escaping (EngineEvent) -> Void) {
    self.id = id
    self.tell = tell
  }
}

extension Engine {
  /// Any thread. Events from now on.
  package func addObserver(_ id: UInt64, _ tell: @escaping (EngineEvent) -> Void) {
    submit { self.observers.append(Observer(id: id, tell: tell)) }
  }

  /// Any thread.
  package func removeObserver(_ id: UInt64) {
    submit { self.observers.removeAll { $0.id == id } }
  }

  /// Any thread; before anything else is submitted.
  package func setLog(_ sink: @escaping (LogLevel, String) -> Void) {
    submit { self.log = sink }
  }

  func emit(
    _ kind: EventKind, _ entry: PlaybackEntry, isLeft: Bool = false, period: Milliseconds = 0,
    lateness: Milliseconds = 0, error: UsherError = UsherError(.ok)
  ) {
    eventSequence &+= 1
    let event = EngineEvent(
      kind: kind, playback: entry.host, sequence: eventSequence, time: clock.now, isLeft: isLeft, period: period,
      lateness: lateness, error: error)
    for observer in observers {
      call(entry.id) { observer.tell(event) }
    }
    if error.status != .ok, kind != .playbackClosed {
      guard wants(.warning) else { return }
      var line = name(entry.id, kind.name)
      line.add(": ")
      line.add(error.status.name)
      line.add(": ")
      line.add(error.message)
      tell(.warning, line)
    } else if wants(.info) {
      tell(.info, name(entry.id, kind.name))
    }
  }

  func wants(_ level: LogLevel) -> Bool { log != nil && level.rawValue <= options.logLevel }

  /// Lane 0 keeps log lines in order.
  func tell(_ level: LogLevel, _ line: LogLine) {
    guard let log else { return }
    let text = line.text()
    call(0) { log(level, text) }
  }

  /// "playback 7: set-up"
  func name(_ playback: PlaybackID, _ word: StaticString) -> LogLine {
    var line = LogLine("playback ")
    line.add(playback)
    line.add(": ")
    line.add(word)
    return line
  }
}
