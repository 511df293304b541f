internal import Synchronization
internal import UsherCore

/// The state of a context's close: whether it has begun, how many playbacks it still waits for, and which threads wait
/// for it. Only the I/O thread uses this object, except `noteRequest`, `isRequested` and `elapsed`.
final class ContextClosing {
  private(set) var hasBegun = false
  /// How many playbacks are open. A playback counts as open until it is closed, and again while it tears down a session
  /// whose token came after its close.
  private(set) var openCount = 0
  /// How many closed playbacks wait for the reply to a set-up or heartbeat, because it may have a session token.
  private(set) var awaitedCount = 0
  private let timers: Timers
  private var waits: [Wait<Status>] = []
  /// The real time at which the host first asked to close; 0: it has not asked.
  private let firstRequest = Atomic<Int64>(0)

  init(timers: Timers) { self.timers = timers }

  var isDone: Bool { openCount == 0 && awaitedCount == 0 }

  /// Any thread: notes that the host asks to close the context. The time allowed for closing starts with the first such
  /// call.
  func noteRequest() {
    _ = firstRequest.compareExchange(expected: 0, desired: monotonicMilliseconds(), ordering: .acquiringAndReleasing)
  }

  /// Any thread: whether the host has asked to close.
  var isRequested: Bool { firstRequest.load(ordering: .acquiring) != 0 }

  /// Any thread: the real time since the first `noteRequest`.
  var elapsed: Milliseconds {
    Milliseconds(max(0, monotonicMilliseconds() &- firstRequest.load(ordering: .relaxed)))
  }

  /// - Returns: false if closing had begun before.
  func begin() -> Bool {
    defer { hasBegun = true }
    return !hasBegun
  }

  func playbackAdded() { openCount += 1 }

  /// Called when a step has changed the machine of a playback.
  func playbackChanged(from before: PlaybackMachine.Standing, to after: PlaybackMachine.Standing) {
    let (wasOpen, isOpen) = (before.isOpen, after.isOpen)
    let (wasAwaited, isAwaited) = (before.isAwaited, after.isAwaited)
    guard wasOpen != isOpen || wasAwaited != isAwaited else { return }
    openCount += (isOpen ? 1 : 0) - (wasOpen ? 1 : 0)
    awaitedCount += (isAwaited ? 1 : 0) - (wasAwaited ? 1 : 0)
    endWaitsIfDone()
  }

  /// Ends `wait` when every playback is closed. The caller sets the timer for its time-out.
  func add(_ wait: Wait<Status>) {
    waits.append(wait)
    endWaitsIfDone()
  }

  /// Forgets a wait whose time-out has passed.
  func remove(_ wait: Wait<Status>) { waits.removeAll { $0 === wait } }

  func endWaitsIfDone() { if hasBegun, isDone { endWaits(.ok) } }

  func endWaits(_ status: Status) {
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
