internal import UsherCore

extension Engine {
  /// Any thread: from now on the loop notices when the guardian ends, writes a warning to the log, and starts a new
  /// guardian. Call this function after `setLog`, so that no warning is lost.
  package func superviseGuardian() { if let guardian { submit { guardian.isSupervised = true } } }

  /// Called by the loop in each turn: starts a new guardian one second after the guardian has ended, and makes the
  /// transport watch each new guardian. Does nothing before `superviseGuardian`.
  func tend(_ guardian: Guardian) {
    guard guardian.isSupervised else { return }
    if let warning = guardian.tend() { warn(warning) }
    // The channel becomes readable when the guardian ends.
    guard let channel = guardian.takeUnwatched() else { return }
    transport.watch(channel) {
      self.warn(guardian.hasEnded())
    }
  }

  /// Called when the I/O thread has moved to another network namespace: a new guardian starts there.
  func moveGuardian() { if let warning = guardian?.restart() { warn(warning) } }

  private func warn(_ line: LogLine) { if events.logs(.warning) { events.write(.warning, line) } }
}
