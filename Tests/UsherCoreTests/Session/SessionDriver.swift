import Testing

@testable import UsherCore

/// Runs one session with a virtual clock and with replies from the test, and records each action as a short line.
struct SessionDriver {
  struct Sent {
    let request: RequestID
    let call: SSMSession.Call
    let token: String
  }

  var session: SSMSession
  private(set) var now: Milliseconds
  /// The time at which the session's timer fires.
  private(set) var timer: Milliseconds?
  /// Requests without a reply, oldest first.
  private(set) var waiting: [Sent] = []
  /// The machine's actions since the last `take()`, one line for each.
  private(set) var story: [String] = []
  private(set) var lastError: UsherError?
  /// The token generations of the licence requests in flight, oldest first.
  private var licenses: [UInt32] = []

  init(_ policy: SSPPolicy = steady(), seed: UInt64 = 7, now: Milliseconds = 0) {
    session = SSMSession(policy: Shared(policy), seed: seed)
    self.now = now
  }

  /// A session that is set up with the token `t1`.
  static func active(
    _ policy: SSPPolicy = steady(), period: Double = 60, seed: UInt64 = 7, now: Milliseconds = 0
  ) -> SessionDriver {
    var driver = SessionDriver(policy, seed: seed, now: now)
    driver.start()
    driver.answer(.setup, Say.token("t1", period: .number(period)))
    _ = driver.take()
    return driver
  }

  /// A session whose first heartbeat is in flight.
  static func beating(_ policy: SSPPolicy = steady(), period: Double = 60) -> SessionDriver {
    var driver = active(policy, period: period)
    driver.run(until: Milliseconds(period * 1000))
    _ = driver.take()
    return driver
  }

  mutating func take() -> [String] {
    defer { story = [] }
    return story
  }

  mutating func start() { perform(session.start(now: now)) }
  mutating func tearDownLeft() { perform(session.tearDownLeft(now: now)) }
  mutating func close(_ ending: SSMSession.Ending = .teardown) { perform(session.close(ending, now: now)) }

  /// Passes a reply to the session, as the reply to the oldest request of this kind.
  mutating func answer(
    _ call: SSMSession.Call, _ outcome: SSMOutcome, ownTeardowns: SSMSession.OwnTeardowns = .none,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    guard let index = waiting.firstIndex(where: { $0.call == call }) else {
      Issue.record("no \(call) waits for an answer", sourceLocation: sourceLocation)
      return
    }
    answer(waiting.remove(at: index), outcome, ownTeardowns: ownTeardowns)
  }

  mutating func answer(_ sent: Sent, _ outcome: SSMOutcome, ownTeardowns: SSMSession.OwnTeardowns = .none) {
    switch sent.call {
    case .setup: perform(session.setupReplied(sent.request, outcome, ownTeardowns: ownTeardowns, now: now))
    case .heartbeat: perform(session.heartbeatReplied(sent.request, outcome, now: now))
    case .teardown: perform(session.teardownReplied(sent.request, outcome, now: now))
    }
  }

  mutating func removeWaiting(at index: Int) -> Sent { waiting.remove(at: index) }

  /// Moves the clock to `instant`. The timer fires at each time for which the session has set it.
  mutating func run(until instant: Milliseconds) {
    var rings = 0
    while let at = timer, at <= instant {
      ring(at: max(at, now))
      rings += 1
      if rings > 10_000 {
        Issue.record("the timer never comes to rest at \(now)")
        return
      }
    }
    now = max(now, instant)
  }

  mutating func pass(_ duration: Milliseconds) { run(until: now.adding(duration)) }

  /// Moves the clock as if the device slept: the timer fires late.
  mutating func sleep(until instant: Milliseconds) {
    now = max(now, instant)
    if let at = timer, at <= now { ring(at: now) }
  }

  mutating func ring(at instant: Milliseconds) {
    now = instant
    timer = nil
    perform(session.timerFired(now: now))
  }

  // Records a licence request that carries the session token.
  mutating func licenseSent() {
    session.licenseSent()
    licenses.append(session.tokenGeneration)
  }
  /// Answers the oldest licence request.
  mutating func licenseAnswered(token: String? = nil) {
    let carried = licenses.isEmpty ? session.tokenGeneration : licenses.removeFirst()
    if let token { session.licenseBroughtToken(secret(token), inReplyTo: carried) }
    perform(session.licenseReplied(now: now))
  }
  mutating func licenseLost() {
    session.licenseReplyLost()
    licenseAnswered()
  }
  mutating func renewed(token: String? = nil, sentAt: Milliseconds? = nil) {
    if let token { session.licenseBroughtToken(secret(token), inReplyTo: session.tokenGeneration) }
    perform(session.renewed(sentAt: sentAt ?? now, now: now))
  }
  mutating func renewalFailed(_ failure: WireFailure, origin: Origin = .license) {
    perform(session.renewalFailed(failure, origin: origin, now: now))
  }
  mutating func decide(_ mode: SSMSession.KeepAliveMode, sentAt: Milliseconds? = nil) {
    perform(session.modeDecided(mode, sentAt: sentAt ?? now, now: now))
  }
  mutating func resume() { perform(session.resumed(now: now)) }
  mutating func othersTornDown() { perform(session.ownTeardownsEnded(now: now)) }
  mutating func startFails(_ error: UsherError) { perform(session.startFailed(error)) }

  private mutating func perform(_ actions: [SSMSession.Action]) {
    for action in actions {
      switch action {
      case .send(let request, let call, let token):
        waiting.append(Sent(request: request, call: call, token: text(token)))
        story.append(token == nil ? "\(call)" : "\(call) \(text(token))")
      case .setTimer(let at): timer = at
      case .cancelTimer: timer = nil
      case .openAgain: story.append("open again")
      case .renewalDue: story.append("renewal due")
      case .awaitsSlot(let error):
        lastError = error
        story.append("awaits a slot")
      case .started(let period): story.append("started \(period)")
      case .periodRaised(let asked): story.append("period raised from \(asked)")
      case .keptAlive(let lateness): story.append(lateness == 0 ? "kept alive" : "kept alive \(lateness) late")
      case .recovered: story.append("recovered")
      case .doubtful: story.append("doubtful")
      case .failed(let error):
        lastError = error
        story.append(
          "\(error.operation) failed: \(UsherCoreTests.name(error.status))"
            + (error.serviceCode == 0 ? "" : " \(error.serviceCode)")

            + (error.orphanPossible ? ", orphan possible" : "")
        )
      case .teardownFailed(let error):
        lastError = error
        story.append("teardown failed: \(UsherCoreTests.name(error.status))")
      case .nextMayStart: story.append("released")
      case .ended(let left, let orphanPossible):
        story.append(left ? "left" : orphanPossible ? "ended, orphan possible" : "ended")
      }
    }
  }
}
