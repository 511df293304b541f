internal import UsherCore

extension Engine {
  /// How long the record of a session without keep-alives is valid: one day.
  private static var longestLife: Milliseconds { 86_400_000 }
  private static var shortestLife: Milliseconds { 60_000 }

  /// Makes the recovery record of a playback agree with its session: called after each step of its machine.
  @inline(never)
  func updateRecord(_ entry: PlaybackEntry) {
    // With customer SSM only the host knows the session.
    guard !entry.delegate.isCustomer else { return }
    guard let now = entry.machine.recoverable() else {
      guard entry.recorded != nil else { return }
      entry.recorded = nil
      // If the server may still hold the session, the record stays as long as the session is in `unanswered`.
      if entry.machine.unanswered == nil { clearRecord(entry.id) }
      return
    }
    // The same address means the same token: `recorded` keeps the last token in memory, so no other token can get its
    // address.
    if let last = entry.recorded, last.token.address == now.token.address, last.extendedAt == now.extendedAt { return }
    let lifetime = recordLifetime(entry)
    let endpoint = entry.delegate.endpoints.teardown
    let addresses = endpoint.flatMap { transport.addresses(of: $0) }
    // Most replies change only the token. After such a reply, an update of the record takes far less time than writing
    // the whole record.
    if entry.recorded != nil, !options.transport.keepsCookies, addresses == entry.recordedAddresses,
      updateToken(entry.id, token: now.token, lifetime: lifetime)
    {
      entry.recorded = now
      KillPoint.pass("record")
      return reportJournalFault()
    }
    guard let request = entry.delegate.ssmRequest(.teardown, token: now.token) else { return }
    let isFirst = entry.recorded == nil
    entry.recorded = now
    entry.recordedAddresses = addresses
    let record = RecoveryRecord(
      request: request, token: now.token, addresses: addresses, cookies: transport.cookies(of: request.endpoint),
      lifetime: lifetime, timeout: options.transport.httpTimeout, retries: entry.delegate.policy.teardownRetries)
    defer { KillPoint.pass(isFirst ? "first record" : "record") }
    var isKept = recordKeeper?.keep(record, of: entry.id) ?? true
    if let journal = recovery?.journal, journal.keepsRecords, !journal.keep(record, of: entry.id) { isKept = false }
    reportJournalFault()
    if isKept || !isFirst || !events.logs(.warning) { return }
    events.write(
      .warning, LogLine(entry, "no room for the session's recovery record: if the process dies, its slot stays taken"))
  }

  /// Returns how long a record is valid that is written now. The library assumes that a server keeps a session for two
  /// periods. Some servers keep a session longer, so the record is valid for four periods.
  func recordLifetime(_ entry: PlaybackEntry) -> Milliseconds {
    let period = entry.machine.period()
    return period == 0 ? Self.longestLife : max(Self.shortestLife, period.permille(4000))
  }

  /// Removes the record of a playback, unless the playback has another session by now, whose record has replaced it.
  func clearRecord(_ playback: PlaybackID) {
    guard playbacks[playback]?.recorded == nil else { return }
    recordKeeper?.clear(playback)
    recovery?.journal.clear(playback)
    reportJournalFault()
  }

  /// Writes an update of the record: the new token and the new lifetime.
  /// - Returns: false if this was not possible; then the caller must write the whole record.
  private func updateToken(_ playback: PlaybackID, token: Secret, lifetime: Milliseconds) -> Bool {
    if recordKeeper?.update(playback, token: token, lifetime: lifetime) == false { return false }
    guard let journal = recovery?.journal, journal.keepsRecords else { return true }
    return journal.update(playback, token: token, lifetime: lifetime)
  }
}
