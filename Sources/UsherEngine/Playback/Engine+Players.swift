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
      // A playback that has left its session is closed. So if the newest playback has left its session, the player has
      // no current playback: wait for the late teardown of that session instead.
      return self.playbacks[newest.id]?.tearsDownLeft == true ? newest.id : current
    }
    return answer?.wait() ?? true
  }

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
      var item = item
      let mapped = item.contentToken == nil && !item.isClear ? item.delegate.tokenMap?.hold(item.contentID) : nil
      if let mapped { item.contentToken = mapped.token }
      let entry = PlaybackEntry(id: id, player: player, host: host, item: item, shared: playback, callbacks: callbacks)
      if let mapped { entry.mappedTokens.append((item.contentID, mapped.pin)) }
      entry.noticeSource = self.events.noticeSource(shared)
      self.beginRecovery()
      self.playbacks.insert(entry)
      if self.events.logs(.trace) { self.events.tracePlay(entry) }
      self.closing.playbackAdded(teardown: entry.delegate.policy.teardownTimeout)
      if self.closing.hasBegun || self.players[player] == nil { return self.close(entry, nil, .closed) }
      self.perform(self.players[player]?.play(id, waits: !entry.delegate.policy.zapsAtOnce) ?? [])
    }
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
