internal import CPlatform
internal import UsherCore
internal import UsherEngine

/// The contexts that close when the process ends (`close_at_exit_ms`).
enum ClosingAtExit {
  nonisolated(unsafe) private static let monitor = Monitor()
  nonisolated(unsafe) private static var engines: [Engine] = []
  /// Registers the exit handler, once per process. The handler that was registered last runs first. So call this after
  /// libcurl was initialised: then this handler runs before OpenSSL frees its memory.
  private static let isRegistered = platform_at_exit { _ in closeAll() } != 0

  /// Registers the exit handler.
  /// - Returns: false if the system has no memory for the exit handler.
  static func prepare() -> Bool { isRegistered }

  static func add(_ engine: Engine) { monitor.locked { engines.append(engine) } }

  /// Called when the I/O thread of the engine has ended.
  static func remove(_ engine: Engine) {
    monitor.locked { engines.removeAll { $0 === engine } }
  }

  /// Closes all contexts at the same time, and waits until each is closed, or until its time limit has passed.
  private static func closeAll() {
    // A child of fork() has none of the threads that would send the teardowns.
    guard !isForkedProcess() else { return }
    let begun = monotonicMilliseconds()
    let held = monitor.locked { engines }
    for engine in held { engine.beginClosing(within: engine.options.closeAtExit) }
    for engine in held { engine.waitUntilClosed(until: begun &+ Int64(clamping: engine.options.closeAtExit)) }
  }
}
