import Testing

@testable import UsherCore
@testable import UsherEngine

@Suite struct IdleMonitorTests {
  /// Waits on a separate thread until the monitor reports that the engine is idle.
  private struct Waiter {
    private let answer = Wait<Bool>()
    private let thread = ThreadedExecutor(cap: 1, onChange: { _ in })

    init(_ idle: IdleMonitor, transfers: Int, callbacks: Int, left: @escaping () -> Int = { 0 }) {
      let answer = answer
      _ = thread.enqueue(1) {
        let end = monotonicMilliseconds() + 60_000
        answer.end(
          idle.wait(
            transfers: transfers, callbacksMost: callbacks, until: end, callbacks: left, commandsWaiting: { false }))
      }
    }

    /// Returns the result of the wait, and ends the thread.
    func wait() -> Bool {
      defer { thread.shutDown() }
      return answer.wait()
    }
  }

  @Test func wait_forSoManyTransfers_endsWhenThereAreNoMore() {
    let idle = IdleMonitor()
    let answer = Waiter(idle, transfers: 2, callbacks: 0)
    for left in (2...50).reversed() {
      idle.becameBusy()
      idle.noteActivity()
      idle.becameIdle(transfers: left)
    }
    #expect(answer.wait())
  }

  @Test func wait_forCallbacks_endsWithTheLastOfThem() {
    let idle = IdleMonitor()
    let notes = Notes<Int>()
    idle.becameIdle(transfers: 0)
    let answer = Waiter(idle, transfers: 0, callbacks: 1, left: { 20 - notes.all.count })
    for left in (0..<20).reversed() {
      notes.add(left)
      idle.callbackEnded(left: left)
    }
    #expect(answer.wait())
  }

  @Test func wait_whileTransfersAreUnderWay_endsWithItsTime() {
    let idle = IdleMonitor()
    idle.becameIdle(transfers: 3)
    #expect(
      !idle.wait(
        transfers: 2, callbacksMost: 0, until: monotonicMilliseconds() + 5, callbacks: { 0 }, commandsWaiting: { false }
      ))
    #expect(idle.wait(transfers: 3, callbacksMost: 0, until: 0, callbacks: { 0 }, commandsWaiting: { false }))
    idle.becameBusy()
    #expect(!idle.wait(transfers: 3, callbacksMost: 0, until: 0, callbacks: { 0 }, commandsWaiting: { false }))
  }

  @Test func manyWaiters_eachWithItsOwnWish_areAllToldInTime() {
    let idle = IdleMonitor()
    idle.becameIdle(transfers: 100)
    let answers = (0..<12).map { Waiter(idle, transfers: $0 * 7, callbacks: 0) }
    for left in (0..<100).reversed() { idle.becameIdle(transfers: left) }
    #expect(answers.map { $0.wait() } == Array(repeating: true, count: 12))
  }
}
