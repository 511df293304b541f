internal import UsherCore

/// A command about many playbacks. In each turn, the loop performs the command on some of these playbacks. So the
/// command does not delay replies and timers.
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
