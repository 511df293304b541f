/// Names one licence request of one playback.
package typealias LicenseID = UInt64

/// One playback, as a value with no I/O: its session, its licence requests and its content token. The engine calls a
/// method for each thing that happened and performs the actions it returns, in order.
package struct PlaybackMachine {
  package enum Action {
    /// `token` is the content token for set-up, the session token otherwise.
    case sendSSM(RequestID, SSMSession.Call, token: Secret)
    case sendLicense(RequestID, LicenseID, content: Secret?, session: Secret?, renewal: Bool)
    /// Sets the session's only timer; a new instant replaces the old one.
    case setTimer(Milliseconds)
    case cancelTimer
    /// Ask the token callback; call `tokenAnswered` with its answer.
    case askToken
    /// Wait for the host to give a token; call `tokenWaitEnded` when the time is over.
    case awaitToken(atMost: Milliseconds)
    /// Ask the payload callback or send the host an event; then call `requestLicense` or `payloadFailed`.
    case askPayload(KeySystem?)
    case report(Report)
    /// Complete the licence request with the licence of its reply. The secret is nil only in tests that pass none.
    case deliverLicense(LicenseID, Secret?)
    case failLicense(LicenseID, UsherError)
    /// The player may start its next item. Returned once.
    case nextMayStart
    /// The playback has ended: no event follows. Returned once.
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
    /// The licence reply that should have opened a session had no session token: playback continues without a session.
    case sessionless
  }

  /// A refusal by the server, kept with the request that it refused.
  struct Denial {
    let failure: WireFailure
    let origin: Origin
    /// The generation of the session token that the request carried.
    let generation: UInt32
  }

  struct LicenseRequest {
    /// The relation of the request to the session.
    enum Role {
      case sessionless
      /// Its reply opens the session.
      case opening
      /// It carries the session token of `generation`; its reply may bring a newer one.
      case carriesToken(generation: UInt32)
    }
    enum Phase {
      /// It waits until the playback has started and has its tokens and its session, and until no keep-alive is in
      /// flight.
      case waiting
      case inFlight(RequestID, Role)
    }
    let id: LicenseID
    let keySystem: KeySystem
    let isRenewal: Bool
    let isRaw: Bool
    let isAuxiliary: Bool
    /// The content token that the token map has for the request's content.
    var ownToken: Secret?
    /// Whether it is for the content that plays, and not for additional content.
    let isForPlayingItem: Bool
    var phase = Phase.waiting
    /// Whether it carries a content token that the host gave after the request was made.
    var hasFreshToken = false
    /// The server's refusal, kept while other replies are awaited that may have replaced the session token: they
    /// decide.
    var denial: Denial?
    var resends: UInt8 = 0
    /// The generation of the content token that it was sent with.
    var contentGeneration: UInt32 = 0
    /// The refusal for which the callback was asked for another content token: the request's error if the callback has
    /// none.
    var reauthorised: Denial?
    /// The request has completed (closed, timed out); its reply is still read for the session token.
    var isAbandoned = false
  }

  enum ContentToken {
    case none
    /// The token callback was asked. `afterDenial`: because the server denied a token; otherwise because there is no
    /// token yet or a new licence request needs a fresh one.
    case asking(afterDenial: Bool)
    /// There is no token yet, but the host may still give one.
    case awaited
    case known(Secret)
    /// The host was asked and has no token.
    case missing
  }

  package internal(set) var session: SSMSession
  var lifecycle = Lifecycle()
  var licenses: [LicenseRequest] = []
  var contentToken: ContentToken
  package var hasTokenCallback: Bool
  /// Whether the server may hold a session of this playback, present or replaced, whose token the library never
  /// received.
  var mayHaveOrphan = false
  /// The host has received a licence: a later request that is not a renewal is for a new route or new keys.
  var hasLicense = false
  /// The server's reply when it denied set-up because of the content token.
  var setupDenial: Shared<WireFailure>?
  /// The number of content tokens so far.
  var contentGeneration: UInt32 = 0
  /// The key system of the last licence request. A renewal asks the host for a payload of this key system.
  var lastKeySystem: KeySystem?

  package init(policy: Shared<SSPPolicy>, contentToken: Secret?, hasTokenCallback: Bool, seed: UInt64) {
    self.hasTokenCallback = hasTokenCallback
    self.contentToken = contentToken.map { .known($0) } ?? .none
    session = SSMSession(policy: policy, seed: seed)
  }

  var policy: SSPPolicy { session.policy }

  /// The item's content token; nil if it is not known.
  package var knownToken: Secret? {
    if case .known(let token) = contentToken { return token }
    return nil
  }

  /// Whether the engine may remove the playback: it is closed, and awaits no reply that could bring a token.
  package var isFinished: Bool { isClosed && session.isFinished }

  /// The properties that the engine compares before and after each step.
  package struct Standing {
    package let sessionState: SessionState
    package let isWaiting: Bool
    package let isClosed: Bool
    package let isFinished: Bool
    package let isGivingBack: Bool
    package let waitsForOwnTeardowns: Bool
    /// Whether a reply in flight may bring a token of a slot that must be given back.
    package let awaitsToken: Bool
  }

  /// `mutating`, although it changes nothing, so that the caller does not copy the machine first.
  package mutating func standing() -> Standing {
    Standing(
      sessionState: sessionState, isWaiting: isWaiting, isClosed: isClosed, isFinished: isFinished,
      isGivingBack: session.isGivingBack,
      waitsForOwnTeardowns: session.waitsForOwnTeardowns, awaitsToken: isClosed && session.awaitsToken)
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

  /// The host gave the missing token. Returns nil if a token is known already or the playback cannot use one.
  package mutating func tokenGiven(_ token: Secret, now: Milliseconds) -> [Action]? {
    guard wantsToken else { return nil }
    return tokenCame(token, now: now)
  }

  /// The host gave another content token for the item; later licence requests carry it.
  package mutating func tokenReplaced(_ token: Secret) {
    guard contentToken.isKnown else { return }
    contentToken = .known(token)
    contentGeneration &+= 1
  }

  /// The time in which the host could give a content token has passed.
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
    // If the session failed, the host knows that it is over: a late token starts no new session.
    return policy.resetup == .never || replacesDenied || session.failure != nil
      ? sendWaiting(now: now) : replaceSession(now: now)
  }

  private mutating func tokenMissing(now: Milliseconds) -> [Action] {
    contentToken = .missing
    if policy.hasSSM, session.isIdle, !policy.opensByLicense {
      guard let denial = setupDenial?.value else { return startSession(now: now) }
      return perform(session.startFailed(denial.error(.ssm, .setup)), now: now)
    }
    // The session continues; the requests that needed the token fail.
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

  /// Closes the session; a new session with the new content token follows.
  mutating func replaceSession(now: Milliseconds) -> [Action] {
    lifecycle.beganReplacing()
    let actions = perform(session.close(.teardown, now: now), now: now)
    return actions + startReplacement(now: now)
  }

  /// Starts the new session when the one that it replaces has finished.
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
