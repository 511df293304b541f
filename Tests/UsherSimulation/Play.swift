import UsherCore
import UsherEngine

/// What the host, and who watches, know of one playback.
final class Play {
  let id: PlaybackID
  let player: UInt64
  let kind: Kind
  let choice: Choice
  let account: UInt64
  var phase = Phase.unborn
  var wasThere = false
  /// The host, or a zap, wished its end.
  var closedAt: Milliseconds?
  /// When the last of its sessions began to be torn down.
  var teardownAt = Milliseconds.max / 2
  var timesClosed = 0
  var timesStarted = 0
  var isOutage = false
  var hasFinalError = false
  var mayBeOrphan = false
  var hasTeardownError = false
  var isLeft = false
  /// Keep-alives are due: the last was sent, or asked for, then.
  var lastBeat: Milliseconds?
  var beatPeriod: Milliseconds = 0
  var lastSequence: UInt64 = 0
  /// The operator's own session, where the host keeps it.
  var customerHolds = false
  var customerTeardowns = 0
  /// Content tokens given so far.
  var tokens: UInt64 = 0
  /// Questions answered so far.
  var answers: UInt64 = 0
  var lastLoad: UInt64 = 0
  /// A licence reply whose hook has not answered: the token in it is not the library's yet.
  var inHook: [(session: UInt64, generation: UInt64)] = []
  /// What happened to it in the same step as something else did.
  var sideInput: Input?

  init(_ id: PlaybackID, _ player: UInt64, _ kind: Kind, _ choice: Choice, account: UInt64) {
    self.id = id
    self.player = player
    self.kind = kind
    self.choice = choice
    self.account = account
  }
}
