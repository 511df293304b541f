package import UsherCore

/// Players: each has a current playback, and at most one that waits to start.
extension Engine {
  /// Any thread: adds a player.
  package func addPlayer(_ id: PlayerID) {
    submit { self.players[id] = PlayerMachine() }
  }

  /// Any thread: closes the current playback of a player, and the playback that waits to start. A stop with a teardown
  /// also tears down the session that the newest playback has left at the head-end.
  /// - Parameters:
  ///   - ending: what to do with the session; nil: the default of the delegate.
  ///   - isRemoved: whether to remove the player, too.
  ///   - timeout: how long to wait until the current playback is closed; 0: do not wait.
  /// - Returns: false if the session was left and the library does not have its token.
  package func stopPlayer(
    _ player: PlayerShared, _ ending: SSMSession.Ending?, removing isRemoved: Bool = false,
    waiting timeout: Milliseconds
  ) -> Bool {
    var newest: PlaybackShared?
    let answer = ending == .teardown ? Wait<Bool>() : nil
    closeAndWait({ newest = player.stop(removing: isRemoved) }, timeout) {
      defer {
        if isRemoved {
          self.players.remove(player.id)
          self.events.removeObservers(player)
        }
      }
      let current = self.stop(player.id, ending)
      guard let answer, let newest else {
        answer?.end(true)
        return current
      }
      answer.end(self.tearDownLeft(newest))
      // `closeAndWait` waits for the playback that this closure returns. If the newest playback has left its session,
      // this playback is closed, so the player has no current playback. Then `closeAndWait` waits for the late teardown
      // of that session.
      return self.playbacks[newest.id]?.tearsDownLeft == true ? newest.id : current
    }
    return answer?.wait() ?? true
  }

  /// Closes the current playback of a player, and the playback that waits to start.
  /// - Returns: the current playback; 0 if the player has none.
  private func stop(_ id: PlayerID, _ ending: SSMSession.Ending?) -> PlaybackID {
    guard let player = players[id] else { return 0 }
    requests.withoutStartingQueued {
      if let waiting = player.waiting, let entry = playbacks[waiting] { close(entry, ending, .closed) }
      if let current = player.current, let entry = playbacks[current] { close(entry, ending, .closed) }
    }
    return player.current ?? 0
  }

  /// Any thread: plays the next item on a player.
  /// - Returns: false if the player was removed, or the host has asked to close the context.
  package func play(
    _ playback: PlaybackShared, on player: PlayerShared, host: HostPlayback, item: PlaybackItem,
    callbacks: PlaybackCallbacks
  ) -> Bool {
    let id = playback.id
    return submit(if: { !closing.isRequested && player.play(playback) }) {
      let shared = player
      let player = player.id
      let entry = self.entry(playback, player, host, item, callbacks)
      self.timers.cancel(entry.tokenTimer)
      entry.onDrop = nil
      entry.noticeSource = self.events.noticeSource(shared)
      self.beginRecovery()
      if self.events.logs(.trace) { self.events.tracePlay(entry) }
      if self.closing.hasBegun || self.players[player] == nil { return self.close(entry, nil, .closed) }
      self.perform(self.players[player]?.play(id, waits: !entry.delegate.policy.zapsAtOnce) ?? [])
    }
  }

  /// Returns the prepared playback with this number, or else a new one.
  private func entry(
    _ playback: PlaybackShared, _ player: PlayerID, _ host: HostPlayback, _ item: PlaybackItem,
    _ callbacks: PlaybackCallbacks
  ) -> PlaybackEntry {
    if let prepared = playbacks[playback.id] {
      prepared.take(host, callbacks)
      return prepared
    }
    var item = item
    let mapped = item.contentToken == nil && !item.isClear ? item.delegate.tokenMap?.hold(item.contentID) : nil
    if let mapped { item.contentToken = mapped.token }
    let entry = PlaybackEntry(
      id: playback.id, player: player, host: host, item: item, shared: playback, callbacks: callbacks)
    if let mapped { entry.mappedTokens.append((item.contentID, mapped.pin)) }
    playbacks.insert(entry)
    closing.playbackAdded(teardown: entry.delegate.policy.teardownTimeout)
    return entry
  }

  /// Any thread: does for an item what needs no slot: opens connections, fetches the certificate, and asks for the
  /// content token. `play` with the same number then uses the results.
  /// - Parameters:
  ///   - time: after this time, the engine drops the prepared playback.
  ///   - onDrop: called on the I/O thread when the engine drops the prepared playback, after `time` or for another
  ///     reason.
  package func prepare(
    _ playback: PlaybackShared, on player: PlayerShared, host: HostPlayback, item: PlaybackItem,
    callbacks: PlaybackCallbacks, keepingFor time: Milliseconds, onDrop: @escaping () -> Void
  ) {
    submit {
      guard !self.closing.hasBegun else { return }
      let entry = self.entry(playback, player.id, host, item, callbacks)
      entry.onDrop = onDrop
      self.timers.cancel(entry.tokenTimer)
      entry.tokenTimer = self.timers.set(at: self.clock.now.adding(time), .token(entry.id))
      if item.isClear { return }
      self.connectNow(entry.delegate, keepingFor: time, mayShorten: false)
      let source = entry.delegate.certificates
      if entry.delegate.hooks?.certificate == nil, source.request != nil {
        self.fetchCertificate(source, for: entry.id, timeout: nil) { _ in }
      }
      self.step(entry) { $0.prepare() }
    }
  }

  /// Any thread: drops a playback that is only prepared. Does nothing if another playback has its number by now.
  package func drop(_ playback: PlaybackShared) {
    submit { if self.playbacks[playback.id]?.shared === playback { self.dropPrepared(playback.id) } }
  }

  /// Drops a playback that is only prepared.
  /// - Returns: false if the host plays the playback, or if it no longer exists; then this function does nothing.
  @discardableResult
  func dropPrepared(_ id: PlaybackID) -> Bool {
    guard let entry = playbacks[id], entry.onDrop != nil else { return false }
    close(entry, .leave, .closed)
    return true
  }

  /// Called when the player may start its next playback. Starts the playback that waits on this player, if one waits.
  func startNext(after entry: PlaybackEntry) { perform(players[entry.player]?.nextMayStart(after: entry.id) ?? []) }

  private func perform(_ actions: [PlayerMachine<PlaybackID>.Action]) {
    requests.withoutStartingQueued {
      for action in actions {
        switch action {
        case .start(let id):
          if waitsForRecovery(id) { continue }
          if let entry = playbacks[id] { step(entry) { $0.start(now: self.clock.now) } }
        case .close(let id):
          if let entry = playbacks[id] { close(entry, entry.machine.ending(isZap: true), .closed) }
        case .replace(let id):
          if let entry = playbacks[id] { close(entry, entry.machine.ending(isZap: true), .replaced) }
        }
      }
    }
  }
}
