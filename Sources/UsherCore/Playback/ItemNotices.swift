/// Decides what a viewer must know about one item of a player, as a value with no I/O. For each event of the playback,
/// the engine calls the method that is named for this event. If the method returns a notice, the engine passes the
/// notice to the observers of the player, with the error of the event.
package struct ItemNotices {
  /// The kinds of notices, with the numbers that the header gives them (`USHER_NOTICE_…`).
  package enum Notice: Int32, Sendable {
    case ready = 1
    case waiting, refused, lost, recovered, tornDown, ended
  }

  /// What the viewer knows. In the comment of each phase, the line with the arrow lists every phase that may follow.
  /// `ItemNoticesTests` tries all orders of five events, and compares these lists with what followed.
  enum Phase: UInt8 {
    /// Either the viewer knows nothing yet; or an outage that the viewer knows of is over, but the item has no licence.
    /// → waiting, ready, refused, ended
    case starting
    /// The library waits for a slot: before the item plays, or because another session must replace the item's session.
    /// → ready, refused, lost, ended
    case waiting
    /// The item plays.
    /// → waiting, lost, ended
    case ready
    /// The item cannot play, and has never been ready.
    /// → starting, ready, ended
    case refused
    /// The item was ready, and must stop.
    /// → ready, ended
    case lost
    /// The playback is closed.
    /// → nothing
    case ended
  }

  /// What the library knows about the item's slot at the head-end.
  private enum Slot: UInt8 { case none, free, left, unconfirmed }

  private(set) var phase = Phase.starting
  private var slot = Slot.none
  private var hasLicense = false
  /// Whether the keep-alives fail.
  private var isInOutage = false
  /// Why the last teardown failed; nil: no teardown of the item has failed.
  package private(set) var teardownError: UsherError?

  package init() {}

  package mutating func sessionStarted() -> Notice? {
    slot = .none
    isInOutage = false
    // If the item already has its licence, the new session replaces an earlier session of the item, so the item may
    // play again.
    return phase == .waiting && hasLicense ? tell(.ready) : nil
  }

  package mutating func waitsForSlot() -> Notice? {
    switch phase {
    case .starting, .ready: return tell(.waiting)
    case .waiting, .refused, .lost, .ended: return nil
    }
  }

  package mutating func licenseArrived() -> Notice? {
    hasLicense = true
    switch phase {
    case .starting, .waiting: return tell(.ready)
    case .refused: return isInOutage ? nil : tell(.ready)
    case .lost: return isInOutage ? nil : tell(.recovered)
    case .ready, .ended: return nil
    }
  }

  /// Called when set-up or a licence request has failed. A licence request that fails because the session has failed
  /// leads to no second notice.
  package mutating func failed(mustStop: Bool) -> Notice? {
    switch phase {
    case .starting, .waiting: return tell(hasLicense ? .lost : .refused)
    case .ready: return mustStop ? tell(.lost) : nil
    case .refused, .lost, .ended: return nil
    }
  }

  package mutating func keepAliveFailed() -> Notice? {
    isInOutage = true
    return failed(mustStop: true)
  }

  package mutating func recovered() -> Notice? {
    guard isInOutage else { return nil }
    isInOutage = false
    switch phase {
    case .lost: return tell(.recovered)
    case .refused:
      if hasLicense { return tell(.ready) }
      phase = .starting
      return nil
    case .starting, .waiting, .ready, .ended: return nil
    }
  }

  package mutating func teardownFailed(_ error: UsherError) -> Notice? {
    slot = .unconfirmed
    teardownError = error
    // If the playback was closed before, it had left its session to expire, and the host then asked for a teardown.
    // This teardown has failed, so the head-end may still hold the slot, and the notice `ended` comes a second time.
    return phase == .ended ? .ended : nil
  }

  package mutating func sessionEnded(left: Bool) -> Notice? {
    // If the teardown failed, this event causes no notice: the notice `ended` has come already (from `teardownFailed`)
    // or comes when the playback has closed.
    guard slot != .unconfirmed else { return nil }
    slot = left ? .left : .free
    return phase == .ended && !left ? .tornDown : nil
  }

  /// - Parameter orphanPossible: whether the head-end may hold a session whose token the library does not have.
  package mutating func closed(orphanPossible: Bool) -> Notice? {
    phase == .ended ? nil : tell(slot == .free && teardownError == nil && !orphanPossible ? .tornDown : .ended)
  }

  private mutating func tell(_ notice: Notice) -> Notice {
    switch notice {
    case .ready, .recovered: phase = .ready
    case .waiting: phase = .waiting
    case .refused: phase = .refused
    case .lost: phase = .lost
    case .tornDown, .ended: phase = .ended
    }
    return notice
  }
}
