internal import CPlatform
internal import UsherCore

/// The threads that the system could not start. The I/O thread tries to start these threads again every tenth of a
/// second of real time.
struct MissingThreads {
  /// When the I/O thread tries again, in nanoseconds of the boot time; nil: no thread is missing.
  var retryAt: Int64?
  /// Whether a log line has reported that threads are missing.
  var isReported = false
  /// Whether the system did not start the thread that ends the engine.
  var lacksEnding = false
}

extension Engine {
  private static var retryPeriod: Int64 { 100_000_000 }

  /// Called when the system did not start a thread. Callbacks wait until a callback thread runs.
  func threadIsMissing() {
    missingThreads.retryAt = platform_boottime_ns() &+ Self.retryPeriod
    guard !missingThreads.isReported else { return }
    missingThreads.isReported = true
    if events.logs(.error) {
      events.write(.error, LogLine("USHER_E_SYSTEM: the system does not start a thread; callbacks may be late"))
    }
  }

  /// Does nothing before `missingThreads.retryAt`. Then tries again to start the missing threads.
  func startMissingThreads() {
    guard let at = missingThreads.retryAt, at <= platform_boottime_ns() else { return }
    missingThreads.retryAt = nil
    if calls.threads?.startThreads() == false { return threadIsMissing() }
    if missingThreads.lacksEnding {
      missingThreads.lacksEnding = false
      return endInBackground()
    }
    missingThreads.isReported = false
  }

  /// Returns the instant at which the loop must run next: the earliest of `timer`, `missingThreads.retryAt` and the
  /// guardian's `tendAt`; nil if all three are nil.
  func wakeUp(_ timer: Int64?) -> Int64? {
    earlier(earlier(timer, missingThreads.retryAt), guardian?.tendAt)
  }

  private func earlier(_ first: Int64?, _ second: Int64?) -> Int64? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
  }

  // MARK: The end

  /// Closes all playbacks, then ends the engine. Must not be called in a callback.
  package func end() {
    finishClosing()
    stop()
    options.onEnd?(self)
  }

  /// Any thread: does the same as `end`, on a new thread. If the system does not start the thread, the I/O thread tries
  /// again later.
  package func endInBackground() {
    let me = Unmanaged.passRetained(self)
    guard platform_thread_start(runEnding, me.toOpaque(), 1, nil) != 0 else { return }
    me.release()
    submit {
      self.missingThreads.lacksEnding = true
      self.threadIsMissing()
    }
  }
}

/// Each thread of the library calls this function first. It sets the name of the thread, which debuggers and top(1)
/// show; at most 15 characters.
func beginThread(_ name: StaticString) { platform_thread_begin(name.utf8Start) }

private func runEnding(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  beginThread("usher-close")
  if let argument {
    Unmanaged<Engine>.fromOpaque(argument).takeRetainedValue().end()
  }
  return nil
}
