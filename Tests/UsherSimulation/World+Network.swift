import TestSupport

@testable import UsherCore
@testable import UsherEngine

/// One request on the simulated network.
final class Call {
  let route: Route
  let tokens: [Token]
  let play: Play?
  let isRenewal: Bool
  let number: UInt64
  /// The time at which the engine chose the token.
  let askedAt: Milliseconds
  /// Whether the request may have waited in the engine's queue after `askedAt`. Another token may have replaced its
  /// token in that time.
  let mayHaveWaited: Bool
  /// Whether the head-end has received the request.
  var hasArrived = false
  /// Whether the engine has cancelled the request, although the bytes of the request still reach the head-end.
  var isCancelled = false
  var reply: Reply?
  var fault: Fault?
  var body: Secret?
  var outcome: HTTPOutcome?

  init(
    _ route: Route, _ tokens: [Token], _ play: Play?, isRenewal: Bool, number: UInt64, askedAt: Milliseconds,
    mayHaveWaited: Bool
  ) {
    self.route = route
    self.tokens = tokens
    self.play = play
    self.isRenewal = isRenewal
    self.number = number
    self.askedAt = askedAt
    self.mayHaveWaited = mayHaveWaited
  }

  var session: Token? { tokens.last { $0.kind == .session } }
  var text: String { "\(route) \(tokens.map(\.text).joined(separator: ","))" }
}

extension World {
  // MARK: The engine's side

