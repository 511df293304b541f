/// The life of one secure session, as a value with no I/O: set-up, keep-alive, teardown. It is told what happened and when, and answers with
/// what to do, in order. Which playback it belongs to, and how a request looks on the wire, is not its business.
package struct SSMSession {
  package enum Action {
    /// Sends a request; `token` is nil for set-up, which carries the content token.
    case send(RequestID, Call, token: Secret?)
    /// One timer; a new instant replaces the old one.
    case setTimer(Milliseconds)
    case cancelTimer
    /// The licence request whose reply opens the session may be sent again.
    case openAgain
    /// An enforced renewal is due: ask for a payload, or tell the host.
    case renewalDue
    case started(period: Milliseconds)
    case keptAlive(lateness: Milliseconds)
    case recovered
    case doubtful
    case failed(UsherError)
    case teardownFailed(UsherError)
    /// The slot is free or as good as: what waits for it may go on. Once.
    case released
    /// It is over for the host. Once.
    case ended(left: Bool, orphanPossible: Bool)
  }

  package enum Call: Sendable { case setup, heartbeat, teardown }

  package enum KeepAliveMode: Sendable { case heartbeat, enforced, cdm, none }

  enum Phase {
    /// → settingUp, ended
    case idle
    /// → active, contested, failed, closing
    case settingUp(RequestID, again: Bool)
    /// 1007 while a teardown of our own is under way. → settingUp(again), failed, ended
    case contested(UsherError)
    /// → failed, closing, tearingDown, ended
    case active
    /// Set-up or keep-alive failed for good. → tearingDown, ended
    case failed(UsherError)
    /// A reply is awaited that may carry the only token, or a newer one. → tearingDown, ended
    case closing
    /// → tearingDown (with a newer token), retryingTeardown, ended
    case tearingDown(RequestID, Secret)
    /// The teardown failed in transport. → tearingDown, ended
    case retryingTeardown(Secret, at: Milliseconds)
    /// Nothing more to do but to look at late replies.
    case ended
  }

  /// What keeps it alive right now.
  enum Beat {
    /// No timer (no period, or the CDM renews by itself).
    case off
    case waiting(sendAt: Milliseconds)
    case inFlight(RequestID, attempt: UInt32, sentAt: Milliseconds, generation: UInt32)
    /// Refused as unknown while a licence was under way that may have replaced its token: the licence's reply decides.
    case refused(WireFailure, attempt: UInt32, generation: UInt32)
    /// Tried and failed; again at `at`.
    case retrying(at: Milliseconds, attempt: UInt32)
    /// An enforced renewal: the host was asked, and the licence flow will report.
    case asked(attempt: UInt32)
  }

  let sharedPolicy: Shared<SSPPolicy>
  let seed: UInt64
  var phase = Phase.idle
  var beat = Beat.off
  var schedule: KeepAliveSchedule?
  package private(set) var mode = KeepAliveMode.heartbeat
  /// The newest session token.
  package internal(set) var token: Secret?
  /// Counts the tokens received, so that a request knows whether its token was replaced meanwhile.
  package internal(set) var tokenGeneration: UInt32 = 0
  /// The instant a keep-alive was due that has not been answered.
  var owedSince: Milliseconds?
  var toldDoubtful = false
  var toldOutage = false
  var failedPeriods: UInt32 = 0
  /// The server said it does not know the session.
  var isUnknownToServer = false
  /// An answer that may have replaced the token did not reach us.
  package internal(set) var mayHaveLostToken = false
  var capAt: Milliseconds = .never
  var wasReleased = false
  var isEndTold = false
  /// Requests that carry the session token and are not this value's own: licences.
  var foreign: UInt32 = 0
  var isModeDecided = false
  var setupInFlight: RequestID?
  /// Which token the last teardown carried, and whether it was refused.
  var teardownGeneration: UInt32 = 0
  var teardownRefused = false
  var teardownAttempts: UInt32 = 0
  /// The host chose to leave the session at the head-end.
  var isLeft = false
  var periodPending: Milliseconds?
  /// The opening licence request was refused for want of a slot before.
  var opensAgain = false
  /// The reply to an opening licence request was lost: a session may be held whose token we do not know.
  var lostOpening = false
  /// The host is suspended and wants no keep-alives meanwhile.
  var isPaused = false
  private var nextRequest: RequestID

  /// - Parameters:
  ///   - seed: makes the jitter the playback's own.
  ///   - firstRequest: request ids count from here.
  package init(policy: Shared<SSPPolicy>, seed: UInt64, firstRequest: RequestID = 1) {
    sharedPolicy = policy
    self.seed = seed
    nextRequest = firstRequest
  }

  var policy: SSPPolicy { sharedPolicy.value }

  mutating func newRequest() -> RequestID {
    defer { nextRequest &+= 1 }
    return nextRequest
  }

  /// Whether licence requests may be sent with its token now. While a keep-alive is under way they wait, since its reply replaces the token.
  package var isReady: Bool {
    guard case .active = phase else { return false }
    if case .inFlight = beat { return false }
    return true
  }

  /// The phase without what belongs to it.
  enum Stage { case pending, active, failed, givingBack, ended }

  var stage: Stage {
    switch phase {
    case .idle, .settingUp, .contested: return .pending
    case .active: return .active
    case .failed: return .failed
    // A slot of ours that is being given back, or is about to be.
    case .closing, .tearingDown, .retryingTeardown: return .givingBack
    case .ended: return .ended
    }
  }

  package var isActive: Bool { stage == .active }
  package var isEnded: Bool { stage == .ended }
  package var isGivingBack: Bool { stage == .givingBack }
  package var isDoubtful: Bool { isActive && (toldDoubtful || toldOutage) }

  package var isIdle: Bool {
    if case .idle = phase { return true }
    return false
  }

  /// Why it failed, if it did.
  package var failure: UsherError? {
    if case .failed(let error) = phase { return error }
    return nil
  }

  /// A reply is on its way that may bring a token, which would then be given back.
  var awaitsToken: Bool { !isLeft && (setupInFlight != nil || (foreign > 0 && teardownRefused)) }

  /// Ended, and no reply is awaited any more.
  package var isFinished: Bool { isEnded && setupInFlight == nil && !isBeatInFlight && foreign == 0 }

  /// How long a keep-alive may take: so long that one that fails can be tried again inside the period.
  package var keepAliveTimeout: Milliseconds { policy.keepAliveTimeout ?? max(1000, period.permille(375)) }

  package var period: Milliseconds { schedule?.period ?? 0 }

  var isBeatInFlight: Bool {
    if case .inFlight = beat { return true }
    return false
  }

  mutating func take(_ newToken: Secret?) {
    guard let newToken else { return }
    token = newToken
    tokenGeneration &+= 1
    mayHaveLostToken = false
  }

  mutating func setMode(_ newMode: KeepAliveMode) { mode = newMode }
}
