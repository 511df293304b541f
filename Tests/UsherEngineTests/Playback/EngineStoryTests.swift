import Testing

@testable import UsherCore
@testable import UsherEngine

@Suite struct EngineStoryTests {
  private func simulation(
    _ headEnd: HeadEnd = HeadEnd(), isEnforced: Bool = false, latency: Milliseconds = 0, perOrigin: Int = 64
  ) throws -> Simulation {
    let network = ModelTransport(headEnd, isEnforced: isEnforced, seed: 1, latencyMost: latency)
    return try #require(Simulation(network, perOrigin: perOrigin))
  }

  private var steady: SSPPolicy {
    var policy = SSPPolicy()
    policy.jitter = 0
    return policy
  }

  @Test func playback_fromStartToClose_takesASlotAndGivesItBack() throws {
    let s = try simulation()
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate(steady))
    s.license(1)
    s.run(until: 41_000)
    s.close(1)
    s.pass(10)
    #expect(s.paths == ["setup a/1/0", "licenses a/1/0,s1.1", "heartbeat s1.1", "heartbeat s1.2", "teardown s1.3"])
    #expect(s.kinds(1) == [.sessionStarted, .license, .keptAlive, .keptAlive, .sessionEnded, .playbackClosed])
    #expect(s.network.look { $0.alive.isEmpty })
    s.finish()
  }

  /// The first licence request of SSP V2, and a request for the service certificate before it, may open a session. The
  /// engine sends each of these requests over a new connection, since it does not know whether the server keeps
  /// connections.
  @Test(arguments: [[0x08, 0x04], [0x08, 0x01]] as [[UInt8]])
  func firstRequest_thatMayOpenASession_usesANewConnection(payload: [UInt8]) throws {
    let s = try simulation()
    var policy = steady
    policy.opening = .license
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate(policy))
    s.license(1, .widevine, payload: payload)
    s.pass(10)
    #expect(s.network.calls.map(\.isFresh) == [true])
    s.finish()
  }

  @Test func zap_tearsDownBeforeTheNextSetup() throws {
    let s = try simulation(HeadEnd(limit: 1), latency: 300)
    s.addPlayer(1)
    let delegate = Simulation.delegate(steady)
    for id in 1...5 as ClosedRange<UInt64> {
      s.play(id, on: 1, delegate)
      s.run(until: id * 5000)
    }
    #expect(
      s.network.calls.map(\.path) == [
        "setup", "teardown", "setup", "teardown", "setup", "teardown", "setup", "teardown", "setup"
      ])
    #expect(s.events.all.filter { $0.kind == .setupError }.isEmpty)
    s.finish()
  }

  /// When the first item ends, the engine starts the second item in the same step, and the set-up of the second item
  /// fails at once. The engine performs the actions of the second item after those of the first.
  @Test func zap_toAnItemThatFailsAtOnce_reportsTheEndOfTheFirstBefore() throws {
    let s = try simulation()
    let emitted = Notes<(sequence: UInt64, text: String)>()
    s.engine.addObserver(2) { emitted.add(($0.sequence, "\($0.playback.tag) \($0.kind.name)")) }
    s.addPlayer(1)
    var policy = steady
    policy.tokenWait = 0
    s.play(1, on: 1, Simulation.delegate(policy))
    s.pass(10)
    s.play(2, on: 1, Simulation.delegate(policy), content: false)
    s.pass(10)
    let order = emitted.all.sorted { $0.sequence < $1.sequence }.map(\.text)
    #expect(order == ["1 SESSION_STARTED", "1 SESSION_ENDED", "1 PLAYBACK_CLOSED", "2 SETUP_ERROR"])
    s.finish()
  }

  @Test func zap_whileTheTeardownHangs_goesOnAtTheCapAndTheTeardownIsRetried() throws {
    let s = try simulation()
    s.addPlayer(1)
    let delegate = Simulation.delegate(steady)
    s.play(1, on: 1, delegate)
    s.pass(10)
    s.network.setLatency(1_000_000_000)
    s.play(2, on: 1, delegate)
    s.network.setLatency(0)
    s.pass(2999)
    #expect(s.paths == ["setup a/1/0", "teardown s1.1"])
    s.pass(1)
    #expect(s.paths.last == "setup a/2/0")
    s.pass(15_000)
    #expect(s.paths.filter { $0 == "teardown s1.1" }.count == 2)
    #expect(s.network.look { $0.alive.map(\.playback) } == [2])
    s.finish()
  }

  @Test func zaps_whileSetupIsInFlight_newestWins() throws {
    let s = try simulation(latency: 1000)
    s.addPlayer(1)
    let delegate = Simulation.delegate(steady)
    for id in 1...4 as ClosedRange<UInt64> { s.play(id, on: 1, delegate) }
    s.license(3)
    s.run(until: 10_000)
    #expect(s.network.calls.filter { $0.path == "setup" }.map { $0.tokens[0] } == ["a/1/0", "a/4/0"])
    #expect(s.kinds(2) == [.playbackClosed] && s.kinds(3) == [.playbackClosed])
    #expect(s.events.all.filter { $0.playback == 2 }.map(\.error.status) == [.replaced])
    #expect(s.answers.all.map(\.status).allSatisfy { $0 == .replaced || $0 == .closed })
    s.finish()
  }

  @Test func limit_whileOwnTeardownIsUnderWay_isTriedOnceMore() throws {
    let s = try simulation(HeadEnd(limit: 1))
    s.addPlayer(1)
    s.addPlayer(2)
    let delegate = Simulation.delegate(steady)
    s.play(1, on: 1, delegate)
    s.pass(10)
    s.network.setLatency(2000)
    s.close(1)
    s.network.setLatency(0)
    s.play(2, on: 2, delegate)
    s.pass(5000)
    #expect(s.network.calls.map(\.path) == ["setup", "teardown", "setup", "setup"])
    #expect(s.kinds(2) == [.sessionStarted])
    s.finish()
  }

  @Test func limit_withNothingOfOursEnding_isSetupErrorAtOnce() throws {
    let s = try simulation(HeadEnd(limit: 1))
    s.addPlayer(1)
    s.addPlayer(2)
    let delegate = Simulation.delegate(steady)
    s.play(1, on: 1, delegate)
    s.pass(10)
    s.play(2, on: 2, delegate)
    s.license(2)
    s.pass(10)
    #expect(s.kinds(2).first == .setupError)
    #expect(s.answers.all.map(\.status) == [.limit])
    s.finish()
  }

  @Test func heartbeats_whileOtherRequestsStall_areOnTime() throws {
    // The origin has two permits, and licence requests that get no reply hold both.
    let network = ModelTransport(seed: 1, latencyMost: 0)
    let s = try #require(Simulation(network, perOrigin: 2))
    let delegate = Simulation.delegate(steady)
    for player in 1...6 as ClosedRange<UInt64> {
      s.addPlayer(player)
      s.play(player, on: player, delegate)
    }
    s.run(until: 15_000)
    network.setLatency(60_000)
    for player in 1...6 as ClosedRange<UInt64> { s.license(player) }
    network.setLatency(0)
    s.run(until: 100_000)
    #expect(s.events.all.filter { $0.kind == .keptAlive }.allSatisfy { $0.lateness == 0 })
    #expect(s.events.all.filter { $0.kind == .heartbeatError }.isEmpty)
    s.finish()
  }

  @Test func heartbeats_whileOthersStallInEveryPlace_areOnTime() throws {
    // The origin has two permits. When the heartbeat of the seventh playback is due, heartbeats that get no reply hold
    // both permits.
    let network = ModelTransport(seed: 1, latencyMost: 0)
    let s = try #require(Simulation(network, perOrigin: 2))
    let delegate = Simulation.delegate(steady)
    for player in 1...7 as ClosedRange<UInt64> {
      if player == 7 { s.pass(500) }
      s.addPlayer(player)
      s.play(player, on: player, delegate)
    }
    s.run(until: 19_000)
    network.setLatency(100_000_000)
    s.run(until: 20_599)
    #expect(network.calls.filter { $0.path == "heartbeat" }.count == 6)
    s.run(until: 20_600)
    #expect(network.calls.filter { $0.path == "heartbeat" }.count == 7)
    network.setLatency(0)
    s.finish()
  }

  @Test func requests_thatWaitForAPlaceWhenTheirPlaybackCloses_goOutNoMore() throws {
    let network = ModelTransport(seed: 1, latencyMost: 0)
    let s = try #require(Simulation(network, perOrigin: 1))
    let delegate = Simulation.delegate(steady)
    for player in 1...3 as ClosedRange<UInt64> { s.addPlayer(player) }
    s.play(1, on: 1, delegate)
    s.play(2, on: 2, delegate)
    s.pass(10)
    network.setLatency(100_000_000)
    s.license(1)
    network.setLatency(0)
    // The first licence request still has the only permit.
    s.license(2)
    s.play(3, on: 3, delegate)
    s.close(2)
    s.close(3)
    #expect(s.kinds(3) == [.playbackClosed])
    s.pass(5000)
    #expect(s.paths == ["setup a/1/0", "setup a/2/0", "licenses a/1/0,s1.1", "teardown s2.1"])
    s.finish()
  }

  @Test func heartbeat_thatWaitsForAPlaceWhenItsPlaybackIsLeft_goesOutNoMore() throws {
    let network = ModelTransport(seed: 1, latencyMost: 0)
    let s = try #require(Simulation(network, perOrigin: 1))
    let delegate = Simulation.delegate(steady)
    for player in 1...2 as ClosedRange<UInt64> { s.addPlayer(player) }
    s.play(1, on: 1, delegate)
    s.play(2, on: 2, delegate)
    s.run(until: 19_500)
    network.setLatency(100_000_000)
    s.license(1)
    network.setLatency(0)
    s.run(until: 20_050)
    s.close(2, .leave)
    s.pass(200)
    #expect(!s.paths.contains { $0.hasPrefix("heartbeat s2") })
    s.engine.stop()
  }

  @Test func requests_neverExceedTheBoundUnlessTheyStallOrKeepASessionAlive() throws {
    let network = ModelTransport(seed: 1, latencyMost: 200)
    let s = try #require(Simulation(network, perOrigin: 3))
    let delegate = Simulation.delegate()
    for player in 1...20 as ClosedRange<UInt64> {
      s.addPlayer(player)
      s.play(player, on: player, delegate)
    }
    s.run(until: 19_000)
    #expect(network.mostAtOnce == 3)
    #expect(s.events.all.filter { $0.kind == .sessionStarted }.count == 20)
    s.run(until: 60_000)
    #expect(network.calls.filter { $0.path == "heartbeat" }.count >= 40)
    s.finish()
  }

  @Test func slowCallback_onOnePlayback_delaysNoOthersHeartbeats() throws {
    let s = try simulation()
    let gate = Wait<Int>()
    s.addPlayer(1)
    s.addPlayer(2)
    s.play(1, on: 1, Simulation.delegate(steady))
    s.play(2, on: 2, Simulation.delegate(steady))
    s.pass(10)
    let blocked = Wait<Int>()
    s.engine.requestLicense(
      s.playback(1), .fairPlay, isRenewal: false, payload: secret("spc"), timeout: nil, isBlocking: false
    ) {
      _ in
      blocked.end(1)
      _ = gate.wait()
    }
    while s.engine.calls.executor.pending == 0 {
      s.network.run(to: s.now)
      _ = s.engine.settle(transfers: .max, callbacks: .max, within: 100)
    }
    _ = blocked.wait()
    for _ in 0..<3 {
      s.engine.jump(20_000)
      for _ in 0..<4 {
        s.network.run(to: s.engine.pending().now)
        _ = s.engine.settle(transfers: 0, callbacks: .max, within: 1000)
      }
    }
    #expect(s.network.calls.filter { $0.path == "heartbeat" }.count == 6)
    gate.end(1)
    s.settle()
    s.engine.stop()
  }

  @Test func tokenCallback_withoutAnswer_isSetupErrorAtItsDeadline() throws {
    let s = try simulation()
    s.addPlayer(1)
    let delegate = Simulation.delegate(steady)
    let asks = Notes<HostQuestion>()
    s.engine.setTokenCallback(delegate) { ask, _ in asks.add(ask) }
    s.play(1, on: 1, delegate, content: false)
    s.license(1)
    s.run(until: 4999)
    #expect(s.kinds(1) == [])
    s.run(until: 5000)
    #expect(s.kinds(1).first == .setupError)
    #expect(s.answers.all.map(\.status) == [.noToken])
    let late = asks.all[0].answer(secret("late"))
    #expect(!late)
    s.finish()
  }

  @Test func tokenCallback_answeringTwice_countsOnce() throws {
    let s = try simulation()
    s.addPlayer(1)
    let delegate = Simulation.delegate(steady)
    let results = Notes<Bool>()
    s.engine.setTokenCallback(delegate) { ask, _ in
      results.add(ask.answer(secret("a/one/0")))
      results.add(ask.answer(secret("a/two/0")))
    }
    s.play(1, on: 1, delegate, content: false)
    s.pass(10)
    #expect(results.all == [true, false])
    #expect(s.paths == ["setup a/one/0"])
    s.finish()
  }

  @Test func license_timedOut_isAnsweredOnceAndItsTokenIsStillUsed() throws {
    let s = try simulation(isEnforced: true)
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate(steady))
    s.pass(10)
    s.network.setLatency(2000)
    s.license(1, timeout: 1)
    s.pass(1)
    #expect(s.answers.all.map(\.status) == [.timeout])
    s.pass(5000)
    #expect(s.answers.all.count == 1)
    s.close(1)
    s.pass(10_000)
    #expect(s.network.look { $0.alive.isEmpty })
    s.finish()
  }

  @Test func enforcedMode_renewsWithFreshPayloads() throws {
    let s = try simulation(HeadEnd(leasePeriods: 2), isEnforced: true, latency: 50)
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate(steady))
    s.license(1)
    s.run(until: 101_000)
    #expect(s.network.calls.map(\.path) == ["setup", "licenses"] + Array(repeating: "licenses?renew=true", count: 5))
    #expect(s.network.look { $0.alive.count } == 1)
    #expect(s.kinds(1).filter { $0 == .keptAlive }.count == 5)
    s.finish()
  }

  @Test func machineAsleep_onWaking_oneBeatGoesOutAndTheSessionIsDoubtful() throws {
    let s = try simulation()
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate(steady))
    s.pass(10)
    s.sleep(300_000)
    s.pass(10)
    #expect(s.kinds(1) == [.sessionStarted, .sessionDoubtful, .keptAlive])
    #expect(s.network.calls.filter { $0.path == "heartbeat" }.count == 1)
    s.finish()
  }

  @Test func leave_keepsTheSessionAtTheHeadEnd() throws {
    let s = try simulation()
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate(steady))
    s.pass(10)
    s.close(1, .leave)
    s.pass(10)
    #expect(s.kinds(1) == [.sessionStarted, .sessionEnded, .playbackClosed])
    #expect(s.network.look { $0.alive.count } == 1)
    s.network.change { $0.kill() }
    s.free(1)
    s.finish()
  }

  @Test func contextClose_withEverythingUnderWay_closesAllInParallel() throws {
    let s = try simulation(latency: 1000)
    let delegate = Simulation.delegate(steady)
    for player in 1...10 as ClosedRange<UInt64> {
      s.addPlayer(player)
      s.play(player, on: player, delegate)
      s.license(player)
      if player > 5 { s.pass(400) }
    }
    s.engine.beginClosing()
    s.settle()
    s.pass(6000)
    #expect(s.engine.sync { s.engine.closing.isDone })
    #expect(s.network.look { $0.alive.isEmpty })
    #expect(!s.play(99, on: 1, delegate))
    s.finish()
  }

  @Test func commands_submittedFromManyThreads_runInTheirOrder() throws {
    let s = try simulation()
    let feeders = ThreadedExecutor(cap: 4, onChange: { _ in })
    let notes = Notes<(lane: UInt64, number: Int)>()
    for lane in 1...4 as ClosedRange<UInt64> {
      _ = feeders.enqueue(lane) { for number in 0..<500 { s.engine.submit { notes.add((lane, number)) } } }
    }
    feeders.shutDown()
    s.engine.sync {}
    for lane in 1...4 as ClosedRange<UInt64> {
      #expect(notes.all.filter { $0.lane == lane }.map(\.number) == Array(0..<500))
    }
    s.finish()
  }
}
