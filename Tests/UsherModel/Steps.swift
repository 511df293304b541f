import UsherCore

/// Something that can happen next.
enum Step: Hashable {
  case handle(Int)
  case deliver(Int)
  case lose(Int)
  case refuse(Int)
  case timer, license, renewal, abandon
  case close(Bool)
  case token, noToken, tokenWaitEnds
  case payload, noPayload
  case kill, suspend, resume, network, othersTornDown
  case tooMany(Int, SSMSession.OwnTeardowns)
  case start

  var name: String {
    switch self {
    case .handle: return "handled"
    case .deliver: return "reply"
    case .lose: return "lost"
    case .refuse: return "5xx"
    case .timer: return "timer"
    case .license: return "licence asked"
    case .renewal: return "renewal asked"
    case .abandon: return "host gives up"
    case .close(let leave): return leave ? "close, leave" : "close"
    case .token: return "token"
    case .noToken: return "no token"
    case .tokenWaitEnds: return "token wait ends"
    case .payload: return "payload"
    case .noPayload: return "no payload"
    case .kill: return "killed"
    case .suspend: return "suspend"
    case .resume: return "resume"
    case .network: return "network back"
    case .othersTornDown: return "others torn down"
    case .tooMany(_, let others):
      return others == .underWay ? "too many, teardown under way" : "too many, teardown ended"
    case .start: return "start"
    }
  }
}

extension World {
  /// Everything that can happen next.
  var steps: [Step] {
    var all: [Step] = []
    for (index, request) in requests.enumerated() {
      if request.outcome == nil { all.append(.handle(index)) } else { all.append(.deliver(index)) }
      if budget.faults > 0 { all.append(.lose(index)) }
      if budget.faults > 0, request.outcome == nil { all.append(.refuse(index)) }
      if budget.limits > 0, request.outcome == nil, request.isSetup || request.mayOpen {
        all += [.tooMany(index, .underWay), .tooMany(index, .ended)]
      }
    }
    if timer != nil { all.append(.timer) }
    if isAskingToken { all += [.token, .noToken] }
    if isAwaitingToken { all += [.token, .tokenWaitEnds] }
    if isAskingPayload { all += [.payload, .noPayload] }
    if machine.session.waitsForOwnTeardowns { all.append(.othersTornDown) }
    if isSuspended { all.append(.resume) }
    guard !isClosed else { return all }
    if !isStarted { all.append(.start) }
    if budget.tokens > 0, !isAskingToken, !isAwaitingToken { all.append(.token) }
    if budget.licenses > 0 { all.append(.license) }
    if budget.renewals > 0 { all.append(.renewal) }
    if budget.abandons > 0, nextLicense > 1 { all.append(.abandon) }
    if budget.closes > 0 { all += [.close(false), .close(true)] }
    if budget.kills > 0, sessions.contains(where: { $0.isAlive }) { all.append(.kill) }
    if budget.suspends > 0, !isSuspended { all.append(.suspend) }
    if budget.networks > 0 { all.append(.network) }
    return all
  }

  mutating func take(_ step: Step) {
    now += 1
    switch step {
    case .handle(let index): requests[index].outcome = handle(requests[index])
    case .deliver(let index):
      let request = requests.remove(at: index)
      if let outcome = request.outcome { answer(request, outcome) }
    case .lose(let index):
      budget.faults -= 1
      if requests[index].isTeardown { spoiltTeardowns += 1 }
      answer(requests.remove(at: index), .failure(WireFailure(.timeout, mayHaveTakenEffect: true)))
    case .refuse(let index):
      budget.faults -= 1
      if requests[index].isTeardown { spoiltTeardowns += 1 }
      answer(requests.remove(at: index), .failure(WireFailure(.http, httpStatus: 503)))
    case .timer:
      now = max(now, timer ?? now)
      timer = nil
      capPassed = capPassed || isClosed
      perform(machine.timerFired(now: now))
    case .license: ask(isRenewal: false)
    case .renewal: ask(isRenewal: true)
    case .abandon:
      budget.abandons -= 1
      if machine.abandonLicense(nextLicense - 1, now: now) { told[nextLicense - 1, default: 0] += 1 }
    case .close(let leave):
      budget.closes -= 1
      isClosed = true
      isLeft = leave
      perform(machine.close(leave ? .leave : .teardown, status: .closed, now: now))
      isAskingToken = false
      isAskingPayload = false
      isAwaitingToken = false
    case .token: token()
    case .noToken:
      isAskingToken = false
      perform(machine.tokenAnswered(nil, now: now))
    case .tokenWaitEnds:
      isAwaitingToken = false
      perform(machine.tokenWaitEnded(now: now))
    case .payload:
      isAskingPayload = false
      request(isRenewal: true)
    case .noPayload:
      isAskingPayload = false
      perform(machine.payloadFailed(.callback, now: now))
    case .kill:
      budget.kills -= 1
      for index in sessions.indices { sessions[index].isAlive = false }
    case .suspend:
      budget.suspends -= 1
      isSuspended = true
      perform(machine.suspended())
    case .resume:
      isSuspended = false
      perform(machine.resumed(now: now))
    case .network:
      budget.networks -= 1
      perform(machine.networkChanged(now: now))
    case .othersTornDown: perform(machine.ownTeardownsEnded(now: now))
    case .tooMany(let index, let others):
      budget.limits -= 1
      let failure = WireFailure(.refused, httpStatus: 400, serviceCode: SSMCode.tooManySessions)
      answer(requests.remove(at: index), .failure(failure), ownTeardowns: others)
    case .start: start()
    }
  }

