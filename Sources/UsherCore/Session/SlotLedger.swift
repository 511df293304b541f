/// Names one playback of one context.
package typealias PlaybackID = UInt64

/// Records which playbacks of a context are tearing their sessions down, and which set-ups wait for those teardowns. If
/// the head-end refuses a set-up because the account has too many sessions, the library waits until the context's
/// teardowns of other sessions at that head-end have ended, and sends the set-up once more.
package struct SlotLedger {
  /// The server that holds a session. Two delegates with the same teardown server have the same head-end.
  package struct HeadEnd: Equatable {
    let delegate: ObjectIdentifier
    let teardownOrigin: [UInt8]?

    package init(delegate: ObjectIdentifier, teardownOrigin: [UInt8]?) {
      self.delegate = delegate
      self.teardownOrigin = teardownOrigin
    }

    package static func == (left: HeadEnd, right: HeadEnd) -> Bool {
      if left.delegate == right.delegate { return true }
      guard let one = left.teardownOrigin, let other = right.teardownOrigin else { return false }
      return one == other
    }
  }

  /// A number: how many teardowns of the context have ended so far. If two readings of this number differ, a teardown
  /// has ended between them.
  package typealias Mark = UInt64

  package private(set) var mark: Mark = 0
  private var tearingDown: [PlaybackID: HeadEnd] = [:]
  private var waiting: [PlaybackID: HeadEnd] = [:]

  package init() {}

  package var teardownCount: Int { tearingDown.count }
  package var waitingCount: Int { waiting.count }

  package mutating func teardownBegan(_ playback: PlaybackID, at headEnd: HeadEnd) { tearingDown[playback] = headEnd }

  /// Called when the slot is free, or the library has stopped trying to free it.
  package mutating func teardownEnded(_ playback: PlaybackID) {
    if tearingDown.removeValue(forKey: playback) != nil { mark &+= 1 }
  }

  /// Called when the head-end refused this playback's set-up because the account has too many sessions, while the
  /// context was tearing down other sessions at the same head-end.
  package mutating func setupWaits(_ playback: PlaybackID, at headEnd: HeadEnd) { waiting[playback] = headEnd }

  package mutating func setupWaitsNoLonger(_ playback: PlaybackID) { waiting.removeValue(forKey: playback) }

  /// Says whether another playback is giving a slot back to this head-end, or whether any teardown of the context has
  /// ended since the caller read `earlier` from `mark`.
  package func ownTeardowns(
    besides playback: PlaybackID, at headEnd: HeadEnd, since earlier: Mark
  ) -> SSMSession.OwnTeardowns {
    if hasTeardown(besides: playback, at: headEnd) { return .underWay }
    return mark == earlier ? .none : .ended
  }

  /// Returns the playbacks whose set-up the engine may send again, oldest first. At the head-end of such a playback, no
  /// other playback of the context is tearing its session down.
  package var readyToRetry: [PlaybackID] {
    guard !waiting.isEmpty else { return [] }
    return waiting.filter { !hasTeardown(besides: $0.key, at: $0.value) }.map { $0.key }.sorted()
  }

  private func hasTeardown(besides playback: PlaybackID, at headEnd: HeadEnd) -> Bool {
    tearingDown.contains { $0.key != playback && $0.value == headEnd }
  }
}
