import Testing

@testable import UsherCore
@testable import UsherEngine

/// Plays random schedules of zaps, closes, licences and faults on the engine, and checks at the end that the engine has
/// lost no session and has completed every request once.
@Suite struct EngineSimulationTests {
  @Test(arguments: 0..<20 as Range<UInt64>)
  func faultlessHeadEnd_randomZaps_neverRefusesOrLosesAnything(seed: UInt64) throws {
    let network = ModelTransport(
      HeadEnd(leasePeriods: 2), isEnforced: seed % 3 == 0, seed: seed, latencyMost: 400)
    let s = try #require(Simulation(network))
    play(s, seed: seed, players: 4, rounds: 30, isSilent: false)
    let errors = s.events.all.filter { [.setupError, .heartbeatError, .teardownError].contains($0.kind) }
    let texts = errors.map { "\($0.playback) \(string($0.kind.name)) \($0.error.message) \($0.error.serviceCode)" }
    #expect(errors.isEmpty, "seed \(seed): \(texts)")
    #expect(s.events.all.filter { $0.kind == .keptAlive }.allSatisfy { $0.lateness < 1000 }, "seed \(seed)")
    s.finish("seed \(seed)")
  }

  @Test(arguments: 100..<140 as Range<UInt64>)
  func faultyNetwork_randomZaps_leaksNoSessionAndAnswersEverythingOnce(seed: UInt64) throws {
    let network = ModelTransport(
      HeadEnd(limit: seed % 4 == 0 ? 3 : nil), isEnforced: seed % 3 == 0, seed: seed,
      latencyMost: seed % 2 == 0 ? 300 : 4000,
      faults: [.unreachable, .unavailable, .lostReply, .garbage, .mute], faultRate: 3 + seed % 6)
    let s = try #require(Simulation(network, perOrigin: seed % 5 == 0 ? 2 : 64))
    play(s, seed: seed, players: 4, rounds: 30, isSilent: seed % 7 == 0)
    s.finish("seed \(seed)")
  }

  /// Does random actions at random instants.
  private func play(_ s: Simulation, seed: UInt64, players: UInt64, rounds: Int, isSilent: Bool) {
    var dice = Dice(seed &* 31)
    var policy = SSPPolicy()
    policy.resetup = dice.pick([.callbackOnly, .always, .never])
    let plain = Simulation.delegate(policy)
    let asking = Simulation.delegate(policy)
    s.engine.setTokenCallback(asking) { ask, host in
      if isSilent && host.tag % 3 == 0 { return }
      _ = ask.answer(secret("a/\(host.tag)/again"))
    }
    for player in 1...players { s.addPlayer(player) }
    var next: UInt64 = 1
    for _ in 0..<rounds {
      switch dice.upTo(9) {
      case 0...3:
        let usesCallback = dice.one(in: 3)
        s.play(
          next, on: 1 + dice.upTo(players - 1), usesCallback ? asking : plain, content: !usesCallback || dice.one(in: 2)
        )
        next += 1
      case 4...6 where next > 1:
        s.license(1 + dice.upTo(next - 2), renewal: dice.one(in: 5), timeout: dice.one(in: 4) ? dice.upTo(3000) : nil)
      case 7 where next > 1: s.close(1 + dice.upTo(next - 2))
      case 8 where dice.one(in: 3): _ = s.engine.stopPlayer(s.player(1 + dice.upTo(players - 1)), .teardown, waiting: 0)
      default: break
      }
      s.pass(dice.one(in: 3) ? dice.upTo(30_000) : dice.upTo(2000))
    }
  }
}
