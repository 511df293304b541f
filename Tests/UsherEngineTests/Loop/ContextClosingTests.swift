import Testing

@testable import UsherCore
@testable import UsherEngine

/// Tests how long a context waits for servers when the host closes it.
@Suite(.timeLimit(.minutes(1))) struct ContextClosingTests {
  /// The time limit for closing passes on the context's clock, which continues while the machine sleeps. If several
  /// calls state a limit, the last one counts.
  @Test func limit_passesOnTheContextsClock() {
    let clock = Clock(isManual: true)
    let closing = ContextClosing(timers: Timers(), clock: clock)
    #expect(!closing.isRequested)
    closing.noteRequest(within: nil)
    #expect(closing.isRequested)
    #expect(closing.left == nil)
    closing.noteRequest(within: 5000)
    clock.set(2000)
    closing.noteRequest(within: nil)
    #expect(closing.left == 3000)
    clock.set(9000)
    #expect(closing.left == 0)
    closing.noteRequest(within: 1000)
    #expect(closing.left == 1000)
    closing.noteRequest(within: 0)
    #expect(closing.left == 6000)
  }

  /// The engine ends while a playback is open. A thread that closes the context afterwards does not wait for this
  /// playback.
  @Test func close_afterTheEngineHasEnded_returns() throws {
    let s = try #require(Simulation(ModelTransport(seed: 7, latencyMost: 0)))
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate())
    s.pass(10)
    s.engine.stop()
    let ended = Notes<Int>()
    let feeder = ThreadedExecutor(cap: 1, onChange: { _ in })
    _ = feeder.enqueue(1) {
      s.engine.beginClosing(within: 1000)
      s.engine.reportClosed(within: 1000)
      ended.add(s.engine.waitUntilClosed(atMost: 1000))
    }
    try #require(ended.wait(for: 1), "the thread waits for a playback that no longer exists")
    #expect(ended.all == [1], "the playback was not closed in time")
    feeder.shutDown()
  }
}
