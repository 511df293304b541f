import Testing

@testable import UsherCore

/// Runs one playback with a virtual clock, and records each action as a short line.
struct PlaybackDriver {
  enum Sent {
    case ssm(RequestID, SSMSession.Call, String)
    case license(RequestID, LicenseID)
  }

  var machine: PlaybackMachine
  private(set) var now: Milliseconds = 0
  private(set) var timer: Milliseconds?
  private(set) var waiting: [Sent] = []
  private(set) var story: [String] = []
  private(set) var lastError: UsherError?

  init(_ policy: SSPPolicy = steady(), content: String? = "c1", hasTokenCallback: Bool = false) {
    machine = PlaybackMachine(
      policy: Shared(policy), contentToken: content.map { secret($0) }, hasTokenCallback: hasTokenCallback, seed: 7)
  }

  /// A playback whose session is set up with the token `t1`.
  static func active(_ policy: SSPPolicy = steady(), hasTokenCallback: Bool = false) -> PlaybackDriver {
    var driver = PlaybackDriver(policy, hasTokenCallback: hasTokenCallback)
    driver.start()
    driver.answer(.setup, Say.token("t1", period: .number(60)))
    _ = driver.take()
    return driver
  }

  mutating func take() -> [String] {
    defer { story = [] }
    return story
  }

  mutating func prepare() { perform(machine.prepare()) }
  mutating func start() { perform(machine.start(now: now)) }
  mutating func close(_ ending: SSMSession.Ending = .teardown, _ status: Status = .closed) {
    perform(machine.close(ending, status: status, now: now))
  }
  mutating func ask(
    _ id: LicenseID, _ keySystem: KeySystem = .fairPlay, renewal: Bool = false, raw: Bool = false,
    auxiliary: Bool = false, token: String? = nil,
    isForPlayingItem: Bool = true
  ) {
    perform(
      machine.requestLicense(
        id, keySystem: keySystem, isRenewal: renewal, isRaw: raw, isAuxiliary: auxiliary,
        token: token.map { secret($0) }, isForPlayingItem: isForPlayingItem, now: now))
  }
  mutating func tokenWaitEnds() { perform(machine.tokenWaitEnded(now: now)) }
  mutating func set(_ token: String) -> Bool {
    guard let actions = machine.tokenGiven(secret(token), now: now) else { return false }
    perform(actions)
    return true
  }
  mutating func giveToken(_ token: String?) { perform(machine.tokenAnswered(token.map { secret($0) }, now: now)) }
  mutating func payloadFails(_ status: Status) { perform(machine.payloadFailed(status, now: now)) }
  mutating func othersTornDown() { perform(machine.ownTeardownsEnded(now: now)) }
  mutating func abandon(_ id: LicenseID) -> Bool { machine.abandonLicense(id, now: now) }

  mutating func answer(
    _ call: SSMSession.Call, _ outcome: SSMOutcome, ownTeardowns: SSMSession.OwnTeardowns = .none,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let found = waiting.firstIndex { if case .ssm(_, call, _) = $0 { return true } else { return false } }
    guard let found, case .ssm(let request, _, _) = waiting.remove(at: found) else {
      Issue.record("no \(call) waits for an answer", sourceLocation: sourceLocation)
      return
    }
    perform(machine.ssmReplied(request, call, outcome, ownTeardowns: ownTeardowns, now: now))
  }

  /// Delivers a licence, with or without a session token.
  mutating func licensed(
    _ id: LicenseID, token: String? = nil, enforced: Bool? = nil, period: PeriodField = .missing,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    var fields = SessionFields()
    fields.isObject = true
    fields.token = token.map { secret($0) }
    fields.enforced = enforced
    fields.period = period
    finish(id, .success(fields), sourceLocation)
  }

  /// Delivers a reply that the host's licence hook must read. The test then calls `licensed` or `failed` for the answer
  /// of the hook.
  mutating func arrived(_ id: LicenseID, token: String? = nil) {
    var fields = SessionFields()
    fields.token = token.map { secret($0) }
    for sent in waiting { if case .license(let request, id) = sent { reply(request, .arrived(fields)) } }
  }

