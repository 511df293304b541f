import TestSupport
import UsherCore

/// A playback's machine with the network and the head-end around it. A `World` is a value, so the search can copy it
/// and try another event on each copy.
struct World {
  /// A request on the network. First the head-end handles the request, and later the reply arrives; other events may
  /// happen between the two.
  struct Request {
    enum Kind {
      case ssm(SSMSession.Call)
      case license(LicenseID, isRenewal: Bool)
    }
    let id: RequestID
    let kind: Kind
    let token: Token?
    /// The reply; set when the head-end has handled the request.
    var outcome: Outcome?

    var isSetup: Bool {
      if case .ssm(.setup) = kind { return true }
      return false
    }

    /// Whether this is a licence request without session token, which may open a session.
    var mayOpen: Bool {
      if case .license = kind { return token == nil }
      return false
    }

    /// The session token in the reply; nil if the head-end has not handled the request or the reply has no token.
    var tokenInReply: Token? {
      guard case .fields(let fields) = outcome else { return nil }
      return fields.token.flatMap { Token($0) }
    }

    var isTeardown: Bool {
      if case .ssm(.teardown) = kind { return true }
      return false
    }
  }
  enum Outcome {
    case fields(SessionFields)
    case failure(WireFailure)
  }

  /// How many more events of each kind the search may choose.
  struct Budget {
    var licenses: Int
    var renewals: Int
    var faults: Int
    var kills: Int
    var suspends: Int
    var networks: Int
    var abandons: Int
    var closes = 1
    /// How many more set-ups the head-end may refuse because the account has too many sessions.
    var limits = 0
    /// How many more content tokens the host may give before the library asks for one.
    var tokens = 0
    /// How many more error replies may have the token of a new session.
    var spoils = 0
  }

  let setting: Setting
  var machine: PlaybackMachine
  var now: Milliseconds = 0
  var timer: Milliseconds?
  var requests: [Request] = []
  /// Licence requests whose reply has arrived, and for which the host's licence hook has not answered yet.
  var inHook: [RequestID] = []
  /// How many of the next licence replies that could open a session (SSP V2) open none, because the content needs no
  /// session.
  var freeReplies: Int
  var headEnd = HeadEnd(period: 60_000)
  var budget: Budget
  var isAskingToken = false
  var isAwaitingToken = false
  var isAskingPayload = false
  var isSuspended = false
  var isStarted = false
  var nextLicense: LicenseID = 1
  var contentTokens = 1
  var completions: [LicenseID: Int] = [:]
  var closes = 0
  var releases = 0
  var isClosed = false
  var isLeft = false
  /// Whether the playback was replacing its session when it was closed. The machine always tears this session down.
  var wasReplacing = false
  /// How many teardown requests the network has lost, or the head-end has answered with 503.
  var failedTeardowns = 0
  /// Whether the machine may have stopped waiting for replies, because the session's timer fired after the playback was
  /// closed, or while the playback replaced its session.
  var capPassed = false
  /// The first broken promise.
  var violation: String?

  init(_ setting: Setting, _ log: TransitionLog) {
    self.setting = setting
    budget = setting.budget
    freeReplies = setting.freeReplies
    headEnd.acceptsPrevious = setting.acceptsPrevious
    machine = PlaybackMachine(
      policy: Shared(setting.policy), contentToken: setting.hasToken ? Secret(Array("c1".utf8)) : nil,
      hasTokenCallback: setting.hasCallback, seed: 1)
    machine.record(in: log)
    if !setting.startsLate { start() }
    for step in setting.before { take(step) }
    budget = setting.budget
  }

  mutating func start() {
    isStarted = true
    perform(machine.start(now: now))
  }

  mutating func fail(_ text: String) { if violation == nil { violation = text } }

  mutating func perform(_ actions: [PlaybackMachine.Action]) {
    for action in actions { perform(action) }
  }

