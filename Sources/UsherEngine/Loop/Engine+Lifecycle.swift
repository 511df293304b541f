package import UsherCore

/// What happens to the host while it plays.
extension Engine {
  /// Any thread: the token that was missing has come. False: none was missing.
  package func giveToken(_ playback: PlaybackID, _ token: Secret) -> Bool {
    sync { self.playbacks[playback].map { self.take(token, $0) } ?? false }
  }

  private func take(_ token: Secret, _ entry: PlaybackEntry) -> Bool {
    var isTaken = false
    step(entry) { machine in
      let actions = machine.tokenGiven(token, now: self.clock.now)
      isTaken = actions != nil
      return actions ?? []
    }
    if isTaken { timers.cancel(entry.tokenTimer) }
    return isTaken
  }

  func tokenWaitEnded(_ playback: PlaybackID) {
    guard let entry = playbacks[playback] else { return }
    entry.tokenTimer = 0
    step(entry) { $0.tokenWaitEnded(now: self.clock.now) }
  }

  /// Any thread: the machine, or the host, goes to sleep.
  /// - Parameter playback: nil: all.
  package func suspend(_ playback: PlaybackID?) { each(playback) { entry in self.step(entry) { $0.suspended() } } }

  /// Any thread: and wakes up.
  package func resume(_ playback: PlaybackID?) {
    each(playback) { entry in self.step(entry) { $0.resumed(now: self.clock.now) } }
  }

  /// Any thread: the network is back, or another one. Connections made before are not trusted, and what failed is tried at once.
  package func networkChanged() {
    submit {
      for id in self.playbacks.sortedIDs {
        guard let entry = self.playbacks[id] else { continue }
        for endpoint in [entry.delegate.endpoints.heartbeat, entry.delegate.endpoints.license].compactMap({ $0 }) {
          if !self.suspects.contains(endpoint.origin) { self.suspects.append(endpoint.origin) }
        }
      }
    }
    each(nil) { entry in self.step(entry) { $0.networkChanged(now: self.clock.now) } }
  }

  private func each(_ playback: PlaybackID?, _ body: @escaping (PlaybackEntry) -> Void) {
    submit {
      guard let playback else {
        for id in self.playbacks.sortedIDs { if let entry = self.playbacks[id] { body(entry) } }
        return
      }
      if let entry = self.playbacks[playback] { body(entry) }
    }
  }

  // MARK: Token map

  enum MappedToken {
    case known(Secret)
    /// The playback's own token will do.
    case unneeded
    case missing
  }

  /// The content token of what a licence request names.
  func mappedToken(_ entry: PlaybackEntry, _ contentID: [UInt8]) -> MappedToken {
    guard let map = entry.delegate.tokenMap, !contentID.isEmpty else { return .unneeded }
    if entry.held.contains(where: { $0.id == contentID }) {
      return contentID.withUnsafeBufferPointer { map.get($0) }.map { .known($0) } ?? .unneeded
    }
    guard let found = map.hold(contentID) else { return contentID == entry.contentID ? .unneeded : .missing }
    entry.held.append((contentID, found.pin))
    return .known(found.token)
  }

  /// Any thread: a token came into a delegate's map; playbacks that wait for it go on, others use it for their next licence.
  package func tokenMapped(_ delegate: LicenseDelegate, _ contentID: [UInt8]) {
    submit {
      guard let map = delegate.tokenMap else { return }
      for id in self.playbacks.sortedIDs {
        guard let entry = self.playbacks[id], entry.delegate === delegate, entry.contentID == contentID,
          !entry.machine.isClosing
        else { continue }
        if entry.held.contains(where: { $0.id == contentID }) {
          if let token = contentID.withUnsafeBufferPointer({ map.get($0) }) { entry.machine.tokenReplaced(token) }
        } else if let found = map.hold(contentID) {
          entry.held.append((contentID, found.pin))
          _ = self.take(found.token, entry)
        }
      }
    }
  }

  // MARK: Delegates

  /// Any thread.
  package func setHooks(_ delegate: LicenseDelegate, _ hooks: DelegateHooks?) {
    if hooks?.certificate != nil { delegate.certificates.expectHook() }
    submit { delegate.hooks = hooks }
  }

  /// Any thread: a header of the licence requests to come; nil takes it away.
  package func setLicenseHeader(_ delegate: LicenseDelegate, name: [UInt8], line: Secret?) {
    submit {
      delegate.licenseHeaders.removeAll { equalIgnoringCase($0.name, name) }
      if let line { delegate.licenseHeaders.append((name, line)) }
    }
  }

  /// Any thread. What a player's key request needs as content identifier of a URL; `complete` as in `requestLicense`.
  package func requestContentID(
    _ playback: PlaybackID, url: [UInt8], timeout: Milliseconds, isBlocking: Bool, complete: @escaping (Answer) -> Void
  ) {
    submit {
      let handOver: (Answer) -> Void = isBlocking ? complete : { answer in self.call(playback) { complete(answer) } }
      guard let entry = self.playbacks[playback], !entry.machine.isClosing else {
        return handOver(contentIDAnswer(.failed(UsherError(.closed))))
      }
      let hooks = entry.delegate.hooks
      let scheme = hooks?.scheme ?? AssetID.fairPlayScheme
      guard let hook = hooks?.contentID else { return handOver(contentIDAnswer(contentIdentifier(url, scheme))) }
      let question = HookQuestion(.contentID, assetID: url) { contentIdentifier(url, scheme) }
      let deadline = min(timeout, entry.delegate.hookTimeout)
      self.ask(entry, .hook(.contentID), question, atMost: deadline, put: { ask, host in hook(ask, question, host) }) {
        _, reply, status in
        switch reply {
        case .builtin: handOver(contentIDAnswer(question.builtin()))
        case .value(let value): handOver(contentIDAnswer(.value(value)))
        case .failed(let failure): handOver(contentIDAnswer(.failed(failure.error(.local, .license))))
        case .none, .license:
          handOver(contentIDAnswer(.failed(UsherError(status == .ok ? .callback : status, operation: .license))))
        }
      }
    }
  }
}

/// The built-in content identifier.
private func contentIdentifier(_ url: [UInt8], _ scheme: [UInt8]) -> HookQuestion.BuiltIn {
  let bytes = url.withUnsafeBufferPointer { text -> [UInt8]? in
    try? ContentIdentifier.decodedJSON.bytes(of: text, scheme: scheme)
  }
  guard let bytes else {
    return .failed(UsherError(.invalidArgument, operation: .license, message: "the URL names no content"))
  }
  return .value(Secret(bytes))
}

/// What the token map knows an asset ID by; nil where it names nothing.
package func sspContentID(_ assetID: [UInt8]) -> [UInt8]? {
  let asset = assetID.withUnsafeBufferPointer { text -> AssetID? in try? AssetID(text) }
  return asset?.read().contentID
}

private func contentIDAnswer(_ made: HookQuestion.BuiltIn) -> Answer {
  switch made {
  case .value(let value):
    return Answer(data: value, period: 0, renewType: .none, isRenewal: false, error: UsherError(.ok))
  case .failed(let error): return Answer(data: nil, period: 0, renewType: .none, isRenewal: false, error: error)
  }
}
