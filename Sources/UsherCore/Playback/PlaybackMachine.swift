/// Names one licence request of one playback.
package typealias LicenseID = UInt64

/// One playback, as a value with no I/O: its session, its licence requests and its content token. The engine calls a
/// method for each thing that happened and performs the actions it returns, in order.
package struct PlaybackMachine {
  package enum Action {
    /// `token` is the content token for set-up, the session token otherwise.
    case sendSSM(RequestID, SSMSession.Call, token: Secret)
    case sendLicense(RequestID, LicenseID, content: Secret?, session: Secret?, renewal: Bool)
    /// The session has one timer; a new instant replaces the old one.
    case setTimer(Milliseconds)
    case cancelTimer
    /// Ask the token callback; call `tokenAnswered` with its answer.
    case askToken
    /// Wait for the host to give a token; call `tokenWaitEnded` when the time is over.
    case awaitToken(atMost: Milliseconds)
    /// Ask the payload callback or send the host an event; then call `requestLicense` or `payloadFailed`.
    case askPayload(KeySystem?)
    case report(Report)
    /// Complete the licence request with the licence of the reply; nil where the caller of the machine gave none.
    case deliverLicense(LicenseID, Secret?)
    case failLicense(LicenseID, UsherError)
    /// The player may start its next item. Comes once.
    case nextMayStart
    /// The playback's end: nothing more happens that the host needs to know. Comes once.
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

  /// A refusal by the server.
  struct Denial {
    let failure: WireFailure
    let origin: Origin
    /// The generation of the session token that the request carried.
    let generation: UInt32
  }

  struct LicenseRequest {
    /// What the request has to do with the session.
    enum Role {
      case sessionless
      /// Its reply opens the session.
      case opening
      /// It carries the session token of that generation; its reply may bring a newer one.
      case carriesToken(generation: UInt32)
    }
    enum Phase {
      /// It waits until the playback starts, has its tokens and its session, and no keep-alive is under way.
      case waiting
      case inFlight(RequestID, Role)
    }
    let id: LicenseID
    let keySystem: KeySystem
    let isRenewal: Bool
    let isRaw: Bool
    let isAuxiliary: Bool
    /// The content token of what it names, where the token map had one.
    var ownToken: Secret?
    /// It is for the content that plays, not for another content beside it.
    let isForPlayingItem: Bool
    var phase = Phase.waiting
    /// It carries a content token that the host gave after the request was made.
    var hasFreshToken = false
    /// The server denied it while other replies were awaited that may have replaced its token: they decide.
    var denial: Denial?
    var resends: UInt8 = 0
    /// The number of the content token it was sent with.
    var contentGeneration: UInt32 = 0
    /// The server denied it for its content token, and the callback was asked for another: the error if there is none.
    var reauthorised: Denial?
    /// The host has its answer (closed, timed out); the reply is still read for its session token.
    var isAbandoned = false
  }

  enum ContentToken {
    case none
    /// The token callback was asked. `afterDenial`: because the server denied a token, not because a further licence
    /// wants one of its own.
    case asking(afterDenial: Bool)
    /// The host may still give one.
    case awaited
    case known(Secret)
    /// The host was asked and has none.
    case missing
  }

  package internal(set) var session: SSMSession
  var lifecycle = Lifecycle()
  var licenses: [LicenseRequest] = []
  var contentToken: ContentToken
  package var hasTokenCallback: Bool
  /// The server may hold a session under a token that never reached us: this one, or one that was replaced since.
  var mayHaveOrphan = false
  /// The host has its first licence: a further request that is no renewal is for a new route or new keys.
  var hasLicense = false
  /// The server's reply when it denied set-up for its content token.
  var setupDenial: Shared<WireFailure>?
  /// Counts the content tokens.
  var contentGeneration: UInt32 = 0
  /// The key system of the last licence request. A renewal asks the host for a payload of this key system.
  var lastKeySystem: KeySystem?

  package init(policy: Shared<SSPPolicy>, contentToken: Secret?, hasTokenCallback: Bool, seed: UInt64) {
    self.hasTokenCallback = hasTokenCallback
    self.contentToken = contentToken.map { .known($0) } ?? .none
    session = SSMSession(policy: policy, seed: seed)
  }

  var policy: SSPPolicy { session.policy }

  /// The item's content token, where one is known.
  package var knownToken: Secret? {
    if case .known(let token) = contentToken { return token }
    return nil
  }

  /// The engine may forget the playback: it is closed, and no reply is awaited that could bring a token.
  package var isFinished: Bool { isClosed && session.isFinished }

  /// What the engine looks at around each step.
  package struct Standing {
    package let sessionState: SessionState
    package let isWaiting: Bool
    package let isClosed: Bool
    package let isFinished: Bool
    package let isGivingBack: Bool
    package let waitsForOwnTeardowns: Bool
    /// A reply is under way that may bring a token to give back.
    package let awaitsToken: Bool
  }

  /// `mutating`, though it changes nothing, so that the caller does not copy the machine first.
  package mutating func standing() -> Standing {
    Standing(
      sessionState: sessionState, isWaiting: isWaiting, isClosed: isClosed, isFinished: isFinished,
      isGivingBack: session.isGivingBack,
      waitsForOwnTeardowns: session.waitsForOwnTeardowns, awaitsToken: session.awaitsToken)
  }

  /// The numbers are those of the constants in the header.
  package enum SessionState: Int32, Sendable {
    case none = 0
    case pending, active, doubtful, failed, ended
  }

  /// The player starts the item.
  package mutating func start(now: Milliseconds) -> [Action] {
    guard isWaiting else { return [] }
    lifecycle.started()
    if policy.hasSSM, !policy.opensByLicense, !policy.startsWithLicense || contentToken.isKnown {
      return startSession(now: now)
    }
    return sendWaiting(now: now)
  }

  mutating func startSession(now: Milliseconds) -> [Action] {
    if policy.opensByLicense { return sendWaiting(now: now) }
    switch contentToken {
    case .known: return perform(session.start(), now: now)
    case .asking, .awaited: return []
    case .none:
      if hasTokenCallback {
        contentToken = .asking(afterDenial: false)
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

  /// Whether a content token that the host gives now would be used.
  package var wantsToken: Bool { !isClosing && !contentToken.isKnown && session.failure == nil }

  /// The host gave the token that was missing. nil: one is known already, or the playback has no use for it.
  package mutating func tokenGiven(_ token: Secret, now: Milliseconds) -> [Action]? {
    guard wantsToken else { return nil }
    return tokenCame(token, now: now)
  }

  /// The host gave another content token for the item; further licence requests carry it.
  package mutating func tokenReplaced(_ token: Secret) {
    guard contentToken.isKnown else { return }
    contentToken = .known(token)
    contentGeneration &+= 1
  }

  /// The host gave no content token in time.
  package mutating func tokenWaitEnded(now: Milliseconds) -> [Action] {
    guard case .awaited = contentToken, !isClosing else { return [] }
    return tokenMissing(now: now)
  }

  private mutating func tokenCame(_ token: Secret, now: Milliseconds) -> [Action] {
    var replacesDenied = false
    if case .asking(afterDenial: true) = contentToken { replacesDenied = true }
    contentToken = .known(token)
    contentGeneration &+= 1
    for index in licenses.indices where licenses[index].isWaiting {
      licenses[index].hasFreshToken = true
      if licenses[index].isForPlayingItem { licenses[index].ownToken = nil }
    }
    guard usesSession else { return sendWaiting(now: now) }
    if session.isIdle { return isWaiting ? [] : startSession(now: now) }
    // The host knows that a failed session is over: a late token starts no other.
    return policy.resetup == .never || replacesDenied || session.failure != nil
      ? sendWaiting(now: now) : replaceSession(now: now)
  }

  private mutating func tokenMissing(now: Milliseconds) -> [Action] {
    contentToken = .missing
    if policy.hasSSM, session.isIdle, !policy.opensByLicense {
      guard let denial = setupDenial?.value else { return startSession(now: now) }
      return perform(session.startFailed(denial.error(.ssm, .setup)), now: now)
    }
    // The session lives on; the requests that needed the token fail.
    var actions: [Action] = []
    let hasSSM = policy.hasSSM
    let failed = removeLicenses { license in
      license.isWaiting && license.ownToken == nil && !(license.isRenewal && hasSSM)
    }
    for license in failed {
      if let denial = license.reauthorised {
        actions.append(.failLicense(license.id, denial.failure.error(denial.origin, .license).stopping()))
      } else {
        actions.append(.failLicense(license.id, Self.noToken(.license)))
      }
    }
    contentToken = .none
    return actions + sendWaiting(now: now)
  }

  /// Closes the session; a new one with the new content token follows it.
  mutating func replaceSession(now: Milliseconds) -> [Action] {
    lifecycle.beganReplacing()
    let actions = perform(session.close(.teardown, now: now), now: now)
    return actions + startReplacement(now: now)
  }

  /// Starts the new session once the one that it replaces is finished.
  mutating func startReplacement(now: Milliseconds) -> [Action] {
    guard isReplacing, session.isFinished else { return [] }
    lifecycle.replaced()
    session = session.successor()
    return startSession(now: now)
  }

  /// Removes and returns the licence requests that satisfy `condition`.
  mutating func removeLicenses(where condition: (LicenseRequest) -> Bool) -> [LicenseRequest] {
    var removed: [LicenseRequest] = []
    var kept: [LicenseRequest] = []
    for license in licenses { if condition(license) { removed.append(license) } else { kept.append(license) } }
    licenses = kept
    return removed
  }
}

extension PlaybackMachine.ContentToken {
  var isKnown: Bool {
    if case .known = self { return true }
    return false
  }
}

extension PlaybackMachine.LicenseRequest {
  var isWaiting: Bool {
    if case .waiting = phase { return true }
    return false
  }
}