  private mutating func perform(_ action: PlaybackMachine.Action) {
    switch action {
    case .sendSSM(let id, let call, let token):
      if isClosedForGood, call != .teardown { fail("\(call) sent after the playback was closed") }
      let token = call == .setup ? nil : Token(token)
      if isLeft, !wasReplacing, call == .teardown, token.flatMap({ headEnd[$0] })?.teardownsSent == 0 {
        fail("torn down, but the host left the session to expire")
      }
      check(token, isTeardown: call == .teardown)
      requests.append(Request(id: id, kind: .ssm(call), token: token))
    case .sendLicense(let id, let license, _, let session, let isRenewal):
      if isClosedForGood { fail("a licence request sent after the playback was closed") }
      let token = session.flatMap { Token($0) }
      check(token, isTeardown: false)
      requests.append(Request(id: id, kind: .license(license, isRenewal: isRenewal), token: token))
    case .setTimer(let at): timer = at
    case .cancelTimer: timer = nil
    case .askToken: isAskingToken = true
    case .awaitToken: isAwaitingToken = true
    case .askPayload: isAskingPayload = true
    case .report(.teardownError(let error, _)):
      // The host may ask for the teardown of a session that it has left to expire, although no reply has brought the
      // session token. The error then has the status STATE, and must say that the head-end may hold the session. Every
      // other error must have a cause: a fault, a lost token, or a session that the operator ended.
      if error.status == .state ? !error.orphanPossible : failedTeardowns == 0, budget.kills == setting.budget.kills,
        !capPassed, !hasLostToken
      {
        fail("a teardown error without a fault that explains it")
      }
    case .report: break
    case .deliverLicense(let license, _), .failLicense(let license, _): complete(license)
    case .nextMayStart:
      releases += 1
      if releases > 1 { fail("released twice") }
      if isClosed, !isLeft, !capPassed, requests.contains(where: { $0.isSetup }) {
        fail("released while set-up was under way")
      }
    case .closed:
      closes += 1
      if closes > 1 { fail("reported as closed twice") }
    }
  }

  /// Whether the network has lost the reply that had the valid token of a session.
  var hasLostToken: Bool {
    headEnd.sessions.enumerated().contains { index, session in
      guard session.received > 0, !session.isNewestReceived else { return false }
      let newest = Token(.session, UInt64(index) + 1, session.generation)
      return !requests.contains { $0.tokenInReply == newest }
    }
  }

  private var isClosedForGood: Bool { closes > 0 }

  private mutating func complete(_ license: LicenseID) {
    completions[license, default: 0] += 1
    if completions[license, default: 0] > 1 { fail("licence \(license) completed twice") }
  }

  /// Checks that a request has the newest session token that the client received, and that no request follows the
  /// teardown.
  private mutating func check(_ token: Token?, isTeardown: Bool) {
    guard let token else { return }
    for violation in headEnd.clientSends(token, isTeardown: isTeardown) {
      switch violation {
      case .oldToken(let newest): fail("\(token.text) sent, but \(newest.text) is known")
      case .requestAfterTeardown: fail("\(token.text) sent after its teardown")
      case .teardownAfterItsAnswer: fail("a teardown with \(token.text) sent after its answer")
      }
    }
  }
}

/// A setting of the search: a kind of delegate, and how many events of each kind the search may choose.
struct Setting {
  let name: String
  var policy: SSPPolicy
  var hasToken = true
  var hasCallback = false
  var keySystem = KeySystem.fairPlay
  /// Whether licence replies have a session token, so that renewals keep the session alive.
  var isEnforced = false
  /// How many of the first licence replies open no session although the delegate expects a session.
  var freeReplies = 0
  /// Whether the host has a licence hook, which answers some time after the reply has arrived.
  var hasHook = false
  /// Whether the head-end also accepts the token before the newest one. If so, the head-end can issue two tokens in
  /// reply to two requests with the same token.
  var acceptsPrevious = false
  /// Whether another item plays on the player when the search begins.
  var startsLate = false
  /// Whether the token map has a content token for each licence request.
  var hasTokenMap = false
  /// The steps that happen before the search begins.
  var before: [Step] = []
  var budget = World.Budget(licenses: 2, renewals: 1, faults: 2, kills: 1, suspends: 1, networks: 1, abandons: 1)

  static func policy(_ change: (inout SSPPolicy) -> Void = { _ in }) -> SSPPolicy {
    var policy = SSPPolicy()
    policy.jitter = 0
    policy.teardownRetries = 1
    policy.failuresMax = 2
    policy.suspend = .pause
    change(&policy)
    return policy
  }

