package import UsherCore

/// One notice for the observers of a player.
package final class EngineNotice {
  package let kind: ItemNotices.Notice
  package let playback: HostPlayback
  package let error: UsherError

  init(_ kind: ItemNotices.Notice, _ playback: HostPlayback, _ error: UsherError) {
    self.kind = kind
    self.playback = playback
    self.error = error
  }
}

/// The notices of one playback. A playback has this object if its player had an observer when the playback began.
final class NoticeSource {
  fileprivate var notices = ItemNotices()
  fileprivate let player: PlayerShared
  /// The id of the newest observer that the player had when the playback began. Observers that the host added later get
  /// no notices of this playback.
  fileprivate let newestObserver: UInt64

  init(_ player: PlayerShared, newestObserver: UInt64) {
    self.player = player
    self.newestObserver = newestObserver
  }
}

/// Notices go to the observers of one player. Only the I/O thread calls these methods.
extension EventSink {
  /// Makes the source of the notices of the player's next playback; nil if the player has no observer.
  func noticeSource(_ player: PlayerShared) -> NoticeSource? {
    player.observers.last.map { NoticeSource(player, newestObserver: $0.id) }
  }

  func removeObservers(_ player: PlayerShared) {
    player.observers = []
    forgetUnobservedPlayers()
  }

  @inline(never)
  func forgetUnobservedPlayers() { observedPlayers.removeAll { $0.observers.isEmpty } }

  /// Passes an event of a playback to the source of its notices. If the source returns a notice, passes the notice to
  /// the observers of the player.
  @inline(never)
  func tellNotice(
    _ source: NoticeSource, _ kind: EventKind, _ entry: PlaybackEntry, isLeft: Bool, _ given: UsherError?
  ) {
    let error = given ?? UsherError(.ok)
    guard let notice = notice(&source.notices, kind, isLeft: isLeft, error) else { return }
    let failure = notice == .ended ? source.notices.teardownError : nil
    let passed = EngineNotice(notice, entry.host, failure ?? error)
    let (player, playback) = (source.player, entry.id)
    for observer in player.observers where observer.id <= source.newestObserver {
      // If the host has started another item since the notice was queued, drop the notice.
      calls.run(playback) { if player.isNewest(playback) { observer.call(passed) } }
    }
  }

  private func notice(
    _ notices: inout ItemNotices, _ kind: EventKind, isLeft: Bool, _ error: UsherError
  ) -> ItemNotices.Notice? {
    switch kind {
    case .sessionStarted: return notices.sessionStarted()
    case .waitingForSlot: return notices.waitsForSlot()
    case .setupError, .licenseError: return notices.failed(mustStop: error.mustStop)
    case .heartbeatError: return notices.keepAliveFailed()
    case .recovered: return notices.recovered()
    case .license: return notices.licenseArrived()
    case .teardownError: return notices.teardownFailed(error)
    case .sessionEnded: return notices.sessionEnded(left: isLeft)
    case .playbackClosed: return notices.closed(orphanPossible: error.orphanPossible)
    case .keptAlive, .sessionDoubtful, .renewalDue, .noSession, .deviceRegistered, .contextClosed, .recoveredSlot,
      .journalError:
      return nil
    }
  }
}

extension Engine {
  /// Any thread: adds an observer of a player. The observer gets the notices of the items that the player plays from
  /// now on.
  package func addNoticeObserver(_ id: UInt64, of player: PlayerShared, _ call: @escaping (EngineNotice) -> Void) {
    submit {
      guard self.players[player.id] != nil else { return }  // another thread has freed the player
      if player.observers.isEmpty { self.events.observedPlayers.append(player) }
      player.observers.append(PlayerShared.Observer(id: id, call: call))
    }
  }
}
