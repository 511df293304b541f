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
    /// Ask the payload callback, or tell the host; the answer comes as a renewal request or `payloadFailed`.
    case askPayload(KeySystem?)
    case report(Report)
    /// The data of the reply just given goes to who asked.
    case deliverLicense(LicenseID)
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
    var phase = Phase.waiting
    /// It carries a token asked for after it came.
    var hasFreshToken = false
    /// Denied while other replies were awaited that may have replaced its token: they decide.
    var denial: Denial?
    var resends: UInt8 = 0
    /// The host has its answer (closed, timed out); the reply is still looked at for its token.
    var isAbandoned = false
  }

  enum TokenState {
    case none
    case asking
    case known(Secret)
    /// Asked, and there is none.
    case missing
  }

  let policy: SSPPolicy
  let seed: UInt64
  package internal(set) var session: SSMSession
  var flows: [LicenseFlow] = []
  var contentToken: TokenState
  package var hasTokenCallback: Bool
  package internal(set) var isStarted = false
  var closing: Status?
  package internal(set) var isClosedTold = false
  /// The session is being replaced by one with a new token.
  var isRestarting = false
  var licenseAsked = false
  var lastKeySystem: KeySystem?
  var nextRequest: RequestID = 1

  package init(policy: SSPPolicy, contentToken: Secret?, hasTokenCallback: Bool, seed: UInt64) {
    self.policy = policy
    self.seed = seed
    self.hasTokenCallback = hasTokenCallback
    self.contentToken = contentToken.map { .known($0) } ?? .none
    session = SSMSession(policy: policy, seed: seed)
  }

  package var isClosing: Bool { closing != nil }

  /// May be forgotten: closed, and no reply is awaited that could bring a token.
  package var isFinished: Bool { isClosedTold && session.isFinished }

  package var sessionState: SessionState {
    if isClosing { return .ended }
    guard policy.hasSSM else { return .none }
    if session.failure != nil { return .failed }
    if isRestarting || session.isPending { return .pending }
    if session.isActive { return session.isDoubtful ? .doubtful : .active }
    return .ended
  }

  /// The numbers are the header's.
  package enum SessionState: Int32, Sendable { case none = 0, pending, active, doubtful, failed, ended }

  /// Its turn on the player has come.
  package mutating func start(now: Milliseconds) -> [Action] {
    guard !isStarted, !isClosing else { return [] }
    isStarted = true
    if policy.hasSSM { return startSession(now: now) }
    return pump(now: now)
  }

  mutating func startSession(now: Milliseconds) -> [Action] {
    switch contentToken {
    case .known: return perform(session.start(), now: now)
    case .asking: return []
    case .none where hasTokenCallback:
      contentToken = .asking
      return [.askToken]
    case .none, .missing: return perform(session.startFailed(Self.noToken(.setup)), now: now)
    }
  }

  static func noToken(_ operation: Operation) -> UsherError {
    UsherError(.noToken, operation: operation, message: "content token unavailable")
  }

  /// The token callback answered, or its deadline passed (nil).
  package mutating func tokenAnswered(_ token: Secret?, now: Milliseconds) -> [Action] {
    guard case .asking = contentToken, !isClosing else { return [] }
    guard let token else { return tokenMissing(now: now) }
    contentToken = .known(token)
    for index in flows.indices where isWaiting(index) { flows[index].hasFreshToken = true }
    guard policy.hasSSM else { return pump(now: now) }
    if session.isIdle { return perform(session.start(), now: now) }
    return policy.resetup == .never ? pump(now: now) : restart(now: now)
  }

  private mutating func tokenMissing(now: Milliseconds) -> [Action] {
    contentToken = .missing
    if policy.hasSSM && session.isIdle { return startSession(now: now) }
    // The session that lives goes on; the requests that needed the token fail.
    var actions: [Action] = []
    for flow in takeFlows(where: { flow in !flow.isRenewal && flow.isWaiting }) {
      actions.append(.failLicense(flow.id, Self.noToken(.license)))
    }
    if hasTokenCallback { contentToken = .none }
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
    session = SSMSession(policy: policy, seed: seed, firstRequest: session.newRequest())
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

extension PlaybackMachine.LicenseFlow {
  var isWaiting: Bool {
    if case .waiting = phase { return true }
    return false
  }
}
