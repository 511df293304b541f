internal import UsherCore

extension Engine {
  /// Any thread: from now on the loop notices when the guardian ends, writes a warning to the log, and starts a new
  /// guardian. Call this function after `setLog`, so that no warning is lost.
  package func superviseGuardian() { if guardian != nil { submit { self.supervisesGuardian = true } } }

  /// Called by the loop in each turn: starts a new guardian one second after the guardian has ended, and makes the
  /// transport watch each new guardian.
  func tendGuardian() {
    guard let guardian, guardian.tendAt != nil, let warning = guardian.tend() else { return watchGuardian() }
    warn(warning)
    watchGuardian()
  }

  /// Makes the transport watch the channel of a new guardian, which becomes readable when the guardian ends.
  private func watchGuardian() {
    guard let guardian, guardian.launches != watchedLaunch else { return }
    watchedLaunch = guardian.launches
    transport.watch(guardian.channel) { self.warn(guardian.hasEnded()) }
  }

  private func warn(_ line: LogLine) { if events.logs(.warning) { events.write(.warning, line) } }
}
