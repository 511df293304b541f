/// Names one licence request of one playback.
package typealias LicenseID = UInt64

/// One playback, as a value with no I/O: its session, its licence requests and its content token. The engine tells it what happened and performs
/// the actions it answers with, in order.
package struct PlaybackMachine {
  package enum Action {
    /// `token` is the content token for set-up, the session token otherwise.
    case sendSSM(RequestID, SSMSession.Call, token: Secret)
    case sendLicense(RequestID, LicenseID, content: Secret?, session: Secret?, renewal: Bool)
    /// The session's one timer.
    case setTimer(Milliseconds)
    case cancelTimer
    /// Ask the token callback; the answer comes as `tokenAnswered`.
    case askToken
    /// The host may still give a token, for a while; its end comes as `tokenWaitEnded`.
    case awaitToken(atMost: Milliseconds)
    /// Ask the payload callback, or tell the host; the answer comes as a renewal request or `payloadFailed`.
    case askPayload(KeySystem?)
    case report(Report)
    /// Complete the licence request with the licence of the reply; nil where the caller of the machine gave none.
    case deliverLicense(LicenseID, Secret?)
    case failLicense(LicenseID, UsherError)
    /// The player may go on to its next item.
    case released
    /// Nothing more will happen that the host needs to know.
    case closed(Status, orphanPossible: Bool)
  }

  package enum Report {
    case started(period: Milliseconds)
    case setupError(UsherError)
    case heartbeatError(UsherError)
    case teardownError(UsherError)
    case keptAlive(lateness: Milliseconds)
    case recovered
    case doubtful
    case ended(left: Bool)
    /// The licence reply that should have opened the session brought none: playback goes on without.
    case sessionless
  }

  struct Denial {
    let failure: WireFailure
    let origin: Origin
    let generation: UInt32
  }

  struct LicenseFlow {
    enum Phase {
      /// For its turn: the player, the token, the session, a keep-alive under way.
      case waiting
      case inFlight(RequestID, generation: UInt32)
    }
    let id: LicenseID
    let keySystem: KeySystem
    let isRenewal: Bool
    let isRaw: Bool
    let isAuxiliary: Bool
    /// The content token of what it names, where that is known by itself.
    var ownToken: Secret?
    /// What it names is what plays, and not another content beside it.
    let isItems: Bool
    var phase = Phase.waiting
    /// It carries a token asked for after it came.
    var hasFreshToken = false
    /// Denied while other replies were awaited that may have replaced its token: they decide.
    var denial: Denial?
    var resends: UInt8 = 0
    /// Its reply opens the session.
    var isOpening = false
    /// It is one of the requests the session waits for.
    var isForeign = false
    /// Which content token it was sent with.
    var contentGeneration: UInt32 = 0
    /// Denied for its content token, which was asked for again: what it was told, should there be none.
    var reauthorised: Denial?
    /// The host has its answer (closed, timed out); the reply is still looked at for its token.
    var isAbandoned = false
  }

  enum TokenState {
    case none
    case asking
    /// The host may give one yet.
    case awaited
    case known(Secret)
    /// Asked, and there is none.
    case missing
  }

  package internal(set) var session: SSMSession
  var flows: [LicenseFlow] = []
  var contentToken: TokenState
  package var hasTokenCallback: Bool
  package internal(set) var isStarted = false
  var closing: Status?
  package internal(set) var isClosedTold = false
  /// The session is being replaced by one with a new token.
  var isRestarting = false
  /// One of its sessions, replaced since, may still be held under a token we do not know.
  var mayHaveOrphan = false
  /// A first licence was given out: further requests that are no renewals are a change of route or of keys.
  var hasLicense = false
  /// The content token is asked for because one was denied, not because a further licence wants one of its own.
  var isReauthorising = false
  /// What set-up was told when its content token was denied.
  var setupDenial: Shared<WireFailure>?
  /// Counts the content tokens.
  var contentGeneration: UInt32 = 0
  /// The opening licence reply brought no session.
  var isSessionless = false
  var lastKeySystem: KeySystem?
  var nextRequest: RequestID = 1

  package init(policy: Shared<SSPPolicy>, contentToken: Secret?, hasTokenCallback: Bool, seed: UInt64) {
    self.hasTokenCallback = hasTokenCallback
    self.contentToken = contentToken.map { .known($0) } ?? .none
    session = SSMSession(policy: policy, seed: seed)
  }

  var policy: SSPPolicy { session.policy }
  package var isClosing: Bool { closing != nil }

  /// The item's content token, where there is one.
  package var knownToken: Secret? {
    if case .known(let token) = contentToken { return token }
    return nil
  }

  /// May be forgotten: closed, and no reply is awaited that could bring a token.
  package var isFinished: Bool { isClosedTold && session.isFinished }

  package var sessionState: SessionState {
    if isClosing { return .ended }
    guard usesSession else { return .none }
    switch session.stage {
    case .failed: return .failed
    case .pending: return .pending
    case .active where !isRestarting: return session.isDoubtful ? .doubtful : .active
    default: return isRestarting ? .pending : .ended
    }
  }

  /// What its owner looks at around each step.
  package struct Standing {
    package let sessionState: SessionState
    package let isStarted: Bool
    package let isClosedTold: Bool
    package let isFinished: Bool
    package let isGivingBack: Bool
    package let waitsForOwnTeardowns: Bool
    /// A reply is on its way that may bring a token to give back.
    package let awaitsToken: Bool
  }

  /// `mutating`, though it changes nothing: so it is read where it is, and not copied out of its owner first.
  package mutating func standing() -> Standing {
    Standing(
      sessionState: sessionState, isStarted: isStarted, isClosedTold: isClosedTold, isFinished: isFinished,
      isGivingBack: session.isGivingBack,
      waitsForOwnTeardowns: session.waitsForOwnTeardowns, awaitsToken: session.awaitsToken)
  }

  /// The numbers are the header's.
  package enum SessionState: Int32, Sendable {
    case none = 0
    case pending, active, doubtful, failed, ended
  }

  /// A session of its own goes with its licences right now.
  var usesSession: Bool { session.sharedPolicy.value.hasSSM && !isSessionless }

  /// Its turn on the player has come.
  package mutating func start(now: Milliseconds) -> [Action] {
    guard !isStarted, !isClosing else { return [] }
    isStarted = true
    if policy.hasSSM, !policy.opensByLicense, !policy.startsWithLicense || contentToken.isKnown {
      return startSession(now: now)
    }
    return pump(now: now)
  }

  mutating func startSession(now: Milliseconds) -> [Action] {
    if policy.opensByLicense { return pump(now: now) }
    switch contentToken {
    case .known: return perform(session.start(), now: now)
    case .asking, .awaited: return []
    case .none:
      if hasTokenCallback {
        contentToken = .asking
        return [.askToken]
      }
      guard policy.tokenWait > 0 else { return perform(session.startFailed(Self.noToken(.setup)), now: now) }
      contentToken = .awaited
      return [.awaitToken(atMost: policy.tokenWait)]
    case .missing: return perform(session.startFailed(Self.noToken(.setup)), now: now)
    }
  }

  package static func noToken(_ operation: Operation) -> UsherError {
    UsherError(.noToken, operation: operation, message: "content token unavailable")
  }

  /// The token callback answered, or its deadline passed (nil).
  package mutating func tokenAnswered(_ token: Secret?, now: Milliseconds) -> [Action] {
    guard case .asking = contentToken, !isClosing else { return [] }
    guard let token else { return tokenMissing(now: now) }
    return tokenCame(token, now: now)
  }

  /// The host gave the token that was missing; once known it stays.
  package mutating func tokenGiven(_ token: Secret, now: Milliseconds) -> [Action]? {
    guard !isClosing, !contentToken.isKnown, session.failure == nil else { return nil }
    return tokenCame(token, now: now)
  }

  /// Another content token for what plays, by which further licences are asked for.
  package mutating func tokenReplaced(_ token: Secret) {
    guard contentToken.isKnown else { return }
    contentToken = .known(token)
    contentGeneration &+= 1
  }

  /// The host gave none in time.
  package mutating func tokenWaitEnded(now: Milliseconds) -> [Action] {
    guard case .awaited = contentToken, !isClosing else { return [] }
    return tokenMissing(now: now)
  }

  private mutating func tokenCame(_ token: Secret, now: Milliseconds) -> [Action] {
    contentToken = .known(token)
    contentGeneration &+= 1
    let onlyReauthorised = isReauthorising
    isReauthorising = false
    for index in flows.indices where isWaiting(index) {
      flows[index].hasFreshToken = true
      if flows[index].isItems { flows[index].ownToken = nil }
    }
    guard usesSession else { return pump(now: now) }
    if session.isIdle { return isStarted ? startSession(now: now) : [] }
    // The host was told that a session that failed is over: a late token begins no other.
    return policy.resetup == .never || onlyReauthorised || session.failure != nil ? pump(now: now) : restart(now: now)
  }

  private mutating func tokenMissing(now: Milliseconds) -> [Action] {
    contentToken = .missing
    isReauthorising = false
    if policy.hasSSM, session.isIdle, !policy.opensByLicense {
      guard let denial = setupDenial?.value else { return startSession(now: now) }
      return perform(session.startFailed(denial.error(.ssm, .setup)), now: now)
    }
    // The session that lives goes on; the requests that needed the token fail.
    var actions: [Action] = []
    let hasSSM = policy.hasSSM
    for flow in takeFlows(where: { flow in flow.isWaiting && flow.ownToken == nil && !(flow.isRenewal && hasSSM) }) {
      if let denial = flow.reauthorised {
        actions.append(.failLicense(flow.id, denial.failure.error(denial.origin, .license).stopping()))
      } else {
        actions.append(.failLicense(flow.id, Self.noToken(.license)))
      }
    }
    contentToken = .none
    return actions + pump(now: now)
  }

  mutating func restart(now: Milliseconds) -> [Action] {
    isRestarting = true
    let actions = perform(session.close(.teardown, now: now), now: now)
    return actions + restartIfFinished(now: now)
  }

  mutating func restartIfFinished(now: Milliseconds) -> [Action] {
    guard isRestarting, session.isFinished else { return [] }
    isRestarting = false
    session = SSMSession(policy: session.sharedPolicy, seed: session.seed, firstRequest: session.newRequest())
    return isClosing ? [] : startSession(now: now)
  }

  private func isWaiting(_ index: Int) -> Bool { flows[index].isWaiting }

  /// Removes and returns the flows that satisfy `condition`.
  mutating func takeFlows(where condition: (LicenseFlow) -> Bool) -> [LicenseFlow] {
    var taken: [LicenseFlow] = []
    var kept: [LicenseFlow] = []
    for flow in flows { if condition(flow) { taken.append(flow) } else { kept.append(flow) } }
    flows = kept
    return taken
  }
}

extension PlaybackMachine.TokenState {
  var isKnown: Bool {
    if case .known = self { return true }
    return false
  }
}

extension PlaybackMachine.LicenseFlow {
  var isWaiting: Bool {
    if case .waiting = phase { return true }
    return false
  }
}
