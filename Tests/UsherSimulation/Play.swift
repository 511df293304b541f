import TestSupport
import UsherCore
import UsherEngine

/// What the simulated host and the checks know about one playback.
final class Play {
  let id: PlaybackID
  let player: UInt64
  let kind: Kind
  let choice: Choice
  let account: UInt64
  var phase = Phase.unborn
  /// The engine has known it.
  var wasKnown = false
  /// When the host or a zap closed it.
  var closedAt: Milliseconds?
  /// When the teardown of its last session was first sent.
  var teardownAt = Milliseconds.max / 2
  var timesClosed = 0
  var timesStarted = 0
  var isOutage = false
  var hasFinalError = false
  var mayBeOrphan = false
  var hasTeardownError = false
  var isLeft = false
  /// When the last keep-alive was sent or asked for; nil while none is due.
  var lastBeat: Milliseconds?
  var beatPeriod: Milliseconds = 0
  var lastSequence: UInt64 = 0
  var customerTeardowns = 0
  /// How many content tokens the host has given.
  var tokens: UInt64 = 0
  /// How many questions the host was asked.
  var answers: UInt64 = 0
  var lastLoad: UInt64 = 0
  /// Tokens in licence replies whose hook has not answered: the library does not use them yet.
  var inHook: [Token] = []
  /// A second input in the same step.
  var sideInput: Input?

  init(_ id: PlaybackID, _ player: UInt64, _ kind: Kind, _ choice: Choice, account: UInt64) {
    self.id = id
    self.player = player
    self.kind = kind
    self.choice = choice
    self.account = account
  }
}
