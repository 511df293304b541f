import Testing

@testable import UsherCore

/// A head-end for one driver. It holds at most one session and accepts only the newest token.
private struct StrictServer {
  private(set) var valid: String?
  private(set) var isAlive = false
  private var count = 0

  mutating func newToken() -> String {
    count += 1
    valid = "t\(count)"
    isAlive = true
    return valid ?? ""
  }

  mutating func answer(_ call: SSMSession.Call, _ token: String, dice: inout Dice) -> SSMOutcome {
    switch call {
    case .setup: return Say.token(newToken(), period: .number(60))
    case .heartbeat: return isAlive && token == valid ? Say.token(newToken()) : Say.refused(1006)
    case .teardown:
      guard isAlive && token == valid else { return Say.refused(1006) }
      isAlive = false
      return Say.done
    }
  }
  mutating func kill() { isAlive = false }
}

/// Plays thousands of random orders of replies, timers, closes and faults.
@Suite struct SessionPropertyTests {
  /// A request on its way. The outcome is set when the request arrives at the server.
  private struct OnItsWay {
    let sent: SessionDriver.Sent
    var outcome: SSMOutcome?
  }

  @Test(arguments: 0..<8)
  func randomLife_whateverTheOrder_keepsThePromises(part: UInt64) {
    for seed in (part * 1000)..<(part * 1000 + 1000) { play(seed) }
  }

