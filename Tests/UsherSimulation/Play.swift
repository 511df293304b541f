import TestSupport
import UsherCore
import UsherEngine

/// The state of one playback for the simulated host and the checks.
final class Play {
  let id: PlaybackID
  let shared: PlaybackShared
  let player: UInt64
  let kind: Kind
  let choice: Choice
  let account: UInt64
  var phase = Phase.unborn
  /// Whether the engine has started this playback at any time.
  var wasKnown = false
  /// The time at which the host or a zap closed the playback.
  var closedAt: Milliseconds?
  /// The time at which the library first sent a teardown of the playback's last session.
  var teardownAt = Milliseconds.max / 2
  var timesClosed = 0
  var timesStarted = 0
  var isOutage = false
  var hasFinalError = false
  var mayBeOrphan = false
  var hasTeardownError = false
  var isLeft = false
  /// The time from which the checks measure how late the next keep-alive is: usually when the library sent the last
  /// keep-alive, or asked the host for it. nil while the session sends no keep-alives.
  var lastBeat: Milliseconds?
  var beatPeriod: Milliseconds = 0
  /// The end of the pause that the head-end asked for with Retry-After in its last reply to a keep-alive.
  var pauseUntil: Milliseconds = 0
  /// Whether the host started this playback while the I/O thread was late.
  var wasPlayedLate = false
  var lastSequence: UInt64 = 0
  var customerTeardowns = 0
  /// The number of content tokens that the host has given.
  var tokens: UInt64 = 0
  /// The number of questions that the library has asked the host.
  var answers: UInt64 = 0
  var lastLoad: UInt64 = 0
  /// The second input of the same step; nil if the step had only one.
  var sideInput: Input?

  init(_ id: PlaybackID, _ player: UInt64, _ kind: Kind, _ choice: Choice, account: UInt64) {
    self.id = id
    shared = PlaybackShared(id)
    self.player = player
    self.kind = kind
    self.choice = choice
    self.account = account
  }
}
