import Testing

@testable import UsherCore
@testable import UsherEngine

/// A head-end as a value: strict token rotation, a limit per account, expiry by its clock.
struct ModelHeadEnd {
  struct Session {
    let playback: String
    let account: String
    var isAlive = true
    /// The one token that is valid.
    var token: String
    /// Tokens whose replies reached the client, in the order the client saw them.
    var delivered: [String] = []
    var lastSeen: Milliseconds
    var teardownSentWith: Set<String> = []
    var teardownDefinite: Set<String> = []
  }

  var sessions: [Int: Session] = [:]
  var owner: [String: Int] = [:]
  var limit = Int.max
  var period: Milliseconds = 20_000
  /// nil: sessions never expire.
  var grace: UInt64?
  var enforced = false
  private var counter = 0

  var alive: [Session] { sessions.values.filter(\.isAlive) }

  private mutating func newToken(_ session: Int) -> String {
    counter += 1
    let token = "s\(session).\(counter)"
    owner[token] = session
    sessions[session]?.token = token
    return token
  }

  private mutating func expire(_ now: Milliseconds) {
    guard let grace else { return }
    for (id, session) in sessions where session.isAlive && now > session.lastSeen + period * grace {
      sessions[id]?.isAlive = false
    }
  }

  private func refuse(_ code: Int64, _ status: Int32 = 400) -> HTTPOutcome {
    .response(HTTPResponse(status: status, body: secret("{\"errorCode\":\(code),\"message\":\"refused\"}")))
  }
  private func answer(_ json: String) -> HTTPOutcome { .response(HTTPResponse(status: 200, body: secret(json))) }

  /// The session a token is valid for.
  private func live(_ token: String) -> Int? {
    guard let id = owner[token], let session = sessions[id], session.isAlive, session.token == token else { return nil }
    return id
  }

  mutating func handle(_ what: ModelTransport.Call, now: Milliseconds) -> HTTPOutcome {
    expire(now)
    let tokens = what.tokens
    switch what.path {
    case "setup":
      // "account/playback/number"
      let content = tokens.first ?? ""
      let account = String(content.split(separator: "/").first ?? "")
      if alive.filter({ $0.account == account }).count >= limit { return refuse(1007) }
      let id = sessions.count + 1
      sessions[id] = Session(playback: content, account: account, token: "", lastSeen: now)
      return answer("{\"sessionToken\":\"\(newToken(id))\",\"heartbeat\":\(period / 1000)}")
    case "heartbeat":
      guard let id = live(tokens.first ?? "") else { return refuse(1006) }
      sessions[id]?.lastSeen = now
      return answer("{\"sessionToken\":\"\(newToken(id))\"}")
    case "teardown":
      guard let id = live(tokens.first ?? "") else { return refuse(1006) }
      sessions[id]?.isAlive = false
      return answer("{}")
    case "licenses", "licenses?renew=true":
      guard let id = live(tokens.last ?? "") else { return refuse(1006) }
      if !enforced { return answer("{\"CkcMessage\":\"Zm9v\"}") }
      sessions[id]?.lastSeen = now
      return answer("{\"CkcMessage\":\"Zm9v\",\"sessionToken\":\"\(newToken(id))\"}")
    default: return refuse(1000)
    }
  }
}

/// The seam below the engine: the model of the head-end, at the distance of a virtual network. The test moves its time together with the engine's.
final class ModelTransport: Transport {
  struct Call {
    let time: Milliseconds
    let path: String
    /// What the header carried.
    let tokens: [String]
    var session: String { tokens.last ?? "" }
  }
  /// What the network does to one request.
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
  private var finished: [(FinishedTransfer, Call)] = []
  private var events: [Event] = []
  private var order = 0
  private var running: Set<TransferID> = []
  private var now: Milliseconds = 0

  private var headEnd: ModelHeadEnd
  private var dice: Dice
  private var latencyMost: Milliseconds
  /// Which faults happen, and one in how many requests (0: never).
  private let faults: [Fault]
  private let faultRate: UInt64
  private var faultsByToken: [String: Int] = [:]
  private(set) var journal: [Call] = []
  private(set) var complaints: [String] = []
  private(set) var mostAtOnce = 0

  init(
    _ headEnd: ModelHeadEnd, seed: UInt64, latencyMost: Milliseconds = 100, faults: [Fault] = [], faultRate: UInt64 = 0
  ) {
    self.headEnd = headEnd
    dice = Dice(seed)
    self.latencyMost = latencyMost
    self.faults = faults
    self.faultRate = faultRate
  }

  // MARK: The engine's side

