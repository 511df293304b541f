internal import UsherCore

extension Engine {
  /// Any thread. The observer gets the events from now on.
  package func addObserver(_ id: UInt64, _ call: @escaping (EngineEvent) -> Void) {
    submit { self.events.addObserver(id, call) }
  }

  /// Any thread.
  package func removeObserver(_ id: UInt64) {
    submit { self.events.removeObserver(id) }
  }

  /// Any thread; before anything else is submitted.
  package func setLog(_ sink: @escaping (LogLevel, String) -> Void) {
    submit { self.events.setLog(sink) }
  }
}
