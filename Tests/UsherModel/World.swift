import UsherCore

/// A playback's machine, the network and the head-end around it, as one value. Each copy can continue differently.
struct World {
  /// A request under way: the machine sends it, later the head-end handles it, later its reply arrives.
  struct Request {
    enum Kind {
      case ssm(SSMSession.Call)
      case license(LicenseID, isRenewal: Bool)
    }
    let id: RequestID
    let kind: Kind
    let token: String
    var outcome: Outcome?

    var isSetup: Bool {
      if case .ssm(.setup) = kind { return true }
      return false
    }

    /// A licence request without session token.
    var mayOpen: Bool {
      if case .license = kind { return token.isEmpty }
      return false
    }

    /// Its reply is under way and has that token.
    func brings(_ session: Int, _ generation: Int, _ world: World) -> Bool {
      guard case .fields(let fields) = outcome, let token = fields.token, let parsed = World.parse(world.text(token))
      else { return false }
      return parsed == (session, generation)
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

  /// One session at the head-end, which accepts its newest token only.
  struct Session {
    var generation = 1
    var isAlive = true
    /// The newest token that the machine received.
    var received = 0
    var tornDown = false
  }

  /// How often the host, the network and the head-end may still do what they need not do.
  struct Budget {
    var licenses: Int
    var renewals: Int
    var faults: Int
    var kills: Int
    var suspends: Int
    var networks: Int
    var abandons: Int
    var closes = 1
    /// Set-ups refused because the account has too many sessions.
    var limits = 0
    /// Content tokens that the host gives before anybody asked.
    var tokens = 0
  }

  let setting: Setting
  var machine: PlaybackMachine
  var now: Milliseconds = 0
  var timer: Milliseconds?
  var requests: [Request] = []
  var sessions: [Session] = []
  var budget: Budget
  var isAskingToken = false
  var isAwaitingToken = false
  var isAskingPayload = false
  var isSuspended = false
  var isStarted = false
  var nextLicense: LicenseID = 1
  var contentTokens = 1
  var told: [LicenseID: Int] = [:]
  var closes = 0
  var releases = 0
  var isClosed = false
  var isLeft = false
  /// Teardowns that failed in the network or at the head-end.
  var spoiltTeardowns = 0
  /// A timer fired since the playback was closed.
  var capPassed = false
  /// The first promise that the machine broke.
  var violation: String?

  init(_ setting: Setting, _ log: TransitionLog) {
    self.setting = setting
    budget = setting.budget
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

  mutating func blame(_ text: String) { if violation == nil { violation = text } }

  /// No request, timer or question is under way.
  var isQuiet: Bool { requests.isEmpty && timer == nil && !isAskingToken && !isAwaitingToken && !isAskingPayload }

  mutating func perform(_ actions: [PlaybackMachine.Action]) {
    for action in actions { perform(action) }
  }

  private mutating func perform(_ action: PlaybackMachine.Action) {
    switch action {
    case .sendSSM(let id, let call, let token):
      if isClosedForGood, call != .teardown { blame("\(call) sent after the playback was closed") }
      check(text(token), isTeardown: call == .teardown, isSetup: call == .setup)
      requests.append(Request(id: id, kind: .ssm(call), token: text(token)))
    case .sendLicense(let id, let license, _, let session, let isRenewal):
      if isClosedForGood { blame("a licence request sent after the playback was closed") }
      if let session { check(text(session), isTeardown: false, isSetup: false) }
      requests.append(
        Request(id: id, kind: .license(license, isRenewal: isRenewal), token: session.map { text($0) } ?? ""))
    case .setTimer(let at): timer = at
    case .cancelTimer: timer = nil
    case .askToken: isAskingToken = true
    case .awaitToken: isAwaitingToken = true
    case .askPayload: isAskingPayload = true
    case .report(.teardownError):
      if spoiltTeardowns == 0, budget.kills == setting.budget.kills, !capPassed, !hasLostToken {
        blame("a teardown error that nobody made")
      }
    case .report: break
    case .deliverLicense(let license, _): tell(license)
    case .failLicense(let license, _): tell(license)
    case .nextMayStart:
      releases += 1
      if releases > 1 { blame("released twice") }
      if isClosed, !isLeft, !capPassed, requests.contains(where: { $0.isSetup }) {
        blame("released while set-up was under way")
      }
    case .closed:
      closes += 1
      if closes > 1 { blame("told as closed twice") }
    }
  }

  /// The reply with a session's newest token was lost.
  var hasLostToken: Bool {
    sessions.indices.contains { index in
      let session = sessions[index]
      guard session.received > 0, session.received < session.generation else { return false }
      return !requests.contains { $0.brings(index, session.generation, self) }
    }
  }

  private var isClosedForGood: Bool { closes > 0 }

  private mutating func tell(_ license: LicenseID) {
    told[license, default: 0] += 1
    if told[license, default: 0] > 1 { blame("licence \(license) completed twice") }
  }

  /// Every session token sent is the newest one received, and none is sent after its teardown was.
  private mutating func check(_ token: String, isTeardown: Bool, isSetup: Bool) {
    guard !isSetup, let (session, generation) = World.parse(token), session < sessions.count else { return }
    if generation < sessions[session].received {
      blame("\(token) sent, but generation \(sessions[session].received) is known")
    }
    if sessions[session].tornDown, !isTeardown { blame("\(token) sent after its teardown") }
    if isTeardown { sessions[session].tornDown = true }
  }

  static func parse(_ token: String) -> (Int, Int)? {
    let parts = token.split(separator: ".")
    guard parts.count == 2, let session = Int(parts[0].dropFirst()), let generation = Int(parts[1]) else { return nil }
    return (session, generation)
  }

  func text(_ secret: Secret) -> String { secret.withBytes { String(decoding: $0, as: UTF8.self) } }
}

/// One kind of delegate, and how much may happen to it.
struct Setting {
  let name: String
  var policy: SSPPolicy
  var hasToken = true
  var hasCallback = false
  var keySystem = KeySystem.fairPlay
  /// Licence replies carry a session token: renewals keep the session alive.
  var isEnforced = false
  /// The content needs no session: licence replies open none.
  var isFree = false
  /// Another item plays on the player at first.
  var startsLate = false
  /// The token map has the content token of each licence request.
  var hasTokenMap = false
  /// The events before the search starts.
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

  /// The same setting, searched from its first licence on.
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

  private static func budget(limits: Int = 0, tokens: Int = 0) -> World.Budget {
    World.Budget(
      licenses: 2, renewals: 0, faults: 1, kills: 0, suspends: 0, networks: 0, abandons: 0, limits: limits,
      tokens: tokens)
  }

  /// What the kinds below leave out.
  private static let special: [Setting] = [
    Setting(name: "SSP V1, too many sessions", policy: policy(), budget: budget(limits: 2)),
    Setting(name: "SSP V2, too many sessions", policy: policy { $0.opening = .license }, budget: budget(limits: 2)),
    Setting(name: "SSP V1, another item plays", policy: policy(), startsLate: true, budget: budget()),
    Setting(
      name: "SSP V2, content without session", policy: policy { $0.opening = .license }, hasToken: false, isFree: true,
      hasTokenMap: true, budget: budget(tokens: 1))
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
