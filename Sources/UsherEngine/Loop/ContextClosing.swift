internal import Synchronization
internal import UsherCore

/// The state of a context's close: whether it has begun, how many playbacks it still waits for, and which threads wait
/// for it. Only the I/O thread uses this object, except the properties and functions marked "any thread".
final class ContextClosing {
  private(set) var hasBegun = false
  /// Whether the I/O thread has ended. `openCount` then still counts the playbacks that were open at that time.
  private var hasEnded = false
  /// How many playbacks are open. A playback counts as open until it is closed, and again while it tears down a session
  /// whose token came after the playback was closed.
  private(set) var openCount = 0
  /// How many closed playbacks wait for the reply to a set-up or licence request, because the reply may have a session
  /// token.
  private(set) var awaitedCount = 0
  private let timers: Timers
  private let clock: Clock
  private var waits: [Wait<Status>] = []
  /// The deadline of the host's last call to close the context, on the context's clock. `never`: that call has no
  /// deadline. 0: the host has made no such call.
  private let end = Atomic<Milliseconds>(0)
  /// The default time limit: long enough for one reply and one teardown at their default time limits.
  private static var standardLimit: Milliseconds { 6000 }

  init(timers: Timers, clock: Clock) {
    self.timers = timers
    self.clock = clock
  }

  /// The time limit of a call; 0 stands for the default.
  static func limit(_ given: Milliseconds) -> Milliseconds { given == 0 ? standardLimit : given }

  var isDone: Bool { openCount == 0 && awaitedCount == 0 }

  /// Any thread: notes that the host asks to close the context.
  /// - Parameter limit: the time limit, counted from now; 0: the default time limit. nil: the time limit of an earlier
  ///   call stays valid.
  func noteRequest(within limit: Milliseconds?) {
    if limit == nil, isRequested { return }
    end.store(limit.map { clock.now.adding(Self.limit($0)) } ?? .never, ordering: .releasing)
  }

  /// Any thread: whether the host has asked to close.
  var isRequested: Bool { end.load(ordering: .acquiring) != 0 }

  /// Any thread: how much time is left until the time limit passes; nil: the host has stated none.
  var left: Milliseconds? {
    let end = end.load(ordering: .acquiring)
    return end == 0 || end == .never ? nil : end.since(clock.now)
  }

  /// Notes that closing has begun.
  /// - Returns: false if closing had begun before.
  func begin() -> Bool {
    defer { hasBegun = true }
    return !hasBegun
  }

  /// The time limit for the close if the host has stated none: long enough for one reply and one teardown at the
  /// longest teardown time-out that a playback of this context has had, but at most `standardLimit`.
  var longest: Milliseconds { min(longestTeardown &+ longestTeardown, Self.standardLimit) }
  private var longestTeardown: Milliseconds = 0

  /// Called when the context has a new playback.
  /// - Parameter teardown: the playback's time-out for a teardown.
  func playbackAdded(teardown: Milliseconds) {
    openCount += 1
    longestTeardown = max(longestTeardown, teardown)
  }

  /// Called when a step has changed the machine of a playback.
  func playbackChanged(from before: PlaybackMachine.Standing, to after: PlaybackMachine.Standing) {
    let (wasOpen, isOpen) = (before.isOpen, after.isOpen)
    let (wasAwaited, isAwaited) = (before.isAwaited, after.isAwaited)
    guard wasOpen != isOpen || wasAwaited != isAwaited else { return }
    openCount += (isOpen ? 1 : 0) - (wasOpen ? 1 : 0)
    awaitedCount += (isAwaited ? 1 : 0) - (wasAwaited ? 1 : 0)
    endWaitsIfDone()
  }

  /// Ends `wait` when closing has begun and `isDone` is true, or at once if the I/O thread has ended. The caller sets
  /// the timer for the time-out of `wait`.
  func add(_ wait: Wait<Status>) {
    waits.append(wait)
    endWaitsIfDone()
  }

  /// Forgets a wait whose time-out has passed.
  func remove(_ wait: Wait<Status>) { waits.removeAll { $0 === wait } }

  func endWaitsIfDone() { if hasEnded || (hasBegun && isDone) { endWaits(.ok) } }

  /// Ends all waits. From now on each new wait ends at once, because a thread may still call a function that waits for
  /// the close while another thread frees the context.
  func endAll() {
    hasEnded = true
    endWaits(.closed)
  }

  private func endWaits(_ status: Status) {
    for wait in waits {
      timers.cancel(wait.timer)
      wait.end(status)
    }
    waits = []
  }
}

extension PlaybackMachine.Standing {
  /// Whether the close of the context waits until this playback is closed, or until its teardown has ended.
  fileprivate var isOpen: Bool { !isClosed || isGivingBack }
  /// Whether the close of the context waits for a reply to this closed playback, because the reply may have a session
  /// token.
  fileprivate var isAwaited: Bool { !isOpen && awaitsToken }
}
