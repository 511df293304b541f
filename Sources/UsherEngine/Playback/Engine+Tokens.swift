package import UsherCore

/// Content tokens and payloads. They come from calls of the host, from the host's callbacks and from the token map.
extension Engine {
  // MARK: Questions to the host

  func askToken(_ entry: PlaybackEntry) {
    guard let callback = entry.delegate.tokenCallback else {
      return step(entry) { $0.tokenAnswered(nil, now: self.clock.now) }
    }
    askHost(entry, .token, atMost: entry.delegate.policy.tokenTimeout, put: callback) { entry, reply, _ in
      if let entry { self.step(entry) { $0.tokenAnswered(reply.secret, now: self.clock.now) } }
    }
  }

  func askPayload(_ entry: PlaybackEntry, _ keySystem: KeySystem?) {
    guard let callback = entry.callbacks.payload, let keySystem else {
      // With customer SSM, the licence callback gets the CDM's last payload again.
      if let keySystem, let payload = entry.lastPayload { return renew(entry, keySystem, payload) }
      return events.emit(.renewalDue, entry)
    }
    guard !entry.questions.contains(where: { $0.kind == .payload }) else { return }
    let put: (HostQuestion, HostPlayback) -> Void = { ask, host in callback(ask, keySystem, host) }
    askHost(entry, .payload, atMost: entry.delegate.policy.payloadTimeout, put: put) { entry, reply, status in
      guard let entry else { return }
      if let payload = reply.secret { return self.renew(entry, keySystem, payload) }
      self.step(entry) { $0.payloadFailed(status, now: self.clock.now) }
    }
  }

  // MARK: Tokens the host gives without being asked

  /// Any thread: called when the host gives the missing content token.
  /// - Returns: false if the playback needs no token.
  package func giveToken(_ playback: PlaybackID, _ token: Secret) -> Bool {
    sync { self.playbacks[playback].map { self.give(token, $0) } ?? false }
  }

  private func give(_ token: Secret, _ entry: PlaybackEntry) -> Bool {
    guard entry.machine.wantsToken else { return false }
    if entry.onDrop == nil { timers.cancel(entry.tokenTimer) }
    step(entry) { $0.tokenGiven(token, now: self.clock.now) ?? [] }
    return true
  }

  func tokenWaitEnded(_ playback: PlaybackID) {
    guard !dropPrepared(playback), let entry = playbacks[playback] else { return }
    entry.tokenTimer = 0
    step(entry) { $0.tokenWaitEnded(now: self.clock.now) }
  }

  // MARK: Token map

  enum MappedToken {
    case known(Secret)
    /// The request uses the playback's own content token, not a token from the map.
    case unneeded
    /// The request is for other content than the item, and the map has no token for that content.
    case missing
  }

  /// Looks up the content token for the content of a licence request in the token map.
  func mappedToken(_ entry: PlaybackEntry, _ contentID: [UInt8]) -> MappedToken {
    guard let map = entry.delegate.tokenMap, !contentID.isEmpty else { return .unneeded }
    if entry.mappedTokens.contains(where: { $0.id == contentID }) {
      return contentID.withUnsafeBufferPointer { map.get($0) }.map { .known($0) } ?? .unneeded
    }
    guard let found = map.hold(contentID) else { return contentID == entry.contentID ? .unneeded : .missing }
    entry.mappedTokens.append((contentID, found.pin))
    return .known(found.token)
  }

  /// Releases the playback's tokens in the map, because the playback no longer needs them.
  func releaseMappedTokens(_ entry: PlaybackEntry) {
    for (_, pin) in entry.mappedTokens { entry.delegate.tokenMap?.release(pin) }
    entry.mappedTokens = []
  }

  /// Any thread: called when the host has put a token into a delegate's map. Playbacks that wait for this token use it
  /// now; other playbacks of the same content use it for their next licence.
  package func tokenMapped(_ delegate: LicenseDelegate, _ contentID: [UInt8]) {
    submit {
      guard let map = delegate.tokenMap else { return }
      self.perform(on: self.playbacks.playing(contentID, delegate)) { entry in
        if entry.machine.isClosing { return }
        if entry.mappedTokens.contains(where: { $0.id == contentID }) {
          if let token = contentID.withUnsafeBufferPointer({ map.get($0) }) { entry.machine.tokenReplaced(token) }
        } else if let found = map.hold(contentID) {
          entry.mappedTokens.append((contentID, found.pin))
          _ = self.give(found.token, entry)
        }
      }
    }
  }
}