  /// Returns the same setting, but the search begins when the first licence has arrived.
  private func playing(_ steps: [Step]) -> Setting {
    Setting(
      name: "\(name), playing", policy: policy, hasToken: hasToken, hasCallback: hasCallback, keySystem: keySystem,
      isEnforced: isEnforced, before: steps,
      budget: budget)
  }

  private static let licensed: [Step] = [.license, .handle(0), .deliver(0)]

  static var all: [Setting] {
    kinds.flatMap { kind -> [Setting] in
      var steps = licensed
      if kind.policy.hasSSM, !kind.policy.opensByLicense { steps = [.handle(0), .deliver(0)] + steps }
      if !kind.hasToken, kind.policy.needsToken { steps = [.token] + steps }
      return [kind, kind.playing(steps)]
    } + special
  }

  private static func budget(
    licenses: Int = 2, renewals: Int = 0, limits: Int = 0, tokens: Int = 0, spoils: Int = 0
  ) -> World.Budget {
    World.Budget(
      licenses: licenses, renewals: renewals, faults: 1, kills: 0, suspends: 0, networks: 0, abandons: 0,
      limits: limits, tokens: tokens, spoils: spoils)
  }

  /// Settings for cases that no setting in `kinds` reaches.
  private static let special: [Setting] = [
    Setting(
      name: "SSP V1, previous token accepted", policy: policy(), isEnforced: true, acceptsPrevious: true,
      budget: budget()),
    // The licence reply is late: meanwhile the head-end has answered a heartbeat.
    Setting(
      name: "SSP V1, late licence", policy: policy(), isEnforced: true, acceptsPrevious: true,
      before: [.handle(0), .deliver(0), .license, .handle(0), .timer, .handle(1), .deliver(1)], budget: budget()),
    Setting(name: "SSP V1, too many sessions", policy: policy(), budget: budget(limits: 2)),
    Setting(name: "SSP V2, too many sessions", policy: policy { $0.opening = .license }, budget: budget(limits: 2)),
    Setting(
      name: "SSP V1, the host waits for a slot", policy: policy { $0.slotWait = 2500 }, budget: budget(limits: 3)),
    Setting(
      name: "SSP V2, the host waits for a slot",
      policy: policy {
        $0.opening = .license
        $0.slotWait = 2500
      }, budget: budget(limits: 3)),
    Setting(name: "SSP V1, another item plays", policy: policy(), startsLate: true, budget: budget()),
    Setting(
      name: "SSP V2, content without session", policy: policy { $0.opening = .license }, hasToken: false,
      freeReplies: 9, hasTokenMap: true, budget: budget(tokens: 1)),
    Setting(
      name: "SSP V2, a later licence opens the session", policy: policy { $0.opening = .license }, freeReplies: 1,
      budget: budget(licenses: 3, spoils: 1)),
    Setting(name: "SSP V1, error replies with tokens", policy: policy(), budget: budget(spoils: 1)),
    Setting(
      name: "SSP V1, licence hook", policy: policy(), isEnforced: true, hasHook: true, budget: budget(renewals: 1)),
    Setting(
      name: "SSP V2, licence hook", policy: policy { $0.opening = .license }, hasHook: true,
      budget: budget(renewals: 1, spoils: 1))
  ]

  private static let kinds: [Setting] = [
    Setting(name: "SSP V1, heartbeats", policy: policy()),
    Setting(name: "SSP V1, renewals", policy: policy(), isEnforced: true),
    Setting(name: "SSP V1, token callback", policy: policy(), hasToken: false, hasCallback: true),
    Setting(name: "SSP V1, late token", policy: policy(), hasToken: false),
    Setting(name: "SSP V2, renewals", policy: policy { $0.opening = .license }, isEnforced: true),
    Setting(name: "SSP V2, heartbeats", policy: policy { $0.opening = .license }, keySystem: .widevine),
    Setting(
      name: "customer SSM",
      policy: policy {
        $0.opening = .customer
        $0.needsToken = false
        $0.resetup = .never
      }, hasToken: false),
    Setting(name: "no session", policy: policy { $0.hasSSM = false }, hasCallback: true)
  ]
}
