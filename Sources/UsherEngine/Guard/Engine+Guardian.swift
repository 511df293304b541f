internal import UsherCore

extension Engine {
  /// Any thread: from now on the loop notices when the guardian ends, writes a warning to the log, and starts a new
  /// guardian. Call this function after `setLog`, so that no warning is lost.
  package func superviseGuardian() { if let guardian { submit { guardian.isSupervised = true } } }

  /// Called by the loop in each turn: starts a new guardian one second after the guardian has ended. Does nothing
  /// before `superviseGuardian`.
  func tend(_ guardian: Guardian) {
    if guardian.isSupervised { watch(guardian, afterwards: guardian.tend()) }
  }

  /// Called when the I/O thread has moved to another network namespace: a new guardian starts there.
  func moveGuardian() {
    if let guardian, guardian.isSupervised { watch(guardian, afterwards: guardian.restart()) }
  }

  /// Called at once after each method of the guardian that may start another one or end the last one: makes the
  /// transport watch the channel to the last one. So the guardian never closes a channel that the transport watches.
  private func watch(_ guardian: Guardian, afterwards warning: LogLine?) {
    // The channel becomes readable when the guardian ends.
    if let channel = guardian.takeUnwatched() {
      transport.watch(channel) { self.watch(guardian, afterwards: guardian.hasEnded()) }
    }
    if let warning { warn(warning) }
  }

  private func warn(_ line: LogLine) { if events.logs(.warning) { events.write(.warning, line) } }
}
