import Testing

@testable import UsherCore
@testable import UsherEngine

/// The real engine with the model of the head-end. Both use one virtual clock.
final class Simulation {
  let engine: Engine
  let network: ModelTransport
  private(set) var now: Milliseconds = 0
  let events = Notes<(playback: UInt64, kind: EventKind, lateness: Milliseconds, error: UsherError)>()
  let answers = Notes<(playback: UInt64, license: Int, status: Status)>()
  private(set) var licensesAsked = 0
  private(set) var playbacks: [UInt64] = []
  private var shared: [UInt64: PlaybackShared] = [:]
  private var players: [UInt64: PlayerShared] = [:]
  private(set) var isStuck = false

  init?(_ network: ModelTransport, perOrigin: Int = 64, recordKeeper: (any RecordKeeper)? = nil) {
    var options = EngineOptions()
    options.recordKeeper = recordKeeper
    options.isManualClock = true
    options.requestsPerOriginMax = perOrigin
    options.callbackThreadsMax = 3
    let engine = Engine(options, network)
    guard engine.start() else { return nil }
    self.engine = engine
    self.network = network
    let events = events
    engine.addObserver(1) { events.add(($0.playback.tag, $0.kind, $0.lateness, $0.error)) }
    settle()
  }

  static func delegate(_ policy: SSPPolicy = SSPPolicy()) -> LicenseDelegate {
    var endpoints = LicenseDelegate.Endpoints(
      license: endpoint("licenses"), licenseRenewal: endpoint("licenses?renew=true"))
    endpoints.setup = endpoint("setup")
    endpoints.heartbeat = endpoint("heartbeat")
    endpoints.teardown = endpoint("teardown")
    return LicenseDelegate(
      policy: policy, endpoints: endpoints, setupBody: Array("{}".utf8), keepAliveBody: Array("{}".utf8))
  }

  /// Plays an item on a player.
  /// - Parameter content: whether the item has a content token. If not, the engine asks the delegate's token callback.
  @discardableResult
  func play(
    _ id: UInt64, on player: UInt64, _ delegate: LicenseDelegate, account: String = "a", content: Bool = true,
    renews: Bool = true
  ) -> Bool {
    var callbacks = PlaybackCallbacks()
    if renews { callbacks.payload = { ask, _, _ in _ = ask.answer(secret("spc")) } }
    let playback = PlaybackShared(id)
    shared[id] = playback
    let isPlaying = engine.play(
      playback, on: self.player(player), host: HostPlayback(handle: UInt(id), playerHandle: UInt(player), tag: id),
      item: PlaybackItem(delegate: delegate, contentToken: content ? secret("\(account)/\(id)/0") : nil),
      callbacks: callbacks)
    if isPlaying { playbacks.append(id) }
    settle()
    return isPlaying
  }

  func addPlayer(_ id: UInt64) {
    players[id] = PlayerShared(id)
    engine.addPlayer(id)
  }

  func player(_ id: UInt64) -> PlayerShared { players[id] ?? PlayerShared(id) }

  func playback(_ id: UInt64) -> PlaybackShared { shared[id] ?? PlaybackShared(id) }

  func license(
    _ id: UInt64, _ keySystem: KeySystem = .fairPlay, payload: [UInt8] = Array("spc".utf8), renewal: Bool = false,
    timeout: Milliseconds? = nil
  ) {
    let number = licensesAsked
    licensesAsked += 1
    let answers = answers
    let isAccepted = engine.requestLicense(
      playback(id), keySystem, isRenewal: renewal, payload: Secret(payload), timeout: timeout,
      isBlocking: false
    ) {
      answers.add((id, number, $0.error.status))
    }
    if !isAccepted { answers.add((id, number, .closed)) }
    settle()
  }

  func close(_ id: UInt64, _ ending: SSMSession.Ending = .teardown) {
    if let playback = shared[id] { _ = engine.closePlayback(playback, ending) }
    settle()
  }

  /// Frees the handle of a playback.
  func free(_ id: UInt64) {
    if let playback = shared[id] { _ = engine.closePlayback(playback, nil, freeing: true) }
    settle()
  }

  /// Waits until the I/O thread is idle and no callback is running. Does not move the clock.
  func settle() {
    let end = monotonicMilliseconds() + 20_000
    while monotonicMilliseconds() < end {
      guard engine.settle(transfers: .max, callbacks: 0, within: 20_000) else { break }
      guard let before = network.rest else { continue }
      if engine.calls.executor.pending == 0, !engine.hasCommands, network.rest == before { return }
    }
    isStuck = true
    Issue.record("the engine does not come to rest at \(now)")
  }

  /// Moves the clock to `target`, and stops at each instant at which something is due.
  func run(until target: Milliseconds) {
    while !isStuck {
      let timer = engine.pending().next.map { now + $0 }
      let next = [timer, network.nextEvent].compactMap { $0 }.min()
      guard let next, next <= target else { break }
      step(to: max(next, now))
    }
    step(to: target)
  }

  func pass(_ duration: Milliseconds) { run(until: now + duration) }

  private func step(to instant: Milliseconds) {
    if instant > now {
      engine.jump(instant - now)
      now = instant
      settle()
    }
    network.run(to: now)
    settle()
  }

  /// Imitates a machine that sleeps: nothing runs for `duration`, then everything that is overdue runs immediately.
  func sleep(_ duration: Milliseconds) { step(to: now + duration) }

  /// Stops the I/O thread for `duration`, while the network and the head-end continue. When the I/O thread runs again,
  /// its timers are due, but it has not read the sockets yet.
  func delay(_ duration: Milliseconds) {
    network.setLate(true)
    now += duration
    while let next = network.nextEvent, next <= now { network.run(to: next) }
    network.run(to: now)
    engine.jump(duration)
    network.setLate(false)
    settle()
  }

  func kinds(_ id: UInt64) -> [EventKind] { events.all.filter { $0.playback == id }.map(\.kind) }
  var paths: [String] { network.calls.map { "\($0.path) \($0.tokens.joined(separator: ","))" } }

  /// Closes the context, waits for all replies, checks that nothing is left, and ends the engine.
  func finish(_ comment: Comment = "") {
    engine.beginClosing()
    settle()
    run(until: now + 60_000)
    let left = engine.sync {
      (
        self.engine.playbacks.count, self.engine.requests.transfers.count, self.engine.timers.count,
        self.engine.requests.queuedCount, self.engine.slots.teardownCount
      )
    }
    #expect(left == (0, 0, 0, 0, 0), "\(comment): playbacks, transfers, timers, queued, giving back")
    #expect(network.objections == [], comment)
    for id in playbacks {
      #expect(
        kinds(id).filter { $0 == .playbackClosed }.count == 1,
        "\(comment): playback \(id): \(kinds(id).map { string($0.name) })")
    }
    let answered = answers.all.map(\.license)
    #expect(
      answered.count == Set(answered).count && answered.count == licensesAsked,
      "\(comment): \(answered.count) of \(licensesAsked) licences answered")
    // The head-end must hold no session whose newest token the client has received.
    for session in network.look({ $0.alive }) where session.isNewestReceived {
      Issue.record(
        "\(comment): leaked the session of playback \(session.playback); teardowns sent: \(session.teardownsSent)")
    }
    engine.stop()
  }
}
