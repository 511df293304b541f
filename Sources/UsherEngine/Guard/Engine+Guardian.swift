internal import UsherCore

extension Engine {
  /// Any thread: from now on the loop notices when the guardian ends. Call it when the log is set, because the log gets
  /// a warning then.
  package func superviseGuardian() { if guardian != nil { submit { self.supervisesGuardian = true } } }

  /// Called by the loop in each turn: starts a new guardian if the last one has ended.
  func tendGuardian() {
    guard let guardian, guardian.tendAt != nil, let warning = guardian.tend() else { return watchGuardian() }
    warn(warning)
    watchGuardian()
  }

  /// Lets the transport watch the channel of a new guardian.
  private func watchGuardian() {
    guard let guardian, guardian.launches != watchedLaunch else { return }
    watchedLaunch = guardian.launches
    transport.watch(guardian.channel) { self.warn(guardian.hasEnded()) }
  }

  private func warn(_ line: LogLine) { if events.logs(.warning) { events.write(.warning, line) } }
}
