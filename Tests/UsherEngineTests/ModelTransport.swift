import Testing

@testable import UsherCore
@testable import UsherEngine

/// A transport without sockets: the engine's requests go through a virtual network to the model of the head-end.
/// The test moves the network's clock together with the engine's.
final class ModelTransport: Transport {
  struct Call {
    let time: Milliseconds
    let path: String
    /// The tokens in the authorisation header.
    let tokens: [String]
    /// Whether the engine asked for a new connection.
    let isFresh: Bool
    var sessionToken: Token? { tokens.last.flatMap { Token($0.utf8) } }
  }
  /// A reply on the network. `answer` is what the head-end answered; nil if the network made the reply itself or
  /// damaged it.
  private struct Reply {
    let transfer: FinishedTransfer
    let call: Call
    let answer: HeadEnd.Answer?
  }
  /// A fault that the network makes in one request.
  enum Fault { case none, unreachable, unavailable, lostReply, garbage, mute }

  private struct Event {
    let at: Milliseconds
    let order: Int
    let act: () -> Void
  }

  private let monitor = Monitor()
  private var isWoken = false
  private var isWaiting = false
  private var epoch = 0
  /// The replies that have arrived in the sockets. The engine has read the first `readCount` of these replies.
  private var finished: [Reply] = []
  private var readCount = 0
  private var isLate = false
  /// How many more calls of `read` return without reading a reply.
  private var partsLeft = 0
  /// One element for each call of `read`: how many requests the engine had started before this call.
  private(set) var reads: [Int] = []
  /// How many times the engine has called `networkChanged`.
  private(set) var networkChanges = 0
  private var events: [Event] = []
  private var order = 0
  private var running: Set<TransferID> = []
  private var now: Milliseconds = 0

  private var headEnd: HeadEnd
  /// Whether licence replies have a session token.
  private let isEnforced: Bool
  private var dice: Dice
  private var latencyMost: Milliseconds
  private let faults: [Fault]
  /// How rare faults are: on average one of this many requests meets a fault. 0: no request meets a fault.
  private let faultRate: UInt64
  private var teardownFaults: [Token: Int] = [:]
  /// Whether the network loses the first packet of each connection, so that no connection is ever established.
  private var isSilent = false
  /// How long it takes to open a connection; 0: the engine sends requests at once.
  private var connectTime: Milliseconds = 0
  /// The requests that wait for a connection.
  private var connecting: [TransferID: (request: HTTPRequest, isFresh: Bool)] = [:]
  private var connections: [Milliseconds] = []
  private(set) var journal: [Call] = []
  private(set) var complaints: [String] = []
  private(set) var mostAtOnce = 0

  init(
    _ headEnd: HeadEnd = HeadEnd(), isEnforced: Bool = false, seed: UInt64, latencyMost: Milliseconds = 100,
    faults: [Fault] = [], faultRate: UInt64 = 0
  ) {
    self.headEnd = headEnd
    self.isEnforced = isEnforced
    dice = Dice(seed)
    self.latencyMost = latencyMost
    self.faults = faults
    self.faultRate = faultRate
  }

  // MARK: The engine's side