  func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool) {
    let call = Call(time: monitor.locked { now }, path: Self.path(request), tokens: Self.tokens(request))
    monitor.locked {
      running.insert(id)
      mostAtOnce = max(mostAtOnce, running.count)
      journal.append(call)
      judge(call)
      after(dice.upTo(latencyMost)) { [self] in arrive(id, call) }
    }
  }

  func cancel(_ id: TransferID) -> Bool { monitor.locked { running.remove(id) != nil } }

  func wait(until instant: Int64?) {
    monitor.locked {
      isWaiting = true
      epoch += 1
      monitor.broadcast()
      while !isWoken && finished.isEmpty { monitor.wait() }
      isWoken = false
      isWaiting = false
    }
  }

  func wake() {
    monitor.locked {
      isWoken = true
      monitor.broadcast()
    }
  }

  /// One at a time, so that it is known what the client had seen when it sent something.
  func takeFinished() -> [FinishedTransfer] {
    monitor.locked {
      guard !finished.isEmpty else { return [] }
      let (one, call) = finished.removeFirst()
      guard running.remove(one.id) != nil else { return [] }
      deliver(one.outcome, call)
      return [one]
    }
  }

  /// What never happened would hold the network, and that what never happens.
  func shutDown() { monitor.locked { events = [] } }

  // MARK: The network; inside the lock

  private func after(_ delay: Milliseconds, _ act: @escaping () -> Void) {
    order += 1
    events.append(Event(at: now + delay, order: order, act: act))
  }

  private func arrive(_ id: TransferID, _ call: Call) {
    var fault = Fault.none
    if faultRate > 0, dice.one(in: faultRate) { fault = dice.pick(faults) }
    if call.path == "teardown" {
      // The library gives up after three retries, and so it may.
      if fault != .none { faultsByToken[call.session, default: 0] += 1 }
      if faultsByToken[call.session, default: 0] > 2 { fault = .none }
      if fault == .mute { fault = .unreachable }
    }
    let back = dice.upTo(latencyMost)
    switch fault {
    case .none: reply(id, call, headEnd.handle(call, now: now), after: back)
    case .unreachable: reply(id, call, .failure(WireFailure(.transport)), after: back)
    case .unavailable:
      reply(
        id, call, .response(HTTPResponse(status: 503, body: secret("busy"), retryAfter: dice.one(in: 2) ? 2000 : nil)),
        after: back)
    case .lostReply:
      _ = headEnd.handle(call, now: now)
      reply(id, call, .failure(WireFailure(.transport, mayHaveTakenEffect: true)), after: back)
    case .garbage:
      _ = headEnd.handle(call, now: now)
      reply(id, call, .response(HTTPResponse(status: 200, body: secret("<html>"))), after: back)
    case .mute: break
    }
  }

  private func reply(_ id: TransferID, _ call: Call, _ outcome: HTTPOutcome, after delay: Milliseconds) {
    after(delay) { [self] in
      guard running.contains(id) else { return }
      finished.append((FinishedTransfer(id: id, outcome: outcome), call))
      monitor.broadcast()
    }
  }

  /// The client sees a reply now.
  private func deliver(_ outcome: HTTPOutcome, _ call: Call) {
    if case .response(let response) = outcome {
      if call.path == "teardown", response.status < 500, text(response.body) != "<html>",
        let id = headEnd.owner[call.session]
      {
        headEnd.sessions[id]?.teardownDefinite.insert(call.session)
      }
      if response.status == 200, let start = text(response.body).range(of: "\"sessionToken\":\"") {
        let token = String(text(response.body)[start.upperBound...].prefix { $0 != "\"" })
        if let id = headEnd.owner[token] { headEnd.sessions[id]?.delivered.append(token) }
      }
    }
  }

  /// Is this request one that may be sent?
  private func judge(_ call: Call) {
    guard call.path != "setup", let id = headEnd.owner[call.session], let session = headEnd.sessions[id] else { return }
    let newest = session.delivered.last
    if newest != call.session {
      complaints.append("\(call.time): \(call.path) with \(call.session), though \(newest ?? "-") had come")
    }
    if call.path == "teardown" {
      if session.teardownDefinite.contains(call.session) {
        complaints.append("\(call.time): teardown with \(call.session) again after its answer")
      }
      headEnd.sessions[id]?.teardownSentWith.insert(call.session)
    } else if !session.teardownSentWith.isEmpty {
      complaints.append("\(call.time): \(call.path) with \(call.session) after teardown")
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

  /// Time goes on to `instant`: what is due on the network happens.
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

  /// How often the engine came to rest; nil while it works.
  var rest: Int? { monitor.locked { isWaiting && !isWoken && finished.isEmpty ? epoch : nil } }

  func look<R>(_ body: (ModelHeadEnd) -> R) -> R { monitor.locked { body(headEnd) } }
  func change(_ body: (inout ModelHeadEnd) -> Void) { monitor.locked { body(&headEnd) } }
  func setLatency(_ most: Milliseconds) { monitor.locked { latencyMost = most } }
  var calls: [Call] { monitor.locked { journal } }
  var objections: [String] { monitor.locked { complaints } }
}

extension String {
  /// Where `other` stands; the sources of the tests have no Foundation either.
  func range(of other: String) -> Range<String.Index>? {
    var start = startIndex
    while start < endIndex {
      if self[start...].hasPrefix(other) { return start..<index(start, offsetBy: other.count) }
      start = index(after: start)
    }
    return nil
  }
}
