internal import UsherCore

/// One blocked host thread. The I/O thread ends the wait, also when its time-out on the context's clock has passed.
package final class Wait<Value> {
  private let monitor = Monitor()
  private var value: Value?
  private let onEnd: (() -> Void)?

  /// - Parameter onEnd: for a thread that waits for other things too; runs on the thread that ends the wait.
  package init(onEnd: (() -> Void)? = nil) { self.onEnd = onEnd }

  /// The first value counts.
  package func end(_ newValue: Value) {
    monitor.change {
      if value == nil { value = newValue }
      return true
    }
    onEnd?()
  }

  package var isEnded: Bool { monitor.locked { value != nil } }

  package func wait() -> Value {
    monitor.locked {
      while true {
        if let value { return value }
        monitor.wait()
      }
    }
  }
}