  private func play(_ seed: UInt64) {
    var dice = Dice(seed)
    var policy = SSPPolicy()
    policy.retry = dice.pick([0, 300, 500, 1000])
    policy.failuresMax = dice.pick([nil, 1, 10])
    var s = SessionDriver(policy, seed: seed)
    var server = StrictServer()
    var onItsWay: [OnItsWay] = []
    var licenses: [String?] = []  // nil: not at the server yet; then the token in the reply, or "" if it has none
    var licenseTokens: [String] = []
    var closed = false
    var wasLeft = false
    var lostTheNewest = false  // the network lost the reply with the newest token
    var teardownFaults = 0
    var teardownsBy: [String: Int] = [:]
    var wasDefinite: Set<String> = []
    var firstTeardown: (token: String, index: Int)?
    var ended = 0
    var released = 0
    var tornDownWith: [String] = []

    func look(_ lines: [String], _ line: Int = #line) {
      for entry in lines {
        if entry.hasPrefix("ended") || entry == "left" { ended += 1 }
        if entry == "released" { released += 1 }
        if entry.hasPrefix("teardown t") {
          let token = String(entry.dropFirst("teardown ".count))
          #expect(!wasDefinite.contains(token), "seed \(seed): a teardown with \(token) again after a definite answer")
          teardownsBy[token, default: 0] += 1
          tornDownWith.append(token)
        } else if !tornDownWith.isEmpty
          && (entry.hasPrefix("heartbeat t") || entry == "setup" || entry == "renewal due")
        {
          Issue.record("seed \(seed): \(entry) after teardown")
        }
      }
      #expect(ended <= 1 && released <= 1, "seed \(seed)")
      if s.session.isActive, s.session.mode == .heartbeat, s.session.period > 0, s.waiting.isEmpty, onItsWay.isEmpty,
        licenses.isEmpty
      {
        #expect(s.timer != nil, "seed \(seed): active, and nothing will happen any more")
      }
    }

    func send() {
      while !s.waiting.isEmpty { onItsWay.append(OnItsWay(sent: s.removeWaiting(at: 0))) }
    }

    s.start()
    look(s.take())
    send()
    for _ in 0..<60 {
      switch dice.upTo(11) {
      case 0...2:  // a request arrives at the server
        let there = onItsWay.indices.filter { onItsWay[$0].outcome == nil }
        guard !there.isEmpty else { continue }
        let index = dice.pick(there)
        if dice.one(in: 5) && (onItsWay[index].sent.call != .teardown || teardownFaults < 3) {
          if onItsWay[index].sent.call == .teardown { teardownFaults += 1 }
          onItsWay[index].outcome = dice.pick([Say.unreachable, Say.http(503), Say.http(500)])
        } else {
          onItsWay[index].outcome = server.answer(onItsWay[index].sent.call, onItsWay[index].sent.token, dice: &dice)
        }
      case 3...5:  // a reply arrives at the session
        let back = onItsWay.indices.filter { onItsWay[$0].outcome != nil }
        guard !back.isEmpty else { continue }
        let one = onItsWay.remove(at: dice.pick(back))
        var outcome = one.outcome ?? Say.unreachable
        if dice.one(in: 12) && (one.sent.call != .teardown || teardownFaults < 3) {  // the network loses the reply
          if one.sent.call == .teardown { teardownFaults += 1 }
          if case .success(let fields) = outcome, let token = fields.token, text(token) == server.valid {
            lostTheNewest = true
          }
          outcome = Say.lost
        }
        if one.sent.call == .teardown {
          switch outcome {
          case .success: wasDefinite.insert(one.sent.token)
          case .failure(let failure): if !failure.isTransient { wasDefinite.insert(one.sent.token) }
          }
        }
        s.answer(one.sent, outcome)
      case 6: s.pass(dice.upTo(20_000))
      case 7: s.run(until: max(s.now, s.timer ?? s.now))
      case 8: if dice.one(in: 3) { s.sleep(until: s.now + dice.upTo(300_000)) }
      case 9 where s.session.isReady && licenses.count < 3:
        s.licenseSent()
        licenses.append(nil)
        licenseTokens.append(text(s.session.token))
      case 10 where !licenses.isEmpty:
        let index = Int(dice.upTo(UInt64(licenses.count - 1)))
        if let brought = licenses[index] {
          licenses.remove(at: index)
          licenseTokens.remove(at: index)
          s.licenseAnswered(token: brought.isEmpty ? nil : brought)
        } else {
          let accepted = server.isAlive && licenseTokens[index] == server.valid
          licenses[index] = accepted && dice.one(in: 2) ? server.newToken() : ""
        }
      case 11:
        if dice.one(in: 6) { server.kill() }
        if dice.one(in: 4) && !closed {
          closed = true
          wasLeft = dice.one(in: 6)
          s.close(wasLeft ? .leave : .teardown)
        }
      default: break
      }
      look(s.take())
      send()
    }
    if !closed { s.close() }
    look(s.take())
    send()
    // All requests and replies still on the way arrive, in random order.
    for _ in 0..<200 where !onItsWay.isEmpty || !licenses.isEmpty || s.timer != nil {
      if !licenses.isEmpty && dice.one(in: 2) {
        let brought = licenses.removeFirst()
        licenseTokens.removeFirst()
        s.licenseAnswered(token: brought.flatMap { $0.isEmpty ? nil : $0 })
      } else if !onItsWay.isEmpty {
        let one = onItsWay.remove(at: Int(dice.upTo(UInt64(onItsWay.count - 1))))
        let outcome = one.outcome ?? server.answer(one.sent.call, one.sent.token, dice: &dice)
        s.answer(one.sent, outcome)
      } else if let at = s.timer {
        s.run(until: max(at, s.now))
      }
      look(s.take())
      send()
    }
    #expect(ended == 1, "seed \(seed): ended \(ended) times")
    #expect(released == 1, "seed \(seed): released \(released) times")
    #expect(s.timer == nil, "seed \(seed): a timer after the end")
    #expect(s.session.isFinished, "seed \(seed): not finished")
    if !wasLeft && !lostTheNewest {
      #expect(!server.isAlive, "seed \(seed): leaked; torn down with \(tornDownWith), newest \(server.valid ?? "-")")
    }
    if wasLeft { #expect(tornDownWith.isEmpty, "seed \(seed): left, and torn down") }
  }
}
