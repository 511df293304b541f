internal import UsherCore

/// One blocked host thread. The I/O thread ends the wait, also when its time on the context's clock ran out.
package final class Wait<Value> {
  private let monitor = Monitor()
  private var value: Value?

  package init() {}

  /// The first value counts.
  package func end(_ newValue: Value) {
    monitor.locked {
      if value == nil { value = newValue }
      monitor.broadcast()
    }
  }

  package func wait() -> Value {
    monitor.locked {
      while true {
        if let value { return value }
        monitor.wait()
      }
    }
  }
}