  mutating func denied(
    _ id: LicenseID, _ code: Int64, http: Int32 = 400, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    finish(
      id, .failure(WireFailure(code == 0 ? .http : .refused, httpStatus: http, serviceCode: code), .license),
      sourceLocation)
  }

  mutating func failed(_ id: LicenseID, _ failure: WireFailure, sourceLocation: SourceLocation = #_sourceLocation) {
    finish(id, .failure(failure, .license), sourceLocation)
  }

  private mutating func finish(
    _ id: LicenseID, _ outcome: PlaybackMachine.LicenseOutcome, _ sourceLocation: SourceLocation
  ) {
    let found = waiting.firstIndex { if case .license(_, id) = $0 { return true } else { return false } }
    guard let found, case .license(let request, _) = waiting.remove(at: found) else {
      Issue.record("licence \(id) is not under way", sourceLocation: sourceLocation)
      return
    }
    reply(request, outcome)
  }

  var ownTeardowns = SSMSession.OwnTeardowns.none

  mutating func reply(_ request: RequestID, _ outcome: PlaybackMachine.LicenseOutcome) {
    perform(machine.licenseReplied(request, outcome, ownTeardowns: ownTeardowns, now: now))
  }

  mutating func suspend() { perform(machine.suspended()) }
  mutating func resume() { perform(machine.resumed(now: now)) }
  mutating func networkChanges() { perform(machine.networkChanged(now: now)) }

  mutating func run(until instant: Milliseconds) {
    var rings = 0
    while let at = timer, at <= instant, rings < 10_000 {
      rings += 1
      now = max(at, now)
      timer = nil
      perform(machine.timerFired(now: now))
    }
    now = max(now, instant)
  }
  mutating func pass(_ duration: Milliseconds) { run(until: now.adding(duration)) }

  private mutating func perform(_ actions: [PlaybackMachine.Action]) {
    for action in actions {
      switch action {
      case .sendSSM(let request, let call, let token):
        waiting.append(.ssm(request, call, text(token)))
        story.append("\(call) \(text(token))")
      case .sendLicense(let request, let id, let content, let session, let renewal):
        waiting.append(.license(request, id))
        let tokens = [content, session].compactMap { $0 }.map { text($0) }.joined(separator: ",")
        story.append("\(renewal ? "renewal" : "license") \(id) \(tokens)")
      case .setTimer(let at): timer = at
      case .cancelTimer: timer = nil
      case .askToken: story.append("token?")
      case .awaitToken: story.append("token awaited")
      case .askPayload: story.append("payload?")
      case .report(let report): tell(report)
      case .deliverLicense(let id, _): story.append("got \(id)")
      case .failLicense(let id, let error):
        lastError = error
        story.append(
          "failed \(id): \(UsherCoreTests.name(error.status))\(error.serviceCode == 0 ? "" : " \(error.serviceCode)")")
      case .nextMayStart: story.append("released")
      case .closed(let status, let orphanPossible):
        story.append(orphanPossible ? "closed, orphan possible" : status == .replaced ? "closed as replaced" : "closed")
      }
    }
  }

  private mutating func tell(_ report: PlaybackMachine.Report) {
    switch report {
    case .awaitsSlot(let error):
      lastError = error
      story.append("awaits a slot: \(UsherCoreTests.name(error.status))")
    case .started: story.append("started")
    case .periodRaised(let asked, let period): story.append("period raised from \(asked) to \(period)")
    case .setupError(let error):
      lastError = error
      story.append("setup error: \(UsherCoreTests.name(error.status))")
    case .heartbeatError(let error):
      lastError = error
      story.append("heartbeat error: \(UsherCoreTests.name(error.status))")
    case .teardownError(let error, _):
      lastError = error
      story.append("teardown error: \(UsherCoreTests.name(error.status))")
    case .keptAlive: story.append("kept alive")
    case .sessionless: story.append("no session")
    case .recovered: story.append("recovered")
    case .doubtful: story.append("doubtful")
    case .ended(let left): story.append(left ? "left" : "ended")
    }
  }
}
