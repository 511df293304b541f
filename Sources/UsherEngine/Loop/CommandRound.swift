internal import UsherCore

/// A command about many playbacks. The loop performs it on some of them in each turn, so that it does not delay replies
/// and timers.
final class CommandRound {
  /// The playbacks for which the loop has not performed the command; the last element is the next one.
  private var ids: [PlaybackID]
  let perform: (PlaybackID) -> Void

  init(ids: [PlaybackID], perform: @escaping (PlaybackID) -> Void) {
    self.ids = ids.reversed()
    self.perform = perform
  }

  func next() -> PlaybackID? { ids.popLast() }
}
