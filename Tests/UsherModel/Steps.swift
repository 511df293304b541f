import TestSupport
import UsherCore

/// An event that the search can choose next.
enum Step: Hashable {
  case handle(Int)
  case deliver(Int)
  case lose(Int)
  case refuse(Int)
  /// The head-end opens a session, and its reply is an error that has the session token.
  case spoil(Int)
  case hook(Int)
  case hookFails(Int)
  case timer, license, renewal, abandon
  case close(Bool)
  case tearDownLeft
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
    case .spoil: return "5xx with token"
    case .hook: return "hook answers"
    case .hookFails: return "hook fails"
    case .timer: return "timer"
    case .license: return "licence asked"
    case .renewal: return "renewal asked"
    case .abandon: return "host gives up"
    case .close(let leave): return leave ? "close, leave" : "close"
    case .tearDownLeft: return "teardown after leave"
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
  /// Returns every event that can happen next.
  var steps: [Step] {
    var all: [Step] = []
    for (index, request) in requests.enumerated() {
      if request.outcome == nil { all.append(.handle(index)) } else { all.append(.deliver(index)) }
      if budget.faults > 0 { all.append(.lose(index)) }
      if budget.faults > 0, request.outcome == nil { all.append(.refuse(index)) }
      if budget.limits > 0, request.outcome == nil, request.isSetup || request.mayOpen {
        all += [.tooMany(index, .underWay), .tooMany(index, .ended)]
      }
      if budget.spoils > 0, request.outcome == nil, request.isSetup || request.mayOpen { all.append(.spoil(index)) }
    }
    for index in inHook.indices { all += [.hook(index), .hookFails(index)] }
    if timer != nil { all.append(.timer) }
    if isAskingToken { all += [.token, .noToken] }
    if isAwaitingToken { all += [.token, .tokenWaitEnds] }
    if isAskingPayload { all += [.payload, .noPayload] }
    if machine.session.waitsForOwnTeardowns { all.append(.othersTornDown) }
    if isSuspended { all.append(.resume) }
    if machine.session.isLeft, machine.session.mayTearDownLeft { all.append(.tearDownLeft) }
    guard !isClosed else { return all }
    if !isStarted { all.append(.start) }
    if budget.tokens > 0, !isAskingToken, !isAwaitingToken { all.append(.token) }
    if budget.licenses > 0 { all.append(.license) }
    if budget.renewals > 0 { all.append(.renewal) }
    if budget.abandons > 0, nextLicense > 1 { all.append(.abandon) }
    if budget.closes > 0 { all += [.close(false), .close(true)] }
    if budget.kills > 0, headEnd.sessions.contains(where: \.isAlive) { all.append(.kill) }
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
      if requests[index].isTeardown { failedTeardowns += 1 }
      answer(requests.remove(at: index), .failure(WireFailure(.timeout, mayHaveTakenEffect: true)))
    case .refuse(let index):
      budget.faults -= 1
      if requests[index].isTeardown { failedTeardowns += 1 }
      answer(requests.remove(at: index), .failure(WireFailure(.http, httpStatus: 503)))
    case .spoil(let index):
      budget.spoils -= 1
      let request = requests.remove(at: index)
      var failure = WireFailure(.http, httpStatus: 503)
      if case .fields(let fields) = handle(request) { failure.token = fields.token }
      if let token = failure.token.flatMap({ Token($0) }) { headEnd.clientReceives(token, now: now) }
      answer(request, .failure(failure))
    case .hook(let index):
      perform(machine.licenseReplied(inHook.remove(at: index), .success(SessionFields()), now: now))
    case .hookFails(let index):
      perform(machine.licenseReplied(inHook.remove(at: index), .failure(WireFailure(.callback), .license), now: now))
    case .timer:
      now = max(now, timer ?? now)
      timer = nil
      capPassed = capPassed || isClosed || machine.phaseName.hasSuffix(", replaced")
      perform(machine.timerFired(now: now))
    case .license: ask(isRenewal: false)
    case .renewal: ask(isRenewal: true)
    case .abandon:
      budget.abandons -= 1
      if machine.abandonLicense(nextLicense - 1, now: now) { completions[nextLicense - 1, default: 0] += 1 }
    case .close(let leave):
      budget.closes -= 1
      isClosed = true
      isLeft = leave
      wasReplacing = machine.phaseName.hasSuffix(", replaced")
      perform(machine.close(leave ? .leave : .teardown, status: .closed, now: now))
      isAskingToken = false
      isAskingPayload = false
      isAwaitingToken = false
    case .tearDownLeft:
      isLeft = false
      perform(machine.tearDownLeft(now: now))
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
      headEnd.kill()
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

  /// Lets the head-end handle a request, and returns its reply.
  private mutating func handle(_ request: Request) -> Outcome {
    switch request.kind {
    case .ssm(.setup): return outcome(headEnd.handle(.setup, nil, now: now))
    case .ssm(.heartbeat): return outcome(headEnd.handle(.heartbeat(), request.token, now: now))
    case .ssm(.teardown): return outcome(headEnd.handle(.teardown, request.token, now: now))
    case .license(_, let isRenewal):
      guard setting.policy.hasSSM else { return .fields(SessionFields()) }
      if request.token == nil, setting.policy.opensByLicense, freeReplies > 0 {
        freeReplies -= 1
        return .fields(SessionFields())
      }
      let license = HeadEnd.Request.license(
        opensSession: setting.policy.opensByLicense, rotatesToken: setting.isEnforced || isRenewal)
      switch headEnd.handle(license, request.token, now: now) {
      case .refused(.unknownSession): return refusal(4005)
      case .opened(let token):
        guard case .fields(var fields) = outcome(.opened(token)) else { return refusal(1000) }
        fields.enforced = setting.isEnforced
        return .fields(fields)
      case let answer: return outcome(answer)
      }
    }
  }

  private func outcome(_ answer: HeadEnd.Answer) -> Outcome {
    if case .refused(let refusal) = answer { return self.refusal(Int64(refusal.rawValue)) }
    var fields = SessionFields()
    guard let token = answer.token else { return .fields(fields) }
    fields.isObject = true
    fields.token = token.secret
    if case .opened = answer { fields.period = .number(Double(headEnd.period) / 1000) }
    return .fields(fields)
  }

  private func refusal(_ code: Int64) -> Outcome {
    .failure(WireFailure(.refused, httpStatus: 400, serviceCode: code))
  }

  private mutating func answer(
    _ request: Request, _ outcome: Outcome, ownTeardowns: SSMSession.OwnTeardowns = .none
  ) {
    if case .fields(let fields) = outcome, let token = fields.token.flatMap({ Token($0) }) {
      headEnd.clientReceives(token, now: now)
    }
    switch (request.kind, outcome) {
    case (.ssm(let call), .fields(let fields)):
      perform(machine.ssmReplied(request.id, call, .success(fields), ownTeardowns: ownTeardowns, now: now))
    case (.ssm(let call), .failure(let failure)):
      perform(machine.ssmReplied(request.id, call, .failure(failure), ownTeardowns: ownTeardowns, now: now))
    case (.license, .fields(let fields)) where setting.hasHook:
      inHook.append(request.id)
      perform(machine.licenseReplied(request.id, .arrived(fields), now: now))
    case (.license, .fields(let fields)): perform(machine.licenseReplied(request.id, .success(fields), now: now))
    case (.license, .failure(let failure)):
      perform(machine.licenseReplied(request.id, .failure(failure, .license), ownTeardowns: ownTeardowns, now: now))
    }
  }
}

extension World {
  /// Whether the playback has ended. If the host has left the session to expire, the playback counts as ended as soon
  /// as no request is in flight; the only event that can then still happen is that the host asks for the teardown of
  /// this session.
  private var isFinished: Bool { machine.isFinished || (machine.session.isLeft && requests.isEmpty) }

  /// Closes the playback, and delivers all requests and replies without faults. Records a violation if any session or
  /// request is left after this.
  mutating func drain() {
    budget = Budget(licenses: 0, renewals: 0, faults: 0, kills: 0, suspends: 0, networks: 0, abandons: 0, closes: 0)
    if !isClosed { take(.close(false)) }
    var left = 200
    while !isFinished, left > 0, violation == nil {
      left -= 1
      guard let next = steps.first else { break }
      take(next)
    }
    if !isFinished { return fail("closed, but never finished: a dead state") }
    if closes != 1 { fail("finished, but reported as closed \(closes) times") }
    for license in 1..<nextLicense where completions[license] != 1 {
      fail("licence \(license) was completed \(completions[license] ?? 0) times")
    }
    // If all retries of a teardown have failed, the library may leave the session to expire.
    guard !isLeft, failedTeardowns <= Int(setting.policy.teardownRetries) else { return }
    // The client can end a session only if it has received the newest token of the session, so check only these
    // sessions.
    for session in headEnd.alive where session.isNewestReceived {
      fail("a session of the closed playback is held at the head-end, and we had its newest token")
    }
  }
}
