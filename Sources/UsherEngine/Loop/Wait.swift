internal import UsherCore

/// The wait of one blocked host thread. The I/O thread ends the wait when the result is known, or when the time-out on
/// the context's clock has passed.
package final class Wait<Value> {
  private let monitor = Monitor()
  private var value: Value?
  private let onEnd: (() -> Void)?
  /// The timer of the time-out. Only the I/O thread uses it.
  var timer: UInt64?
  /// The error that belongs to `value`, if `value` is a status. The I/O thread sets this property before it ends the
  /// wait.
  var failure: UsherError?

  /// - Parameter onEnd: a closure that `end` calls, on the thread that ends the wait. With this closure the end of the
  ///   wait can wake a thread that also waits for other things. nil: there is no such closure.
  package init(onEnd: (() -> Void)? = nil) { self.onEnd = onEnd }

  /// Ends the wait with a value. Later calls do nothing.
  package func end(_ newValue: Value) {
    monitor.change {
      if value == nil { value = newValue }
      return true
    }
    onEnd?()
  }

  package var isEnded: Bool { monitor.locked { value != nil } }

  /// Waits for the value, at most until the monotonic instant. Returns nil if the instant has passed first.
  package func wait(until instant: Int64) -> Value? {
    monitor.locked {
      while value == nil, monitor.wait(until: instant) {}
      return value
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
