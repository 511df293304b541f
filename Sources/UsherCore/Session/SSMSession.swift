/// The life of one secure session, as a value with no I/O: set-up, keep-alive, teardown. Its methods are named for what
/// happened; they take the time as an argument and return the actions to perform, in order. The session does not know
/// its playback or the format of requests.
package struct SSMSession {
  package enum Action {
    /// Send a request of the session. `token`: the session token; nil for set-up, which carries the content token.
    case send(RequestID, Call, token: Secret?)
    /// Set the session's only timer to this instant. A new instant replaces the old one.
    case setTimer(Milliseconds)
    case cancelTimer
    /// The licence request that should open the session may be sent again.
    case openAgain
    /// An enforced renewal is due: ask the host for a payload.
    case renewalDue
    /// The server refused set-up because the account has too many sessions, and the session repeats the request. The
    /// error is that of the first refusal. The session returns this action only once for each wait.
    case awaitsSlot(UsherError)
    case started(period: Milliseconds)
    /// The server asked for a period shorter than the policy's shortest, and the session uses the shortest.
    case periodRaised(asked: Milliseconds)
    case keptAlive(lateness: Milliseconds)
    case recovered
    case doubtful
    case failed(UsherError)
    case teardownFailed(UsherError)
    /// The session that waits for this slot may start: the slot is free, or the teardown takes too long. The session
    /// returns this action only once.
    case nextMayStart
    /// For the host, the session has ended. The session returns this action once. If the host left the session to
    /// expire and later asks for a teardown, the session returns the action a second time.
    case ended(left: Bool, orphanPossible: Bool)
  }

  package enum Call: Sendable { case setup, heartbeat, teardown }

  package enum KeepAliveMode: Sendable { case heartbeat, enforced, cdm, none }

  /// The state of the next beat. A beat is one keep-alive: a heartbeat, or a licence renewal that serves as one. The
  /// lines with the arrows list the states that may follow, as in `Phase`.
  enum Beat {
    /// No beat is due or in flight. There are five reasons: the session is not active; it has no period; the CDM renews
    /// the licence itself; the mode is `none`; or the session is just handling the reply to a beat.
    /// → off, waiting, inFlight, refused, retrying, asked
    case off
    /// → off, waiting, inFlight, asked
    case waiting(sendAt: Milliseconds)
    /// → off
    case inFlight(RequestID, attempt: UInt32, sentAt: Milliseconds, generation: UInt32)
    /// The server answered that it does not know the session, but a licence request in flight may have replaced the
    /// token. The licence reply decides whether the session has failed.
    /// → off, inFlight, asked
    case refused(WireFailure, attempt: UInt32, generation: UInt32)
    /// The last attempt failed; the next attempt is due at `at`.
    /// → off, waiting, inFlight, asked
    case retrying(at: Milliseconds, attempt: UInt32)
    /// The mode is enforced renewal: the session asked the host for the payload of the renewal.
    /// → off, waiting, retrying
    case asked(attempt: UInt32)
  }

  /// The state of the keep-alives as reported to the owner. The lines with the arrows list the states that may follow,
  /// as in `Phase`.
  enum Health {
    /// → good, doubtful, outage
    case good
    /// A beat was sent so late that the server may have ended the session.
    /// → good, outage
    case doubtful
    /// The keep-alives of this many consecutive periods failed.
    /// → good, outage
    case outage(failedPeriods: UInt32)
  }

  /// Whether the first licence reply has arrived. That reply decides what keeps the session alive. The lines with the
  /// arrows list the states that may follow, as in `Phase`.
  enum FirstLicense {
    /// The first licence reply has not arrived. `period`: the period of the beats, if that reply starts them.
    /// → awaited, seen
    case awaited(period: Milliseconds?)
    /// → nothing
    case seen
  }

  /// The wait for a slot while the account has too many sessions.
  struct SlotWait {
    /// No set-up request is sent after this instant.
    let until: Milliseconds
    /// How many set-up requests the server has refused during this wait.
    let tries: UInt32
  }

  let sharedPolicy: Shared<SSPPolicy>
  private let seed: UInt64
  private var nextRequest: RequestID
  var lifecycle = Lifecycle()
  var newest = NewestToken()
  package private(set) var mode = KeepAliveMode.heartbeat
  private(set) var firstLicense = FirstLicense.awaited(period: nil)
  var schedule: KeepAliveSchedule?
  private(set) var beat = Beat.off
  private(set) var health = Health.good
  /// The time at which the oldest unanswered keep-alive was due; nil if all are answered.
  var owedSince: Milliseconds?
  /// The present wait for a slot, which begins at the first refusal after which the session waits. nil before this
  /// refusal, after the session was set up, and after `endSlotWait()`.
  var slotWait: SlotWait?
  /// Whether keep-alives pause because the host is suspended. This is separate from `beat`, which keeps its state
  /// during the pause: when the host resumes, the beat continues from that state.
  var isPaused = false
  /// How many licence requests with the session token are in flight. The replies to these requests may replace the
  /// token.
  var licensesInFlight: UInt32 = 0

  /// - Parameters:
  ///   - seed: gives each playback a different jitter.
  ///   - firstRequest: the first request id; the others count up from it.
  package init(policy: Shared<SSPPolicy>, seed: UInt64, firstRequest: RequestID = 1) {
    sharedPolicy = policy
    self.seed = seed
    nextRequest = firstRequest
  }

  /// Returns a new session that replaces this one, which has finished. A pause goes on.
  func successor() -> SSMSession {
    var next = SSMSession(policy: sharedPolicy, seed: seed, firstRequest: nextRequest)
    next.isPaused = isPaused
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

  mutating func newSchedule(period: Milliseconds, leaseFrom: Milliseconds, now: Milliseconds) {
    schedule = KeepAliveSchedule(
      start: now, leaseFrom: leaseFrom, period: period, jitter: policy.jitter, seed: seed)
  }

  mutating func setMode(_ newMode: KeepAliveMode) { mode = newMode }

  // MARK: Transitions of the beat, the health and the first licence

  private mutating func move(to next: Beat) {
    #if !hasFeature(Embedded)
      lifecycle.log?.add("SSMSession.Beat", beat.caseName, next.caseName)
    #endif
    beat = next
  }

  mutating func beatEnded() { move(to: .off) }
  mutating func beatScheduled(at sendAt: Milliseconds) { move(to: .waiting(sendAt: sendAt)) }
  mutating func beatSent(_ request: RequestID, attempt: UInt32, now: Milliseconds) {
    move(to: .inFlight(request, attempt: attempt, sentAt: now, generation: tokenGeneration))
  }
  mutating func beatDenied(_ failure: WireFailure, attempt: UInt32, generation: UInt32) {
    move(to: .refused(failure, attempt: attempt, generation: generation))
  }
  mutating func retryScheduled(at: Milliseconds, attempt: UInt32) { move(to: .retrying(at: at, attempt: attempt)) }
  mutating func renewalAsked(attempt: UInt32) { move(to: .asked(attempt: attempt)) }

  private mutating func move(to next: Health) {
    #if !hasFeature(Embedded)
      lifecycle.log?.add("SSMSession.Health", health.caseName, next.caseName)
    #endif
    health = next
  }

  mutating func keepAliveSucceeded() { move(to: .good) }
  mutating func becameDoubtful() { move(to: .doubtful) }
  mutating func periodsFailed(_ count: UInt32) { move(to: .outage(failedPeriods: count)) }

  private mutating func move(to next: FirstLicense) {
    #if !hasFeature(Embedded)
      lifecycle.log?.add("SSMSession.FirstLicense", firstLicense.caseName, next.caseName)
    #endif
    firstLicense = next
  }

  /// Called when the first licence reply will start beats of this period.
  mutating func beatsAwaitFirstLicense(period: Milliseconds) { move(to: .awaited(period: period)) }
  mutating func firstLicenseSeen() { move(to: .seen) }

  /// The newest session token.
  package var token: Secret? { newest.secret }
  /// Identifies `token`; 0 before the first one. If this number has changed since a request was sent, another token has
  /// replaced the token of that request.
  package var tokenGeneration: UInt32 { newest.generation }

  // MARK: Queries by the owner

  /// Whether licence requests with the session token may be sent now. Licence requests wait while a keep-alive is in
  /// flight, because the reply to the keep-alive may replace the token. If the server has refused a keep-alive, the
  /// licence replies in flight decide whether the session fails. Until these replies arrive, new licence requests wait
  /// too; otherwise the new requests could delay this decision for ever.
  package var isReady: Bool {
    guard isActive else { return false }
    switch beat {
    case .inFlight, .refused: return false
    case .off, .waiting, .retrying, .asked: return true
    }
  }

  var stage: Stage { lifecycle.stage }

  package var isActive: Bool { stage == .active }
  package var isEnded: Bool { stage == .ended || stage == .left }
  package var isGivingBack: Bool { stage == .givingBack }

  package var isDoubtful: Bool {
    switch health {
    case .good: return false
    case .doubtful, .outage: return isActive
    }
  }

  package var isIdle: Bool {
    if stage == .pending, case .idle = lifecycle.phase { return true }
    return false
  }

  /// Whether the server refused set-up because the account has too many sessions, and the session waits until this
  /// context has given other slots back.
  package var waitsForOwnTeardowns: Bool {
    if stage == .pending, case .contested = lifecycle.phase { return true }
    return false
  }

  /// Whether the session repeats its set-up until a slot is free. False after the last request was sent.
  package func awaitsSlot(now: Milliseconds) -> Bool { stage == .pending && now < (slotWait?.until ?? 0) }

  /// Why the session failed; nil if it did not.
  package var failure: UsherError? {
    if stage == .failed, case .failed(let error) = lifecycle.phase { return error }
    return nil
  }

  /// Whether a set-up request, or a licence request that opens the session, is in flight.
  var awaitsSetupReply: Bool { lifecycle.setupInFlight != nil }

  /// Whether the session has returned `nextMayStart`, so that the session which waits for this slot may start.
  var hasFreedSlot: Bool { lifecycle.reported.rawValue >= Reported.nextMayStart.rawValue }

  /// Whether a reply in flight may bring a token with which the session can give its slot back.
  var awaitsToken: Bool {
    if isLeft { return false }
    return awaitsSetupReply || (licensesInFlight > 0 && lifecycle.failedTeardown != nil)
  }

  /// Whether the session has ended, no reply to its requests is in flight, and the host cannot ask to tear it down.
  package var isFinished: Bool { stage == .ended && !awaitsReply }

  var awaitsReply: Bool { awaitsSetupReply || isBeatInFlight || licensesInFlight > 0 }

  package var period: Milliseconds { schedule?.period ?? 0 }

  var isBeatInFlight: Bool {
    if case .inFlight = beat { return true }
    return false
  }

  #if !hasFeature(Embedded)
    mutating func record(in log: TransitionLog) { lifecycle.log = log }
  #endif

  /// Takes the session token of a reply. Does nothing for nil, which means that the reply has no token.
  /// - Parameter carried: the generation of the token in the request; 0 for set-up.
  mutating func take(_ newToken: Secret?, inReplyTo carried: UInt32 = 0) {
    if let newToken { newest.take(newToken, inReplyTo: carried) }
  }

  /// Called when the reply to a request with a session token was lost.
  mutating func loseReply() { newest.loseReply(next: nextRequest) }
}

#if !hasFeature(Embedded)
  extension SSMSession.Beat {
    fileprivate var caseName: String {
      switch self {
      case .off: return "off"
      case .waiting: return "waiting"
      case .inFlight: return "inFlight"
      case .refused: return "refused"
      case .retrying: return "retrying"
      case .asked: return "asked"
      }
    }
  }

  extension SSMSession.Health {
    fileprivate var caseName: String {
      switch self {
      case .good: return "good"
      case .doubtful: return "doubtful"
      case .outage: return "outage"
      }
    }
  }

  extension SSMSession.FirstLicense {
    fileprivate var caseName: String {
      switch self {
      case .awaited: return "awaited"
      case .seen: return "seen"
      }
    }
  }
#endif