  private mutating func ask(isRenewal: Bool) {
    if isRenewal { budget.renewals -= 1 } else { budget.licenses -= 1 }
    request(isRenewal: isRenewal)
  }

  private mutating func request(isRenewal: Bool) {
    let id = nextLicense
    nextLicense += 1
    let token = setting.hasTokenMap ? Secret(Array("c0".utf8)) : nil
    perform(
      machine.requestLicense(
        id, keySystem: setting.keySystem, isRenewal: isRenewal, token: token, isForPlayingItem: token == nil, now: now))
  }

  private mutating func token() {
    contentTokens += 1
    let token = Secret(Array("c\(contentTokens)".utf8))
    if isAskingToken {
      isAskingToken = false
      perform(machine.tokenAnswered(token, now: now))
    } else {
      if !isAwaitingToken { budget.tokens -= 1 }
      isAwaitingToken = false
      perform(machine.tokenGiven(token, now: now) ?? [])
    }
  }

  /// The head-end handles the request: its reply.
  private mutating func handle(_ request: Request) -> Outcome {
    switch request.kind {
    case .ssm(.setup): return .fields(open(fields: true))
    case .ssm(.heartbeat): return rotate(request.token)
    case .ssm(.teardown):
      guard let session = live(request.token) else { return unknown() }
      sessions[session].isAlive = false
      return .fields(SessionFields())
    case .license(_, let isRenewal):
      guard setting.policy.hasSSM else { return .fields(SessionFields()) }
      if request.token.isEmpty {
        guard setting.policy.opensByLicense else {
          return .failure(WireFailure(.refused, httpStatus: 400, serviceCode: 4001))
        }
        if setting.isFree { return .fields(SessionFields()) }
        var fields = open(fields: true)
        fields.enforced = setting.isEnforced
        return .fields(fields)
      }
      guard live(request.token) != nil else {
        return .failure(WireFailure(.refused, httpStatus: 400, serviceCode: 4005))
      }
      return setting.isEnforced || isRenewal ? rotate(request.token) : .fields(SessionFields())
    }
  }

  private mutating func open(fields: Bool) -> SessionFields {
    sessions.append(Session())
    var made = SessionFields()
    made.isObject = true
    made.token = Secret(Array("s\(sessions.count - 1).1".utf8))
    made.period = .number(60)
    return made
  }

  private mutating func rotate(_ token: String) -> Outcome {
    guard let session = live(token) else { return unknown() }
    sessions[session].generation += 1
    var fields = SessionFields()
    fields.isObject = true
    fields.token = Secret(Array("s\(session).\(sessions[session].generation)".utf8))
    return .fields(fields)
  }

  private func live(_ token: String) -> Int? {
    guard let (session, generation) = World.parse(token), session < sessions.count, sessions[session].isAlive else {
      return nil
    }
    return sessions[session].generation == generation ? session : nil
  }

  private func unknown() -> Outcome { .failure(WireFailure(.refused, httpStatus: 400, serviceCode: 1006)) }

  private mutating func answer(
    _ request: Request, _ outcome: Outcome, ownTeardowns: SSMSession.OwnTeardowns = .none
  ) {
    if case .fields(let fields) = outcome, let token = fields.token,
      let (session, generation) = World.parse(text(token))
    {
      sessions[session].received = max(sessions[session].received, generation)
    }
    switch (request.kind, outcome) {
    case (.ssm(let call), .fields(let fields)):
      perform(machine.ssmReplied(request.id, call, .success(fields), ownTeardowns: ownTeardowns, now: now))
    case (.ssm(let call), .failure(let failure)):
      perform(machine.ssmReplied(request.id, call, .failure(failure), ownTeardowns: ownTeardowns, now: now))
    case (.license, .fields(let fields)): perform(machine.licenseReplied(request.id, .success(fields), now: now))
    case (.license, .failure(let failure)):
      perform(machine.licenseReplied(request.id, .failure(failure, .license), ownTeardowns: ownTeardowns, now: now))
    }
  }
}

extension World {
  /// Closes the playback and lets all that is under way end, without further faults; then checks the promises.
  mutating func drain() {
    budget = Budget(licenses: 0, renewals: 0, faults: 0, kills: 0, suspends: 0, networks: 0, abandons: 0, closes: 0)
    if !isClosed { take(.close(false)) }
    var left = 200
    while !machine.isFinished, left > 0, violation == nil {
      left -= 1
      guard let next = steps.first else { break }
      take(next)
    }
    if !machine.isFinished { return blame("closed, but never finished: a dead state") }
    if closes != 1 { blame("finished, but told as closed \(closes) times") }
    for license in 1..<nextLicense where told[license] != 1 {
      blame("licence \(license) was completed \(told[license] ?? 0) times")
    }
    // The library may give up after its retries.
    guard !isLeft, spoiltTeardowns <= Int(setting.policy.teardownRetries) else { return }
    for (index, session) in sessions.enumerated() where session.isAlive && session.received > 0 {
      // Where the reply with a new token was lost, nobody has the newest one.
      if session.received == session.generation {
        blame("session \(index) is held at the head-end, and we had its newest token")
      }
    }
  }
}
