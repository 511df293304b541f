import Testing

@testable import UsherCore
@testable import UsherEngine

/// Tests which failed requests the dispatcher queues again.
@Suite struct RequestDispatcherTests {
  /// A transport that counts how often each request was started, and never completes a request.
  private final class CountingTransport: Transport {
    private(set) var starts: [TransferID: Int] = [:]

    func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool) { starts[id, default: 0] += 1 }
    func cancel(_ id: TransferID) -> Bool { true }
    func isReceived(_ id: TransferID) -> Bool { false }
    func wait(until instant: Int64?) -> Bool { false }
    func read() {}
    func wake() {}
    func takeFinished() -> [FinishedTransfer] { [] }
    func networkChanged() {}
    func shutDown() {}
  }

  /// Sends two requests. For the second one the system has no file descriptor.
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
}
