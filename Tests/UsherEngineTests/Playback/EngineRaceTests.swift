import Testing

@testable import UsherCore
@testable import UsherEngine

@Suite struct EngineRaceTests {
  /// The set-up arrives at the head-end before the teardown of the earlier session, so the head-end refuses the set-up.
  /// But the reply to the teardown reaches the engine before this refusal.
  @Test func limit_refusalOvertakenByOwnTeardownsReply_isTriedOnceMore() throws {
    let s = try #require(Simulation(ModelTransport(HeadEnd(limit: 1), seed: 1, latencyMost: 400)))
    s.addPlayer(1)
    s.addPlayer(2)
    let delegate = Simulation.delegate()
    s.play(1, on: 1, delegate)
    s.run(until: 5000)
    for round in 0..<6 as Range<UInt64> {
      s.close(1 + round)
      s.play(2 + round, on: 1 + (round + 1) % 2, delegate)
      s.pass(5000)
    }
    #expect(s.events.all.filter { $0.kind == .setupError }.isEmpty)
    #expect(s.network.look { $0.alive.count } == 1)
    s.finish()
  }
}
