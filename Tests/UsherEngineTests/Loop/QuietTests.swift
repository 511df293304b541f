import Testing

@testable import UsherCore
@testable import UsherEngine

@Suite struct QuietTests {
  /// One that waits, on a thread of its own.
  private struct Waiter {
    private let answer = Wait<Bool>()
    private let thread = ThreadedExecutor(cap: 1, onChange: { _ in })

    init(_ quiet: Quiet, transfers: Int, callbacks: Int, left: @escaping () -> Int = { 0 }) {
      let answer = answer
      _ = thread.enqueue(1) {
        let end = monotonicMilliseconds() + 60_000
        answer.end(
          quiet.wait(
            transfers: transfers, callbacksMost: callbacks, until: end, callbacks: left, commandsWaiting: { false }))
      }
    }

    /// What it was told; its thread has ended then.
    func wait() -> Bool {
      defer { thread.shutDown() }
      return answer.wait()
    }
  }

  @Test func wait_forSoManyTransfers_endsWhenThereAreNoMore() {
    let quiet = Quiet()
    let answer = Waiter(quiet, transfers: 2, callbacks: 0)
    for left in (2...50).reversed() {
      quiet.busy()
      quiet.stir()
      quiet.idle(transfers: left)
    }
    #expect(answer.wait())
  }

  @Test func wait_forCallbacks_endsWithTheLastOfThem() {
    let quiet = Quiet()
    let notes = Notes<Int>()
    quiet.idle(transfers: 0)
    let answer = Waiter(quiet, transfers: 0, callbacks: 1, left: { 20 - notes.all.count })
    for left in (0..<20).reversed() {
      notes.add(left)
      quiet.callbackEnded(left: left)
    }
    #expect(answer.wait())
  }

  @Test func wait_whileTransfersAreUnderWay_endsWithItsTime() {
    let quiet = Quiet()
    quiet.idle(transfers: 3)
    #expect(
      !quiet.wait(
        transfers: 2, callbacksMost: 0, until: monotonicMilliseconds() + 5, callbacks: { 0 }, commandsWaiting: { false }
      ))
    #expect(quiet.wait(transfers: 3, callbacksMost: 0, until: 0, callbacks: { 0 }, commandsWaiting: { false }))
    quiet.busy()
    #expect(!quiet.wait(transfers: 3, callbacksMost: 0, until: 0, callbacks: { 0 }, commandsWaiting: { false }))
  }

  @Test func manyWaiters_eachWithItsOwnWish_areAllToldInTime() {
    let quiet = Quiet()
    quiet.idle(transfers: 100)
    let answers = (0..<12).map { Waiter(quiet, transfers: $0 * 7, callbacks: 0) }
    for left in (0..<100).reversed() { quiet.idle(transfers: left) }
    #expect(answers.map { $0.wait() } == Array(repeating: true, count: 12))
  }
}