  func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool) {
    guard !isOver, let engine, let transfer = engine.requests.transfers[id] else { return }
    let last = request.endpoint.url.dropLast().last ?? 0
    var playback: PlaybackID?
    switch transfer.purpose {
    case .ssm(let id, _, _), .license(let id, _, _), .load(let id, _, _): playback = id
    case .certificate, .recovery, .connection: break
    }
    guard let route = Route(rawValue: last) else { return fail("route", "a request to an unknown URL") }
    let play = playback.flatMap { plays[$0] }
    let key = (play?.id ?? 0) &* 256 &+ UInt64(route.rawValue)
    let number = sent[key, default: 0]
    sent[key] = number + 1
    let call = Call(
      route, Token.all(in: request.headers), play, isRenewal: route == .renewal || route == .widevineRenewal,
      number: number, askedAt: transfer.askedAt,
      mayHaveWaited: story.setting.perOrigin < 64)
    if route == .entitlement { call.body = request.body }
    coverage.requests[Int(route.rawValue)] += 1
    log("→ \(call.text)\(play.map { " of playback \($0.id)" } ?? "")")
    running[id] = call
    judge(call)
    network.add(now + latency(call, 1), id)
  }

  func cancel(_ id: TransferID) -> Bool {
    guard let call = running[id] else { return false }
    call.play?.sideInput = .requestTimedOut
    log("  cancelled: \(call.text)")
    if let index = arrived.firstIndex(where: { $0.id == id }) {
      arrived.remove(at: index)
      running[id] = nil
      // The reply to the cancelled request has already arrived in the socket. The engine cancels a request to the
      // session manager or a licence server only after a time-out, and the engine must read the sockets before it
      // handles time-outs. (It also cancels requests of a resource loader when the host asks for this; that is
      // allowed.)
      if call.route.isSSM || call.route.isLicense {
        fail("late thread", "\(call.text) was cancelled, but its reply lay in the socket")
      }
      return true
    }
    if call.hasArrived {
      running[id] = nil
      return true
    }
    // The bytes of a cancelled request may still reach the head-end. In this simulation they reach it for about half of
    // the cancelled requests.
    guard chance(call, 7) % 2 == 0 else {
      running[id] = nil
      return false
    }
    call.isCancelled = true
    return true
  }

  /// Returns one reply at a time, so that the checks know which replies the library had received when it sent a
  /// request.
  func takeFinished() -> [FinishedTransfer] {
    if let engine, hasDelivered { observeReply(engine) }
    guard !readable.isEmpty else { return [] }
    let reply = readable.removeFirst()
    hasDelivered = true
    delivered(reply.call, reply.outcome)
    return [FinishedTransfer(id: reply.id, outcome: reply.outcome)]
  }

  func read() -> Bool {
    for reply in arrived { running[reply.id] = nil }
    readable += arrived
    arrived = []
    return true
  }

  func networkChanged() {}
  func isReceived(_ id: TransferID) -> Bool { false }
  func shutDown() {}

  // MARK: The network

  /// Returns a random number for one purpose in one request. The number does not depend on other requests.
  private func chance(_ call: Call, _ use: UInt64) -> UInt64 {
    mixed(story.seed, call.play?.id ?? 0, UInt64(call.route.rawValue) &* 8 &+ use, call.number)
  }

  private func latency(_ call: Call, _ leg: UInt64) -> Milliseconds {
    let most = story.setting.latency
    let chance = chance(call, leg)
    // If the story has faults, the network delays one request or reply in 61 by up to 4 s.
    return most == 0
      ? 0 : chance % 61 == 0 && !story.setting.isFaultless ? chance / 61 % 4000 : chance / 61 % (most + 1)
  }

  func networkDue(_ id: TransferID) {
    guard let call = running[id] else { return }
    if !call.hasArrived { return arrive(id, call) }
    guard !call.isCancelled, let outcome = call.outcome else { return }
    if now < downUntil, call.fault == nil {
      // The network lost the reply.
      call.fault = .resetAfter
      coverage.faults[Int(Fault.resetAfter.rawValue)] += 1
      return finish(id, call, .failure(WireFailure(.transport, mayHaveTakenEffect: true)))
    }
    finish(id, call, outcome)
  }

  private func finish(_ id: TransferID, _ call: Call, _ outcome: HTTPOutcome) {
    arrived.append((id, call, outcome))
  }

  private func arrive(_ id: TransferID, _ call: Call) {
    call.hasArrived = true
    var fault: Fault?
    if now < downUntil { fault = chance(call, 3) % 2 == 0 ? .refused : .muteBefore }
    for one in faults where fault == nil && one.until > now && (one.route == nil || one.route == call.route) {
      if chance(call, 4) % one.share == 0 { fault = one.fault }
    }
    call.fault = fault
    if let fault { coverage.faults[Int(fault.rawValue)] += 1 }
    if fault == nil || fault?.takesEffect == true || (fault == .empty && call.route != .heartbeat) {
      call.reply = handle(call)
    }
    if fault == .empty, call.route == .heartbeat {
      call.reply = Reply(headEnd.extendLease(call.session, now: now), period: nil)
    }
    log("  \(call.text): \(fault.map { "\($0)" } ?? "\(call.reply.map { $0.isGood ? "good" : "refused" } ?? "")")")
    if call.isCancelled {
      running[id] = nil
      return
    }
    guard let outcome = outcome(call, fault) else { return }
    call.outcome = outcome
    var delay = latency(call, 2)
    if fault == .late { delay += 2000 + chance(call, 5) % 20_000 }
    network.add(now + delay, id)
  }

  private func handle(_ call: Call) -> Reply {
    guard let play = call.play else { return .done }
    let update = story.setting.periodUpdates && call.number % 5 == 4 ? story.setting.period + 20_000 : nil
    let client = HeadEnd.Client(playback: play.id, account: play.account)
    func answer(_ request: HeadEnd.Request) -> HeadEnd.Answer {
      headEnd.handle(request, call.session, of: client, now: now)
    }
    switch call.route {
    case .setup: return Reply(answer(.setup), period: headEnd.period)
    case .heartbeat: return Reply(answer(.heartbeat(newPeriod: update)), period: update)
    case .teardown: return Reply(answer(.teardown), period: nil)
    case .license, .renewal, .widevineRenewal:
      guard play.kind.hasServerSession else { return .license(play.kind.keySystem, nil, isEnforced: nil) }
      let answer = answer(
        .license(
          opensSession: play.kind.isV2 && call.route == .license,
          rotatesToken: play.kind.isEnforced || call.route == .widevineRenewal))
      return licenseReply(answer, call.route, play.kind)
    case .certificate, .entitlement, .key: return .done
    }
  }

  private func licenseReply(_ answer: HeadEnd.Answer, _ route: Route, _ kind: Kind) -> Reply {
    switch answer {
    case .opened(let token): return .license(kind.keySystem, token, isEnforced: kind == .v2Renewals)
    case .renewed(let token) where route == .widevineRenewal: return .license(.widevine, token, isEnforced: nil)
    case .renewed(let token): return .license(kind.keySystem, token, isEnforced: true)
    case .accepted: return .license(kind.keySystem, nil, isEnforced: kind == .widevine)
    case .refused: return Reply(answer, period: nil)
    }
  }

  /// Returns the reply that the network delivers for a request; nil if it delivers no reply.
  private func outcome(_ call: Call, _ fault: Fault?) -> HTTPOutcome? {
    switch fault {
    case nil, .late?: return .response(response(call))
    case .refused?: return .failure(WireFailure(.transport))
    case .tls?: return .failure(WireFailure(.tls))
    case .resetBefore?, .resetAfter?: return .failure(WireFailure(.transport, mayHaveTakenEffect: true))
    case .muteBefore?, .muteAfter?: return nil
    case .busy?: return .response(HTTPResponse(status: 503, body: Secret([])))
    case .busyRetryAfter?:
      return .response(HTTPResponse(status: 503, body: Secret([]), retryAfter: 1000 + chance(call, 6) % 60 * 1000))
    case .tooMany?:
      return .response(HTTPResponse(status: 429, body: Secret([]), retryAfter: chance(call, 6) % 30 * 1000))
    case .gatewayBefore?, .gatewayAfter?:
      return .response(HTTPResponse(status: call.number % 2 == 0 ? 502 : 504, body: Secret([])))
    case .forbidden?: return .response(HTTPResponse(status: call.number % 2 == 0 ? 401 : 403, body: Secret([])))
    case .notFound?: return .response(HTTPResponse(status: 404, body: secret("nothing here")))
    case .redirect?: return .response(HTTPResponse(status: 302, body: Secret([])))
    case .serviceError?:
      return .response(HTTPResponse(status: 400, body: secret("{\"errorCode\":1003,\"message\":\"no\"}")))
    case .page?: return .response(HTTPResponse(status: status(call), body: secret("<html>sign in</html>")))
    case .brokenJSON?: return .response(HTTPResponse(status: status(call), body: secret("{\"sessionTok")))
    case .empty?: return .response(HTTPResponse(status: status(call), body: Secret([])))
    case .tooLarge?: return .failure(WireFailure(.tooLarge, mayHaveTakenEffect: true))
    }
  }

  private func status(_ call: Call) -> Int32 {
    if case .refusal(let status, _)? = call.reply { return status }
    return 200
  }

  private func response(_ call: Call) -> HTTPResponse {
    switch call.route {
    case .certificate: return HTTPResponse(status: 200, body: Secret([0x30, 0x03, 0x02, 0x01, 0x05]))
    case .key: return HTTPResponse(status: 200, body: Secret((0..<16).map { $0 &* 37 &+ 128 }))
    case .entitlement: return HTTPResponse(status: 200, body: entitlement(call.body))
    default: return (call.reply ?? .done).response
    }
  }

  /// Returns a reply of the entitlement server that allows the content.
  private func entitlement(_ question: Secret?) -> Secret {
    let start = Array("{\"messageID\":\"".utf8)
    let id = question?.withBytes { body in Array(body.dropFirst(start.count).prefix { $0 != 0x22 }) } ?? []
    let rest =
      "\",\"version\":1,\"isAllowed\":true,\"epTokenURL\":\"https://keys.example/t?ExpressPlayToken=0123456789&x=K\"}"
    return Secret(start + id + Array(rest.utf8))
  }

  /// Records that the library receives a reply now.
  private func delivered(_ call: Call, _ outcome: HTTPOutcome) {
    let isReadable = call.fault == nil || call.fault == .late
    let isGood = isReadable && call.reply?.isGood == true
    let good = "good\(call.reply?.token.map { ", " + $0.text } ?? "")"
    log("← \(call.text): \(isGood ? good : call.fault.map { "\($0)" } ?? "refused")")
    coverage.replies += 1
    if isGood, let token = call.reply?.token { headEnd.clientReceives(token, now: now) }
    if call.route == .teardown, let token = call.session, isReadable || isFinal(call) {
      headEnd.clientReceivesTeardownAnswer(token)
    }
    if call.route == .heartbeat || call.isRenewal, case .response(let response) = outcome {
      call.play?.pauseUntil = response.retryAfter.map { now + $0 } ?? 0
    }
    if call.isRenewal, isGood, call.play?.lastBeat != nil { call.play?.lastBeat = now }
    if let input = input(call, outcome, isGood) { subject = (call.play, input) }
  }

  /// Whether a fault changed the reply into a final error, so that the library does not send the request again.
  private func isFinal(_ call: Call) -> Bool {
    switch call.fault {
    case .forbidden?, .notFound?, .serviceError?: return true
    default: return false
    }
  }

  private func input(_ call: Call, _ outcome: HTTPOutcome, _ isGood: Bool) -> Input? {
    guard call.play != nil else { return nil }
    let isDenied = !isGood && (call.fault == nil || call.fault == .late || isFinal(call))
    switch call.route {
    case .setup: return isGood ? .setupGood : isDenied ? .setupDenied : .setupFailed
    case .heartbeat: return isGood ? .beatGood : isDenied ? .beatDenied : .beatFailed
    case .teardown: return isGood ? .teardownGood : isDenied ? .teardownDenied : .teardownFailed
    case .license: return isGood ? .licenceGood : isDenied ? .licenceDenied : .licenceFailed
    case .renewal, .widevineRenewal: return isGood ? .renewalGood : isDenied ? .renewalDenied : .renewalFailed
    case .certificate, .entitlement, .key: return nil
    }
  }
}
