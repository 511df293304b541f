import Testing

@testable import UsherCore
@testable import UsherEngine

/// Tests which of the failed requests the dispatcher queues again.
@Suite struct RequestDispatcherTests {
  /// A transport that counts how often each request was started, and never completes a request.
  private final class CountingTransport: Transport {
    private(set) var starts: [TransferID: Int] = [:]
    /// The requests that used a new connection.
    private(set) var fresh: Set<TransferID> = []
    /// The requests whose bytes the operating system of the server has acknowledged.
    var received: Set<TransferID> = []

    func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool) {
      starts[id, default: 0] += 1
      if isFresh { fresh.insert(id) }
    }
    func cancel(_ id: TransferID) -> Bool { true }
    func isReceived(_ id: TransferID) -> Bool { received.contains(id) }
    func wait(until instant: Int64?) -> Bool { false }
    func read() -> Bool { true }
    func wake() {}
    func takeFinished() -> [FinishedTransfer] { [] }
    func networkChanged() {}
    func shutDown() {}
  }

  /// Sends two requests. The second one fails, because the operating system has no free file descriptor.
  private func sendTwo(mayHaveTakenEffect: Bool) -> (starts: Int?, queued: Int, failure: WireFailure?) {
    let transport = CountingTransport()
    let dispatcher = RequestDispatcher(
      transport: transport, timers: Timers(), clock: Clock(isManual: true), httpTimeout: 10_000,
      queue: RequestQueue(least: 8, most: 8))
    dispatcher.send(request(), for: .ssm(1, 1, .setup))
    let second = dispatcher.send(request(), for: .ssm(2, 1, .setup))
    let failure = WireFailure(.system, mayHaveTakenEffect: mayHaveTakenEffect)
    let reply = dispatcher.ended(FinishedTransfer(id: second, outcome: .failure(failure)))
    guard case .failure(let told) = reply?.outcome else {
      return (transport.starts[second], dispatcher.queuedCount, nil)
    }
    return (transport.starts[second], dispatcher.queuedCount, told)
  }

  @Test func request_refusedByTheSystemBeforeItWasSent_isQueuedAgain() {
    let result = sendTwo(mayHaveTakenEffect: false)
    #expect(result.queued == 1 && result.failure == nil)
  }

  @Test func request_refusedByTheSystemAfterTheServerMayHaveReadIt_isNotSentAgain() {
    let result = sendTwo(mayHaveTakenEffect: true)
    #expect(result.queued == 0 && result.starts == 1)
    #expect(result.failure?.status == .system && result.failure?.mayHaveTakenEffect == true)
  }

  /// Sends keep-alives to many origins on a virtual clock. No server replies.
  private final class Hanging {
    let transport = CountingTransport()
    let timers = Timers()
    let clock = Clock(isManual: true)
    let dispatcher: RequestDispatcher
    private var playback: PlaybackID = 0

    init(connectionsMax: Int) {
      dispatcher = RequestDispatcher(
        transport: transport, timers: timers, clock: clock, httpTimeout: 10_000,
        queue: RequestQueue(least: 16, most: 512, connectionsMax: connectionsMax))
    }

    func beat(_ host: String) -> TransferID {
      playback += 1
      return dispatcher.send(request(host: host, urgent: true), for: .ssm(playback, 1, .heartbeat))
    }

    /// Moves the clock by `duration`. Returns the requests that failed in this time.
    func pass(_ duration: Milliseconds) -> [RequestDispatcher.Reply] {
      var failed: [RequestDispatcher.Reply] = []
      for _ in 0..<duration {
        clock.set(clock.now + 1)
        while case .transfer(let id)? = timers.popDue(now: clock.now) {
          if let reply = dispatcher.timerFired(id) { failed.append(reply) }
        }
      }
      return failed
    }
  }

  /// Four servers hang, and their keep-alives use all connections. A keep-alive to another server is sent within
  /// 1.1 s: the dispatcher ends a stalled keep-alive of the origin that has the most connections.
  @Test func keepAlive_whileOtherOriginsHang_takesAConnectionOfTheLargest() {
    let s = Hanging(connectionsMax: 16)
    for number in 0..<40 { _ = s.beat("hanging\(number % 4)") }
    _ = s.pass(300)
    let good = s.beat("good")
    let failed = s.pass(1100)
    #expect(s.transport.starts[good] == 1)
    #expect(failed.contains { $0.transfer.origin != Array("good".utf8) })
    #expect(failed.count <= 4, "only as many as are needed: \(failed.count)")
  }

  /// The network changes while two keep-alives are in flight. The server has acknowledged only one of them: the other
  /// one fails a second later, and the next request uses a new connection.
  @Test func keepAlive_unacknowledgedWhenTheNetworkChanges_failsASecondLater() {
    let s = Hanging(connectionsMax: 16)
    let (acknowledged, lost) = (s.beat("server"), s.beat("server"))
    s.transport.received = [acknowledged]
    _ = s.pass(300)
    s.dispatcher.networkChanged()
    #expect(s.pass(999).isEmpty)
    let failed = s.pass(1)
    #expect(failed.count == 1)
    guard case .failure(let failure)? = failed.first?.outcome else { return }
    #expect(failure.status == .timeout && failure.mayHaveTakenEffect)
    let next = s.beat("server")
    #expect(s.transport.fresh.contains(next))
    #expect(s.dispatcher.transfers[acknowledged] != nil && s.dispatcher.transfers[lost] == nil)
  }

  /// The network changes while a set-up is in flight. The session does not repeat a set-up, so the request keeps its
  /// time-out.
  @Test func setup_unacknowledgedWhenTheNetworkChanges_keepsItsTimeout() {
    let s = Hanging(connectionsMax: 16)
    s.dispatcher.send(request(), for: .ssm(1, 1, .setup))
    s.dispatcher.networkChanged()
    #expect(s.pass(9999).isEmpty)
    #expect(s.pass(1).count == 1)
  }

  /// The I/O thread did not run for some time: the next request to each origin uses a new connection.
  @Test func request_afterAStop_usesANewConnection() {
    let s = Hanging(connectionsMax: 16)
    let before = s.beat("server")
    s.dispatcher.hasStopped()
    let after = s.beat("server")
    #expect(s.transport.fresh == [after] && before != after)
  }
}
