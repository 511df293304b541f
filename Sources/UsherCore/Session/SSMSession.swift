/// The life of one secure session, as a value with no I/O: set-up, keep-alive, teardown. Its methods are named for what
/// happened, take the time as an argument and return what to do, in order. It does not know its playback, nor how a
/// request looks on the wire.
package struct SSMSession {
  package enum Action {
    /// Sends a request; `token` is nil for set-up, which carries the content token.
    case send(RequestID, Call, token: Secret?)
    /// The session has one timer; a new instant replaces the old one.
    case setTimer(Milliseconds)
    case cancelTimer
    /// The licence request whose reply opens the session may be sent again.
    case openAgain
    /// An enforced renewal is due: ask the host for a payload.
    case renewalDue
    case started(period: Milliseconds)
    case keptAlive(lateness: Milliseconds)
    case recovered
    case doubtful
    case failed(UsherError)
    case teardownFailed(UsherError)
    /// The session that needs this slot may start: the slot is free, or its teardown takes too long. Comes once.
    case nextMayStart
    /// The session is over for the host. Comes once.
    case ended(left: Bool, orphanPossible: Bool)
  }

  package enum Call: Sendable { case setup, heartbeat, teardown }

  package enum KeepAliveMode: Sendable { case heartbeat, enforced, cdm, none }

  /// A beat is one keep-alive: a heartbeat, or a licence renewal that serves as one. This is what the next one does.
  enum Beat {
    /// No beat will be due: the session has no period, or the CDM renews by itself.
    case off
    case waiting(sendAt: Milliseconds)
    case inFlight(RequestID, attempt: UInt32, sentAt: Milliseconds, generation: UInt32)
    /// The server called the session unknown while a licence request was under way that may have replaced the token:
    /// the licence reply decides.
    case refused(WireFailure, attempt: UInt32, generation: UInt32)
    /// The last attempt failed; the next one is due at `at`.
    case retrying(at: Milliseconds, attempt: UInt32)
    /// An enforced renewal: the host was asked for its payload.
    case asked(attempt: UInt32)
  }

  /// What the owner knows of the keep-alives.
  enum Health {
    case good
    /// A beat went out so late that the server may have ended the session.
    case doubtful
    /// Keep-alives failed for that many periods in a row.
    case outage(failedPeriods: UInt32)
  }

  /// The first licence reply decides how the session is kept alive.
  enum FirstLicense {
    /// `period`: of the beats, where they start with that reply.
    case awaited(period: Milliseconds?)
    case seen
  }

  let sharedPolicy: Shared<SSPPolicy>
  private let seed: UInt64
  private var nextRequest: RequestID
  var lifecycle = Lifecycle()
  var newest = NewestToken()
  package private(set) var mode = KeepAliveMode.heartbeat
  var firstLicense = FirstLicense.awaited(period: nil)
  var schedule: KeepAliveSchedule?
  var beat = Beat.off
  var health = Health.good
  /// When the oldest keep-alive was due that the server has not answered.
  var owedSince: Milliseconds?
  /// The host is suspended and wants no keep-alives meanwhile. Kept apart from `beat`, which a resume continues.
  var isPaused = false
  /// Licence requests under way that carry the session token. Their replies may replace it.
  var licensesInFlight: UInt32 = 0

  /// - Parameters:
  ///   - seed: two seeds give two playbacks different jitter.
  ///   - firstRequest: request ids count from here.
  package init(policy: Shared<SSPPolicy>, seed: UInt64, firstRequest: RequestID = 1) {
    sharedPolicy = policy
    self.seed = seed
    nextRequest = firstRequest
  }

  /// A new session in the place of this one, which is finished.
  func successor() -> SSMSession {
    var next = SSMSession(policy: sharedPolicy, seed: seed, firstRequest: nextRequest)
    #if !hasFeature(Embedded)
      next.lifecycle.log = lifecycle.log
    #endif
    return next
  }

  var policy: SSPPolicy { sharedPolicy.value }

  mutating func newRequest() -> RequestID {
    defer { nextRequest &+= 1 }
    return nextRequest
  }

  mutating func newSchedule(period: Milliseconds, now: Milliseconds) {
    schedule = KeepAliveSchedule(start: now, period: period, jitter: policy.jitter, seed: seed)
  }

  mutating func setMode(_ newMode: KeepAliveMode) { mode = newMode }

  /// The newest session token.
  package var token: Secret? { newest.secret }
  /// Counts the tokens received, so that a request knows whether its token was replaced meanwhile.
  package var tokenGeneration: UInt32 { newest.generation }

  // MARK: Questions of the owner

  /// Whether licence requests may be sent with the session token now. While a keep-alive is under way they wait, since
  /// its reply replaces the token.
  package var isReady: Bool { isActive && !isBeatInFlight }

  /// The phases in groups, for the owner.
  enum Stage { case pending, active, failed, givingBack, ended }

  var stage: Stage {
    switch lifecycle.phase {
    case .idle, .settingUp, .contested: return .pending
    case .active: return .active
    case .failed: return .failed
    // The session gives its slot back, or is about to.
    case .closing, .tearingDown, .retryingTeardown: return .givingBack
    case .ended: return .ended
    }
  }

  package var isActive: Bool { stage == .active }
  package var isEnded: Bool { stage == .ended }
  package var isGivingBack: Bool { stage == .givingBack }

  package var isDoubtful: Bool {
    switch health {
    case .good: return false
    case .doubtful, .outage: return isActive
    }
  }

  package var isIdle: Bool {
    if case .idle = lifecycle.phase { return true }
    return false
  }

  /// Set-up was refused for the limit; the session waits until this library has given other slots back.
  package var waitsForOwnTeardowns: Bool {
    if case .contested = lifecycle.phase { return true }
    return false
  }

  /// Why the session failed, if it did.
  package var failure: UsherError? {
    if case .failed(let error) = lifecycle.phase { return error }
    return nil
  }

  /// A set-up request is under way, or a licence request that opens the session.
  var awaitsSetupReply: Bool { lifecycle.setupInFlight != nil }

  /// `nextMayStart` was returned.
  var hasFreedSlot: Bool { lifecycle.reported.rawValue >= Reported.nextMayStart.rawValue }

  /// A reply is under way that may bring a token; the session would then be given back.
  var awaitsToken: Bool {
    if case .ended(let end) = lifecycle.phase, end.left { return false }
    return awaitsSetupReply || (licensesInFlight > 0 && lifecycle.failedTeardown != nil)
  }

  /// The session ended, and no reply is awaited any more.
  package var isFinished: Bool { isEnded && !awaitsReply }

  var awaitsReply: Bool { awaitsSetupReply || isBeatInFlight || licensesInFlight > 0 }

  /// How long a keep-alive may take: a failed one can be tried again inside the period.
  package var keepAliveTimeout: Milliseconds { policy.keepAliveTimeout ?? max(1000, period.permille(375)) }

  package var period: Milliseconds { schedule?.period ?? 0 }

  var isBeatInFlight: Bool {
    if case .inFlight = beat { return true }
    return false
  }

  /// A renewal was asked for and is under way, but slow: the host is not asked twice. Returns when to look again; nil
  /// if no renewal was asked for.
  func renewalStillUnderWay(now: Milliseconds) -> Milliseconds? {
    guard isActive, case .asked = beat else { return nil }
    return now.adding(max(period, 1))
  }

  #if !hasFeature(Embedded)
    mutating func record(in log: TransitionLog) { lifecycle.log = log }
  #endif

  /// The newest reply brought this session token; nil: it brought none.
  mutating func take(_ newToken: Secret?) {
    if let newToken { newest.replace(by: newToken) }
  }
}
