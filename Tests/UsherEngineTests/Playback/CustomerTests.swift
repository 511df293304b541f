import Synchronization
import Testing

@testable import UsherCore
@testable import UsherEngine

/// Tests customer SSM, where the engine calls the host's callbacks instead of sending requests.
@Suite struct CustomerTests {
  private final class Host {
    let asked = Notes<String>()
    let open = Notes<HostQuestion>()
    let named = Atomic<Int>(0)
    let forgotten = Atomic<Int>(0)
    let statuses = Notes<Status>()
    let playback = PlaybackShared(1)
  }

  private func delegate(_ host: Host, answers: Bool) -> LicenseDelegate {
    var policy = SSPPolicy()
    policy.opening = .customer
    policy.needsToken = false
    policy.resetup = .never
    policy.jitter = 0
    let call = { (name: String) in
      { (ask: HostQuestion, _: HostPlayback) in
        host.asked.add(name)
        _ = ask.reply(.value(secret("")))
      }
    }
    let delegate = LicenseDelegate(policy: policy)
    delegate.customer = CustomerCallbacks(
      license: { ask, question, _ in
        host.asked.add(question.isRenewal ? "renewal" : "license")
        if answers {
          _ = ask.reply(.license(CustomerLicense(data: secret("ckc"), period: 10, isEnforced: false)))
        } else {
          host.open.add(ask)
        }
      }, heartbeat: call("heartbeat"), teardown: call("teardown"))
    return delegate
  }

  private func engine(_ host: Host) throws -> Engine {
    var options = EngineOptions()
    options.isManualClock = true
    options.registerQuestion = { _ in UInt64(host.named.add(1, ordering: .relaxed).newValue) }
    options.unregisterQuestion = { _ in host.forgotten.add(1, ordering: .relaxed) }
    let engine = Engine(options, ModelTransport(seed: 1, latencyMost: 0))
    #expect(engine.start())
    engine.addPlayer(1)
    return engine
  }

  private func play(_ engine: Engine, _ host: Host, _ delegate: LicenseDelegate) {
    _ = engine.play(
      host.playback, on: PlayerShared(1), host: HostPlayback(handle: 1, playerHandle: 1, tag: 1),
      item: PlaybackItem(delegate: delegate, contentToken: nil),
      callbacks: PlaybackCallbacks())
    engine.requestLicense(
      host.playback, .widevine, isRenewal: false, payload: secret("challenge"), timeout: nil, isBlocking: false
    ) { host.statuses.add($0.error.status) }
    _ = engine.settle(transfers: 0, callbacks: 0, within: 10_000)
  }

  @Test func playback_isLicensedKeptAliveAndTornDownByTheHost() throws {
    let host = Host()
    let engine = try engine(host)
    play(engine, host, delegate(host, answers: true))
    _ = engine.advance(30_000, settlingWithin: 10_000)
    _ = engine.closePlayback(host.playback, nil)
    _ = engine.settle(transfers: 0, callbacks: 0, within: 10_000)
    #expect(host.asked.all == ["license", "heartbeat", "heartbeat", "heartbeat", "teardown"])
    #expect(host.statuses.all == [.ok])
    engine.finishClosing()
    engine.stop()
  }

  @Test func question_neverAnswered_isForgottenWithTheContext() throws {
    let host = Host()
    let engine = try engine(host)
    play(engine, host, delegate(host, answers: false))
    engine.finishClosing()
    engine.stop()
    #expect(host.statuses.all == [.closed])
    #expect(host.named.load(ordering: .relaxed) == 1)
    #expect(host.forgotten.load(ordering: .relaxed) == 1)
    // takeAll() also removes the question from the host. Otherwise host, question, engine and options would keep
    // each other alive.
    #expect(host.open.takeAll().first?.answer(secret("late")) == false)
  }
}
