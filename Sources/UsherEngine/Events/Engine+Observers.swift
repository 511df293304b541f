package import UsherCore

extension Engine {
  /// Any thread: adds an observer, which gets all later events.
  package func addObserver(_ id: UInt64, _ call: @escaping (EngineEvent) -> Void) {
    _ = submitUnlessEnded {
      self.events.addObserver(id, call)
      self.beginRecovery()
    }
  }

  /// Any thread: removes an observer.
  package func removeObserver(_ id: UInt64) {
    submit { self.events.removeObserver(id) }
  }

  /// Any thread: called when a function refuses a call. Tells the host before that function returns, and writes a line
  /// to the log.
  package func tellRefusal(_ error: UsherError) {
    options.tellRefusal?(error.status, error.message)
    submit { if self.events.logs(.warning) { self.events.write(.warning, LogLine(error)) } }
  }

  /// Any thread: sets the function that gets the log lines. Call this before you submit any other command.
  package func setLog(_ sink: @escaping (LogLevel, String) -> Void) {
    submit {
      let events = self.events
      events.setLog(sink)
      guard events.logs(.trace) else { return }
      events.traceContext()
      self.requests.onStart = { events.traceRequest($0) }
    }
  }
}
