/// Names one licence request of one playback.
package typealias LicenseID = UInt64

/// One playback, as a value with no I/O: its session, its licence requests and its content token. When something
/// happens, the engine calls the method for it, and performs the actions that the method returns, in order.
package struct PlaybackMachine {
  package enum Action {
    /// Send a request of the session to the SSM. `token`: for set-up, the content token; for any other call, the
    /// session token.
    case sendSSM(RequestID, SSMSession.Call, token: Secret)
    case sendLicense(RequestID, LicenseID, content: Secret?, session: Secret?, renewal: Bool)
    /// Set the session's only timer to this instant. A new instant replaces the old one.
    case setTimer(Milliseconds)
    case cancelTimer
    /// Ask the token callback; call `tokenAnswered` with its answer.
    case askToken
    /// Wait until the host gives a content token; call `tokenWaitEnded` when the time is over.
    case awaitToken(atMost: Milliseconds)
    /// Ask the payload callback, or report to the host that a renewal is due; then call `requestLicense` or
    /// `payloadFailed`.
    case askPayload(KeySystem?)
    case report(Report)
    /// Complete the licence request with the licence of its reply. The secret is nil only in tests that use no licence
    /// data.
    case deliverLicense(LicenseID, Secret?)
    case failLicense(LicenseID, UsherError)
    /// The player may start its next item. The machine returns this action only once.
    case nextMayStart
    /// The playback has ended. No event follows, unless the playback left its session to expire and the host later asks
    /// for a teardown. The machine returns this action only once.
    case closed(Status, orphanPossible: Bool)
  }

  package enum Report {
    /// The server refused set-up because the account has too many sessions; the library repeats the request.
    case awaitsSlot(UsherError)
    case started(period: Milliseconds)
    /// The server asked for a period of `asked`, but the session uses a longer one.
    case periodRaised(asked: Milliseconds, to: Milliseconds)
    case setupError(UsherError)
    case heartbeatError(UsherError)
    /// The teardown of the session failed.
    /// - Parameter afterClosed: whether the playback had reported before this error that it is closed.
    case teardownError(UsherError, afterClosed: Bool)
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
    /// The generation of the session token that the request carried. This number identifies the token.
    let generation: UInt32
  }

  struct LicenseRequest {
    /// The relation of the request to the session.
    enum Role {
      case sessionless
      /// The reply to the request opens the session.
      case opening
      /// The request carries the session token that `generation` identifies; the reply may bring a newer token.
      case carriesToken(generation: UInt32)
      /// The reply has arrived and the session uses its fields, but the host's licence hook is still reading the
      /// licence.
      case reading
    }
    /// The lines with the arrows list the phases that may follow, as in `PlaybackMachine.Phase`.
    enum Phase {
      /// The machine sends the request as soon as the playback has started, has its tokens and its session, and has no
      /// keep-alive in flight.
      /// → inFlight
      case waiting
      /// While the request stays in flight, its role may change: it gets a newer session token, or its reply arrives
      /// and the licence hook reads it. The request waits again if the machine must send it once more.
      /// → inFlight, waiting
      case inFlight(RequestID, Role)
    }
    let id: LicenseID
    let keySystem: KeySystem
    let isRenewal: Bool
    let isRaw: Bool
    let isAuxiliary: Bool
    /// The content token from the token map for the request's content.
    var ownToken: Secret?
    /// Whether the request is for the content that plays, and not for additional content.
    let isForPlayingItem: Bool
    private(set) var phase = Phase.waiting
    /// When the machine last asked for the request to be sent.
    private(set) var sentAt: Milliseconds = 0
    /// Whether the request carries, or will carry, a content token that the host gives after it made the request.
    var hasFreshToken = false
    /// The server's refusal. The machine keeps the refusal while it waits for other replies, because the refusal does
    /// not count if one of these replies has replaced the session token.
    var denial: Denial?
    var resends: UInt8 = 0
    /// The generation of the content token that the request carried. This number identifies the token.
    var contentGeneration: UInt32 = 0
    /// The refusal after which the library asked the token callback for another content token. If the callback has no
    /// other token, the request fails with the error of this refusal.
    var reauthorised: Denial?
    /// Whether the host no longer waits for the licence, because the playback closes or the host's request timed out.
    /// The reply of the server may still bring a session token.
    var isAbandoned = false
    #if !hasFeature(Embedded)
      var log: TransitionLog?
    #endif

    private mutating func move(to next: Phase) {
      #if !hasFeature(Embedded)
        log?.add("LicenseRequest", phase.caseName, next.caseName)
      #endif
      phase = next
    }

    mutating func sent(_ request: RequestID, as role: Role, at now: Milliseconds) {
      sentAt = now
      move(to: .inFlight(request, role))
    }
    mutating func gotNewerToken(_ request: RequestID, generation: UInt32) {
      move(to: .inFlight(request, .carriesToken(generation: generation)))
    }
    mutating func replyArrived(_ request: RequestID) { move(to: .inFlight(request, .reading)) }
    /// Called when the request must be sent once more.
    mutating func returned() { move(to: .waiting) }
    /// Called when the playback has, or will get, a new content token. The request uses this token; but a request for
    /// additional content keeps its own token.
    mutating func usesNewestContentToken() {
      hasFreshToken = true
      if isForPlayingItem { ownToken = nil }
    }
  }

  /// Only one case may have a payload: Swift then stores the reference to the token's memory unchanged. With a second
  /// payload, Swift would set unused bits of the reference, and the leak checkers of hosts that exit without closing
  /// would report the token's memory as lost.
  ///
  /// The lines with the arrows list the states that may follow, as in `Phase`.
  enum ContentToken {
    /// The playback has no token, and the library has not asked for one, or no longer waits for one.
    /// → asking, askingAfterDenial, awaited, known, missing
    case none
    /// The library has asked the token callback, because the playback had no token yet, or because a new licence
    /// request needs a fresh token.
    /// → none, known, missing
    case asking
    /// The library has asked the token callback, because the server denied the previous token.
    /// → none, known, missing
    case askingAfterDenial
    /// The playback has no token yet, but the host may still give one.
    /// → none, known, missing
    case awaited
    /// → asking, askingAfterDenial, known, missing
    case known(Secret)
    /// The host has no token for the session, which has failed for this reason; or the playback closes, and needs no
    /// token any more.
    /// → missing
    case missing
  }

  package internal(set) var session: SSMSession
  var lifecycle = Lifecycle()
  var licenses: [LicenseRequest] = []
  private(set) var contentToken: ContentToken
  private(set) var hasTokenCallback: Bool
  /// Whether the server may hold a session of this playback whose token the library never received. This can be the
  /// present session or an earlier one.
  var mayHaveOrphan = false
  /// Whether the host has received a licence. If so, a later request that is not a renewal is for another output or for
  /// new keys.
  var hasLicense = false
  /// The reply with which the server denied set-up because of the content token, so that the library asked for another
  /// token. nil: no such reply came, or set-up has succeeded since.
  var setupDenial: Shared<WireFailure>?
  /// How many content tokens the playback has received since it was made. The number identifies the present token.
  var contentGeneration: UInt32 = 0
  /// The key system of the last licence request. A renewal asks the host for a payload of this key system.
  var lastKeySystem: KeySystem?

  package init(policy: Shared<SSPPolicy>, contentToken: Secret?, hasTokenCallback: Bool, seed: UInt64) {
    self.hasTokenCallback = hasTokenCallback
    self.contentToken = contentToken.map { .known($0) } ?? .none
    session = SSMSession(policy: policy, seed: seed)
  }

  var policy: SSPPolicy { session.policy }
  /// The value in `policy`, read without a copy of the whole policy.
  var hasSSM: Bool { session.sharedPolicy.value.hasSSM }

  /// The item's content token; nil if the machine does not know the token.
  package var knownToken: Secret? {
    if case .known(let token) = contentToken { return token }
    return nil
  }

  /// Whether the engine may remove the playback: it is closed, and no reply in flight can bring a session token.
  package var isFinished: Bool { isClosed && session.isFinished }

  /// The properties that the engine compares before and after each step.
  package struct Standing {
    package let sessionState: SessionState
    package let isWaiting: Bool
    package let isClosed: Bool
    package let isFinished: Bool
    package let isGivingBack: Bool
    package let waitsForOwnTeardowns: Bool
    /// Whether a reply in flight may bring the token of a session that the library must then tear down.
    package let awaitsToken: Bool
  }

  /// This method is `mutating` although it changes nothing: otherwise the caller would copy the whole machine.
  package mutating func standing() -> Standing {
    Standing(
      sessionState: sessionState, isWaiting: isWaiting, isClosed: isClosed, isFinished: isFinished,
      isGivingBack: session.isGivingBack,
      waitsForOwnTeardowns: session.waitsForOwnTeardowns, awaitsToken: isClosed && session.awaitsToken)
  }

  /// Whether only a licence request can begin the session, and the playback has no licence request now. This method is
  /// `mutating`, because otherwise the caller would copy the whole machine.
  package mutating func needsLicenseRequest() -> Bool {
    let begins = policy.opensByLicense || (policy.startsWithLicense && !contentToken.isKnown)
    return policy.hasSSM && begins && session.isIdle && licenses.isEmpty
  }

  // Each of these methods returns a property or the result of a method of `session`. These methods are `mutating`,
  // because otherwise the caller would copy the whole machine.
  package mutating func keepAliveTimeout(now: Milliseconds) -> Milliseconds { session.keepAliveTimeout(now: now) }
  package mutating func longestKeepAliveTimeout(now: Milliseconds) -> Milliseconds {
    session.longestKeepAliveTimeout(now: now)
  }
  package mutating func isKeepAliveRetry() -> Bool { session.isRetry }
  package mutating func period() -> Milliseconds { session.period }
  package mutating func recoverable() -> SSMSession.Recoverable? { session.recoverable() }

  /// The last teardown of a session that has ended without an answer to it.
  package var unanswered: SSMSession.Unanswered? { session.unanswered }
  package mutating func isTeardownRetry() -> Bool { session.isTeardownRetry }
  package mutating func connectsAgainFrom() -> Milliseconds { session.connectsAgainFrom }
  package mutating func isKeepAliveDue(now: Milliseconds) -> Bool { session.isKeepAliveDue(now: now) }

  /// The states of a session as the header numbers them (`USHER_SESSION_…`).
  package enum SessionState: Int32, Sendable {
    case none = 0
    case pending, active, doubtful, failed, ended
  }

  /// Called when the player starts the item.
  package mutating func start(now: Milliseconds) -> [Action] {
    guard isWaiting else { return [] }
    lifecycle.started()
    if policy.hasSSM, !policy.opensByLicense, !policy.startsWithLicense || contentToken.isKnown {
      return startSession(now: now)
    }
    return sendWaiting(now: now)
  }

  /// Called when the host will probably play the item next. If the start of the item would ask the token callback, the
  /// machine asks it now.
  package mutating func prepare() -> [Action] {
    guard isWaiting, hasTokenCallback, !policy.startsWithLicense, case .none = contentToken else { return [] }
    tokenAsked()
    return [.askToken]
  }

  // MARK: Transitions of the content token

  private mutating func move(to next: ContentToken) {
    #if !hasFeature(Embedded)
      lifecycle.log?.add("PlaybackMachine.ContentToken", contentToken.caseName, next.caseName)
    #endif
    contentToken = next
  }

  mutating func tokenAsked() { move(to: .asking) }
  mutating func tokenAskedAfterDenial() { move(to: .askingAfterDenial) }
  mutating func tokenAwaited() { move(to: .awaited) }
  /// Called when the playback needs no content token any more, because it closes.
  mutating func tokenUnneeded() { move(to: .missing) }
  private mutating func tokenKnown(_ token: Secret) {
    move(to: .known(token))
    contentGeneration &+= 1
  }

  // MARK: The session and its content token

  mutating func startSession(now: Milliseconds) -> [Action] {
    if policy.opensByLicense { return sendWaiting(now: now) }
    switch contentToken {
    case .known: return perform(session.start(now: now), now: now)
    case .asking, .askingAfterDenial, .awaited: return []
    case .none:
      if hasTokenCallback {
        tokenAsked()
        return [.askToken]
      }
      guard policy.tokenWait > 0 else { return perform(session.startFailed(Self.noToken(.setup)), now: now) }
      tokenAwaited()
      return [.awaitToken(atMost: policy.tokenWait)]
    case .missing: return perform(session.startFailed(Self.noToken(.setup)), now: now)
    }
  }

  package static func noToken(_ operation: Operation) -> UsherError {
    UsherError(.noToken, operation: operation, message: "content token unavailable")
  }

  /// Called when the host has set or removed the token callback of the delegate.
  package mutating func tokenCallbackChanged(isSet: Bool) { hasTokenCallback = isSet }

  /// Called with the token that the token callback supplied; nil if it supplied none or missed its deadline.
  package mutating func tokenAnswered(_ token: Secret?, now: Milliseconds) -> [Action] {
    guard contentToken.isAsking, !isClosing else { return [] }
    guard let token else { return tokenMissing(now: now) }
    return tokenCame(token, now: now)
  }

  /// Whether the playback would use a content token if the host gave one now.
  package var wantsToken: Bool { !isClosing && !contentToken.isKnown && session.failure == nil }

  /// Called when the host gives the missing content token. Returns nil if the playback has a token already or cannot
  /// use one.
  package mutating func tokenGiven(_ token: Secret, now: Milliseconds) -> [Action]? {
    guard wantsToken else { return nil }
    return tokenCame(token, now: now)
  }

  /// Called when the host gives another content token for the item; later licence requests carry the new token.
  package mutating func tokenReplaced(_ token: Secret) {
    guard contentToken.isKnown else { return }
    tokenKnown(token)
  }

  /// Called when the time in which the host could give a content token has passed.
  package mutating func tokenWaitEnded(now: Milliseconds) -> [Action] {
    guard case .awaited = contentToken, !isClosing else { return [] }
    return tokenMissing(now: now)
  }

  private mutating func tokenCame(_ token: Secret, now: Milliseconds) -> [Action] {
    var replacesDenied = false
    if case .askingAfterDenial = contentToken { replacesDenied = true }
    tokenKnown(token)
    for index in licenses.indices where licenses[index].isWaiting { licenses[index].usesNewestContentToken() }
    guard usesSession else { return sendWaiting(now: now) }
    if session.isIdle { return isWaiting ? [] : startSession(now: now) }
    // If the session has failed, the machine has already reported the failure to the host. So a token that arrives
    // after the failure starts no new session.
    return policy.resetup == .never || replacesDenied || session.failure != nil
      ? sendWaiting(now: now) : replaceSession(now: now)
  }

  private mutating func tokenMissing(now: Milliseconds) -> [Action] {
    // The playback was only prepared. When the playback starts, it asks the token callback again.
    if isWaiting {
      move(to: .none)
      return []
    }
    if policy.hasSSM, session.isIdle, !policy.opensByLicense {
      move(to: .missing)
      guard let denial = setupDenial?.value else { return startSession(now: now) }
      return perform(session.startFailed(denial.error(.ssm, .setup)), now: now)
    }
    // There is a session already, so it continues. Only the requests that needed the token fail.
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
    move(to: .none)
    return actions + sendWaiting(now: now)
  }

  /// Closes the session in order to start a new one with the new content token.
  mutating func replaceSession(now: Milliseconds) -> [Action] {
    lifecycle.beganReplacing()
    let actions = perform(session.close(.teardown, now: now), now: now)
    return actions + startReplacement(now: now)
  }

  /// If the old session has finished, starts the new session that replaces it.
  mutating func startReplacement(now: Milliseconds) -> [Action] {
    guard isReplacing, session.isFinished else { return [] }
    lifecycle.replaced()
    session = session.successor()
    // Forget the stored refusals: these refusals concern tokens of the old session, and the new session numbers its
    // tokens from the beginning.
    for index in licenses.indices { licenses[index].denial = nil }
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
  var isAsking: Bool {
    switch self {
    case .asking, .askingAfterDenial: return true
    case .none, .awaited, .known, .missing: return false
    }
  }
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

  /// Whether a reply to the request may still arrive and change the session. False while the licence hook reads the
  /// reply.
  var awaitsReply: Bool {
    switch phase {
    case .waiting, .inFlight(_, .reading): return false
    case .inFlight(_, .sessionless), .inFlight(_, .opening), .inFlight(_, .carriesToken): return true
    }
  }
}

#if !hasFeature(Embedded)
  extension PlaybackMachine.ContentToken {
    fileprivate var caseName: String {
      switch self {
      case .none: return "none"
      case .asking: return "asking"
      case .askingAfterDenial: return "askingAfterDenial"
      case .awaited: return "awaited"
      case .known: return "known"
      case .missing: return "missing"
      }
    }
  }

  extension PlaybackMachine.LicenseRequest.Phase {
    fileprivate var caseName: String {
      switch self {
      case .waiting: return "waiting"
      case .inFlight: return "inFlight"
      }
    }
  }
#endif