  func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool) {
    monitor.locked {
      running.insert(id)
      mostAtOnce = max(mostAtOnce, running.count)
      connecting[id] = (request, isFresh)
      connect(id)
    }
  }

  func isConnecting(_ id: TransferID) -> Bool { monitor.locked { connecting[id] != nil } }
  func connectAgain(_ id: TransferID, isNetworkBack: Bool) { monitor.locked { connect(id) } }

  func cancel(_ id: TransferID) -> Bool {
    monitor.locked { running.remove(id) != nil && connecting.removeValue(forKey: id) == nil }
  }

  func wait(until instant: Int64?) -> Bool {
    monitor.locked {
      isWaiting = true
      epoch += 1
      monitor.broadcast()
      while !isWoken && (finished.isEmpty || isLate) { monitor.wait() }
      isWoken = false
      isWaiting = false
      if !isLate { readCount = finished.count }
      return false
    }
  }

  func read() -> Bool {
    monitor.locked {
      reads.append(journal.count)
      partsLeft -= 1
      if partsLeft < 0 { readCount = finished.count }
      return partsLeft < 0
    }
  }

  func wake() {
    monitor.locked {
      isWoken = true
      monitor.broadcast()
    }
  }

  /// Returns one reply at a time, so that the model knows which replies the client has when the client sends a request.
  func takeFinished() -> [FinishedTransfer] {
    monitor.locked {
      while readCount > 0 {
        let reply = finished.removeFirst()
        readCount -= 1
        guard running.remove(reply.transfer.id) != nil else { continue }
        deliver(reply)
        return [reply.transfer]
      }
      return []
    }
  }

  func networkChanged() { monitor.locked { networkChanges += 1 } }
  func isReceived(_ id: TransferID) -> Bool { false }
  /// Removes the events. The transport and its events refer to each other, so without this call neither is ever freed.
  func shutDown() { monitor.locked { events = [] } }

  // MARK: The network (the caller must hold the lock)

  private func after(_ delay: Milliseconds, _ act: @escaping () -> Void) {
    order += 1
    events.append(Event(at: now + delay, order: order, act: act))
  }

  private func connect(_ id: TransferID) {
    connections.append(now)
    guard !isSilent else { return }
    guard connectTime > 0 else { return send(id) }
    after(connectTime) { [self] in send(id) }
  }

  /// Sends the request over the first connection that is established.
  private func send(_ id: TransferID) {
    guard let (request, isFresh) = connecting.removeValue(forKey: id) else { return }
    let call = Call(time: now, path: Self.path(request), tokens: Self.tokens(request), isFresh: isFresh)
    journal.append(call)
    judge(call)
    after(dice.upTo(latencyMost)) { [self] in arrive(id, call) }
  }

  private func arrive(_ id: TransferID, _ call: Call) {
    var fault = Fault.none
    if faultRate > 0, dice.one(in: faultRate) { fault = dice.pick(faults) }
    if call.path == "teardown", let token = call.sessionToken {
      // The library retries a teardown at most three times. So the network makes at most two attempts of each teardown
      // fail.
      if fault != .none { teardownFaults[token, default: 0] += 1 }
      if teardownFaults[token, default: 0] > 2 { fault = .none }
      if fault == .mute { fault = .unreachable }
    }
    let delay = dice.upTo(latencyMost)
    switch fault {
    case .none:
      let answer = handle(call)
      reply(id, call, .response(response(answer, call)), answer, after: delay)
    case .unreachable: reply(id, call, .failure(WireFailure(.transport)), after: delay)
    case .unavailable:
      let response = HTTPResponse(status: 503, body: secret("busy"), retryAfter: dice.one(in: 2) ? 2000 : nil)
      reply(id, call, .response(response), after: delay)
    case .lostReply:
      _ = handle(call)
      reply(id, call, .failure(WireFailure(.transport, mayHaveTakenEffect: true)), after: delay)
    case .garbage:
      _ = handle(call)
      reply(id, call, .response(HTTPResponse(status: 200, body: secret("<html>"))), after: delay)
    case .mute: break
    }
  }

  private func handle(_ call: Call) -> HeadEnd.Answer {
    switch call.path {
    case "setup": return headEnd.handle(.setup, nil, of: Self.client(call), now: now)
    case "heartbeat": return headEnd.handle(.heartbeat(), call.sessionToken, now: now)
    case "teardown": return headEnd.handle(.teardown, call.sessionToken, now: now)
    default:
      return headEnd.handle(
        .license(opensSession: false, rotatesToken: isEnforced), call.sessionToken, now: now)
    }
  }

  /// Finds out from the content token "account/playback/number" which client sent the request. The character code of
  /// the account's first letter is the number of the account.
  private static func client(_ call: Call) -> HeadEnd.Client {
    let parts = (call.tokens.first ?? "").split(separator: "/")
    return HeadEnd.Client(
      playback: parts.dropFirst().first.flatMap { UInt64($0) } ?? 0, account: UInt64(parts.first?.utf8.first ?? 0))
  }

  private func response(_ answer: HeadEnd.Answer, _ call: Call) -> HTTPResponse {
    var fields = call.path.hasPrefix("licenses") ? ["\"CkcMessage\":\"+/v7+/v7+/v7+/v7+/v7+/v7\""] : []
    if let token = answer.token { fields.append("\"sessionToken\":\"\(token.text)\"") }
    switch answer {
    case .opened: fields.append("\"heartbeat\":\(headEnd.period / 1000)")
    case .renewed, .accepted: break
    case .refused(let refusal):
      let body = "{\"errorCode\":\(refusal.rawValue),\"message\":\"refused\"}"
      return HTTPResponse(status: 400, body: secret(body))
    }
    return HTTPResponse(status: 200, body: secret("{\(fields.joined(separator: ","))}"))
  }

  private func reply(
    _ id: TransferID, _ call: Call, _ outcome: HTTPOutcome, _ answer: HeadEnd.Answer? = nil, after delay: Milliseconds
  ) {
    after(delay) { [self] in
      guard running.contains(id) else { return }
      finished.append(Reply(transfer: FinishedTransfer(id: id, outcome: outcome), call: call, answer: answer))
      monitor.broadcast()
    }
  }

  /// Records that the client receives a reply now.
  private func deliver(_ reply: Reply) {
    guard let answer = reply.answer else { return }
    if reply.call.path == "teardown", let token = reply.call.sessionToken {
      headEnd.clientReceivesTeardownAnswer(token)
    }
    if let token = answer.token { headEnd.clientReceives(token, now: now) }
  }

  /// Records a violation if the client must not send this request.
  private func judge(_ call: Call) {
    guard call.path != "setup", let token = call.sessionToken else { return }
    for violation in headEnd.clientSends(token, isTeardown: call.path == "teardown") {
      complaints.append("\(call.time): \(call.path) with \(token.text): \(violation)")
    }
  }

  private static func path(_ request: HTTPRequest) -> String {
    let url = String(decoding: request.endpoint.url.dropLast(), as: UTF8.self)
    return String(url.split(separator: "/").last ?? "")
  }

  private static func tokens(_ request: HTTPRequest) -> [String] {
    let name = "nv-authorizations: "
    for header in request.headers {
      let line = text(header)
      if line.hasPrefix(name) {
        return line.dropFirst(name.count).prefix { $0 != "\0" }.split(separator: ",").map(String.init)
      }
    }
    return []
  }

  // MARK: The test's side

  var nextEvent: Milliseconds? { monitor.locked { events.map(\.at).min() } }

  /// Moves the network's clock to `instant` and runs the events that are due until then.
  func run(to instant: Milliseconds) {
    monitor.locked {
      now = max(now, instant)
      while let next = events.indices.filter({ events[$0].at <= now }).min(by: {
        (events[$0].at, events[$0].order) < (events[$1].at, events[$1].order)
      }) {
        events.remove(at: next).act()
      }
    }
  }

  /// How often the engine has begun to wait; nil while the engine is working or has replies to read.
  var rest: Int? { monitor.locked { isWaiting && !isWoken && (finished.isEmpty || isLate) ? epoch : nil } }

  /// While the I/O thread is late, it leaves the replies in the sockets.
  func setLate(_ late: Bool) { monitor.locked { isLate = late } }

  /// The next `count` calls of `read` return without reading a reply; the call after them reads all replies.
  func setReadParts(_ count: Int) {
    monitor.locked {
      partsLeft = count
      reads = []
    }
  }

  func look<R>(_ body: (HeadEnd) -> R) -> R { monitor.locked { body(headEnd) } }
  func change(_ body: (inout HeadEnd) -> Void) { monitor.locked { body(&headEnd) } }
  func setSilent(_ silent: Bool) { monitor.locked { isSilent = silent } }
  func setConnectTime(_ time: Milliseconds) { monitor.locked { connectTime = time } }
  /// The times at which the engine opened a connection for a request.
  var opened: [Milliseconds] { monitor.locked { connections } }
  func setLatency(_ most: Milliseconds) { monitor.locked { latencyMost = most } }
  var calls: [Call] { monitor.locked { journal } }
  var objections: [String] { monitor.locked { complaints } }
}
