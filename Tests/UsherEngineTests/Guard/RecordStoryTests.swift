import Testing

@testable import UsherCore
@testable import UsherEngine

/// Plays an engine that keeps recovery records, and reads these records after each step.
@Suite struct RecordStoryTests {
  private let memory = RecordMemory()

  private func simulation(latency: Milliseconds = 0) throws -> Simulation {
    let network = ModelTransport(HeadEnd(), isEnforced: false, seed: 1, latencyMost: latency)
    return try #require(Simulation(network, recordKeeper: memory.area))
  }

  private var steady: SSPPolicy {
    var policy = SSPPolicy()
    policy.jitter = 0
    return policy
  }

  /// Whether the record in a slot has the teardown request of a session, with this token.
  private func holds(_ token: String, in slot: Int = 0) -> Bool {
    guard let found = memory.read(slot) else { return false }
    return found.fields.first == "1 https://head-end/teardown"
      && found.fields.contains("2 nv-authorizations: \(token)") && found.fields.contains("3 {}")
  }

  @Test func record_hasTheNewestToken_untilTheTeardownIsAnswered() throws {
    let s = try simulation()
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate(steady))
    #expect(memory.read(0) == nil)
    s.license(1)
    s.pass(10)
    #expect(holds("s1.1"))
    s.run(until: 41_000)
    #expect(holds("s1.3"))
    s.close(1)
    s.pass(10)
    #expect(s.network.calls.last?.path == "teardown")
    #expect(memory.read(0) == nil && memory.area.count == 0)
    s.finish()
  }

  /// If the host dies while the teardown is in flight, no process knows whether the server has read the teardown.
  /// Therefore the record stays until the reply arrives.
  @Test func record_whileTheTeardownIsInFlight_stays() throws {
    let s = try simulation(latency: 800)
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate(steady))
    s.run(until: 5000)
    #expect(holds("s1.1"))
    s.close(1)
    #expect(s.network.calls.last?.path == "teardown" && holds("s1.1"))
    s.pass(5000)
    #expect(memory.area.count == 0)
    s.finish()
  }

  @Test func record_ofASessionThatTheHostLeaves_isCleared_andReturnsWithItsTeardown() throws {
    let s = try simulation(latency: 800)
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate(steady))
    s.run(until: 5000)
    #expect(memory.area.count == 1)
    s.close(1, .leave)
    #expect(memory.area.count == 0)
    s.close(1)
    #expect(memory.area.count == 1)
    s.pass(5000)
    #expect(memory.area.count == 0)
    s.finish()
  }

  @Test func records_ofAZap_followEachSession() throws {
    let s = try simulation()
    s.addPlayer(1)
    let delegate = Simulation.delegate(steady)
    for id in 1...5 as ClosedRange<UInt64> {
      s.play(id, on: 1, delegate)
      s.run(until: id * 5000)
      #expect(memory.area.count == 1)
    }
    s.finish()
  }
}
