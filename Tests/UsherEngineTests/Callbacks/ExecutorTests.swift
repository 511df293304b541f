import Testing

@testable import UsherCore
@testable import UsherEngine

/// A list to which several threads add values.
final class Notes<Value> {
  private let monitor = Monitor()
  private var values: [Value] = []
  func add(_ value: Value) {
    monitor.locked {
      values.append(value)
      monitor.broadcast()
    }
  }
  /// A copy of the values in separate memory. Without this copy, the reader would share the array, and the next `add`
  /// would copy it after reading the reference count. ThreadSanitizer does not see reference counts, so it would report
  /// a race between `add` and the reader.
  var all: [Value] { monitor.locked { values.map { $0 } } }
  /// Returns all values and removes them.
  func takeAll() -> [Value] {
    monitor.locked {
      defer { values = [] }
      return values
    }
  }
  /// Waits until the list has `count` values.
  /// - Returns: false if the list has fewer values after `limit` milliseconds.
  func wait(for count: Int, atMost limit: Int64 = 10_000) -> Bool {
    let end = monotonicMilliseconds() + limit
    return monitor.locked {
      while values.count < count { if !monitor.wait(until: end) { return false } }
      return true
    }
  }
}

@Suite struct ExecutorTests {
  @Test func oneLane_runsInOrder() {
    let executor = ThreadedExecutor(cap: 8, onChange: { _ in })
    let notes = Notes<Int>()
    for index in 0..<2000 { _ = executor.enqueue(1) { notes.add(index) } }
    executor.shutDown()
    #expect(notes.all == Array(0..<2000))
    #expect(executor.pending == 0)
  }

  @Test func afterCalls_runsAfterTheCallsOfItsLane() {
    let executor = ThreadedExecutor(cap: 2, onChange: { _ in })
    let gate = Wait<Int>()
    let notes = Notes<String>()
    _ = executor.enqueue(1) { _ = gate.wait() }
    #expect(executor.afterCalls(of: 1) { notes.add("after") })
    _ = executor.enqueue(1) { notes.add("call") }
    #expect(!executor.afterCalls(of: 2) { notes.add("after no call") })
    gate.end(1)
    executor.shutDown()
    #expect(notes.all == ["call", "after"])
    #expect(executor.pending == 0)
  }

  /// A lane still runs a `destroy` and the work of an earlier `afterCalls`, but no callback of the host. If a thread
  /// then calls `afterCalls` for this lane, the executor does not delay the work: `afterCalls` returns false.
  @Test func afterCalls_waitsForCallsOnly() {
    let executor = ThreadedExecutor(cap: 2, onChange: { _ in })
    let call = Wait<Int>()
    let woken = Notes<Int>()
    let gate = Wait<Int>()
    _ = executor.enqueue(1) { _ = call.wait() }
    _ = executor.enqueueDestroy(1) { _ = gate.wait() }
    #expect(executor.afterCalls(of: 1) { woken.add(1) })
    #expect(
      executor.afterCalls(of: 1) {
        woken.add(2)
        _ = gate.wait()
      })
    call.end(1)
    #expect(woken.wait(for: 2))
    #expect(!executor.afterCalls(of: 1) {})
    #expect(executor.pending == 3, "the `destroy` and two pieces of work after the call")
    gate.end(1)
    executor.shutDown()
    #expect(executor.pending == 0)
  }

  @Test func afterCalls_whileTheExecutorEnds_waitsForTheCalls() {
    let executor = ThreadedExecutor(cap: 1, onChange: { _ in })
    let ender = ThreadedExecutor(cap: 1, onChange: { _ in })
    let call = Wait<Int>()
    let notes = Notes<String>()
    _ = executor.enqueue(1) {
      _ = call.wait()
      notes.add("call")
    }
    _ = ender.enqueue(1) { executor.shutDown() }
    #expect(executor.afterCalls(of: 1) { notes.add("after") })
    call.end(1)
    ender.shutDown()
    #expect(notes.all == ["call", "after"])
  }

  @Test func lanes_whileOneBlocks_goOn() {
    let executor = ThreadedExecutor(cap: 4, onChange: { _ in })
    let gate = Wait<Int>()
    let notes = Notes<UInt64>()
    _ = executor.enqueue(1) { _ = gate.wait() }
    for lane in 2...50 as ClosedRange<UInt64> { _ = executor.enqueue(lane) { notes.add(lane) } }
    #expect(notes.wait(for: 49))
    gate.end(1)
    executor.shutDown()
  }

  @Test func lanes_beyondTheCap_waitTheirTurn() {
    let executor = ThreadedExecutor(cap: 2, onChange: { _ in })
    let gate = Wait<Int>()
    let running = Notes<UInt64>()
    let done = Notes<UInt64>()
    for lane in 1...6 as ClosedRange<UInt64> {
      _ = executor.enqueue(lane) {
        running.add(lane)
        _ = gate.wait()
        done.add(lane)
      }
    }
    #expect(running.wait(for: 2))
    #expect(running.all.count == 2 && executor.pending == 6)
    gate.end(1)
    executor.shutDown()
    #expect(Set(done.all) == [1, 2, 3, 4, 5, 6])
  }

  @Test func lanes_thatAllBlock_runBesideEachOther() {
    let executor = ThreadedExecutor(cap: 8, onChange: { _ in })
    let running = Notes<UInt64>()
    let gate = Wait<Int>()
    for lane in 1...8 as ClosedRange<UInt64> {
      _ = executor.enqueue(lane) {
        running.add(lane)
        _ = gate.wait()
      }
    }
    #expect(running.wait(for: 8))
    gate.end(1)
    executor.shutDown()
    #expect(executor.pending == 0)
  }

  @Test func lane_whoseJobBlocks_keepsItsOrderWhileOthersComeAndGo() {
    let executor = ThreadedExecutor(cap: 3, onChange: { _ in })
    let notes = Notes<(lane: UInt64, number: Int)>()
    let gates = (0..<4).map { _ in Wait<Int>() }
    for number in 0..<200 {
      _ = executor.enqueue(1) {
        if number % 50 == 49 { _ = gates[number / 50].wait() }
        notes.add((1, number))
      }
      _ = executor.enqueue(UInt64(2 + number % 5)) { notes.add((UInt64(2 + number % 5), number)) }
    }
    for (index, gate) in gates.enumerated() {
      #expect(notes.wait(for: 200 + 49 + 50 * index))
      gate.end(1)
    }
    executor.shutDown()
    for lane in 1...6 as ClosedRange<UInt64> {
      let numbers = notes.all.filter { $0.lane == lane }.map(\.number)
      #expect(numbers == numbers.sorted() && numbers.count == (lane == 1 ? 200 : 40))
    }
  }

  @Test func lanes_queuedOneByOneByManyThreads_areAllRun() {
    let executor = ThreadedExecutor(cap: 4, onChange: { _ in })
    let feeders = ThreadedExecutor(cap: 4, onChange: { _ in })
    let notes = Notes<UInt64>()
    for feeder in 1...4 as ClosedRange<UInt64> {
      _ = feeders.enqueue(feeder) {
        for number in 0..<2000 as Range<UInt64> { _ = executor.enqueue(feeder << 32 | number) { notes.add(number) } }
      }
    }
    #expect(notes.wait(for: 8000))
    feeders.shutDown()
    executor.shutDown()
    #expect(notes.all.count == 8000)
  }

  @Test func shutDown_runsWhatIsQueuedAndThenTakesNothing() {
    let executor = ThreadedExecutor(cap: 1, onChange: { _ in })
    let notes = Notes<Int>()
    for index in 0..<100 { _ = executor.enqueue(UInt64(index % 7)) { notes.add(index) } }
    executor.shutDown()
    #expect(notes.all.count == 100)
    #expect(!executor.enqueue(1) { notes.add(-1) })
    #expect(notes.all.count == 100)
  }

  @Test func jobs_queuedByJobsDuringShutDown_runToo() {
    let executor = ThreadedExecutor(cap: 2, onChange: { _ in })
    let notes = Notes<Int>()
    let gate = Wait<Int>()
    _ = executor.enqueue(1) {
      _ = gate.wait()
      _ = executor.enqueue(1) { notes.add(1) }
      _ = executor.enqueue(2) { notes.add(2) }
    }
    gate.end(1)
    executor.shutDown()
    #expect(Set(notes.all) == [1, 2])
  }

  @Test func callbackThreads_areTold_fromOthers() {
    let executor = ThreadedExecutor(cap: 1, onChange: { _ in })
    let inside = Wait<Bool>()
    _ = executor.enqueue(1) { inside.end(isCallbackThread()) }
    #expect(inside.wait())
    #expect(!isCallbackThread())
    executor.shutDown()
  }

  @Test func manyThreadsEnqueue_everyLaneKeepsItsOrder() {
    let executor = ThreadedExecutor(cap: 6, onChange: { _ in })
    let feeders = ThreadedExecutor(cap: 4, onChange: { _ in })
    let notes = Notes<(lane: UInt64, number: Int)>()
    for lane in 1...4 as ClosedRange<UInt64> {
      _ = feeders.enqueue(lane) {
        for number in 0..<500 { _ = executor.enqueue(lane) { notes.add((lane, number)) } }
      }
    }
    feeders.shutDown()
    executor.shutDown()
    for lane in 1...4 as ClosedRange<UInt64> {
      #expect(notes.all.filter { $0.lane == lane }.map(\.number) == Array(0..<500))
    }
  }

  @Test func wait_endedTwice_keepsTheFirstValue() {
    let wait = Wait<Int>()
    wait.end(1)
    wait.end(2)
    #expect(wait.wait() == 1)
  }

  @Test func hostReference_whoseLastHolderReleasesIt_isDestroyedOnceOnACallbackThread() throws {
    let executor = ThreadedExecutor(cap: 1, onChange: { _ in })
    let userData = AcceptedUserData(executor: executor)
    let notes = Notes<Bool>()
    var reference: HostReference? = HostReference(userData, lane: 3, destroy: { notes.add(isCallbackThread()) })
    try reference?.accept()
    _ = executor.enqueue(3) { [reference] in _ = reference }
    reference = nil
    executor.shutDown()
    userData.endAll()
    #expect(notes.all == [true])
  }

  @Test func hostReference_heldWhenTheContextEnds_isDestroyedThenAndNotLater() throws {
    let executor = ThreadedExecutor(cap: 1, onChange: { _ in })
    let userData = AcceptedUserData(executor: executor)
    let notes = Notes<Int>()
    var held: [HostReference] = []
    for number in 0..<3 {
      held.append(HostReference(userData, lane: 3, destroy: { notes.add(isCallbackThread() ? number : -1) }))
      try held[number].accept()
    }
    held.remove(at: 1)
    executor.shutDown()
    userData.endAll()
    #expect(notes.all.sorted() == [0, 1, 2])
    held.removeAll()
    #expect(notes.all.count == 3)
  }

  @Test func hostReference_ofAContextThatHasEnded_isRefusedAndDestroyedByItsHolder() {
    let executor = ThreadedExecutor(cap: 1, onChange: { _ in })
    let userData = AcceptedUserData(executor: executor)
    let notes = Notes<Bool>()
    executor.shutDown()
    userData.endAll()
    var reference: HostReference? = HostReference(userData, lane: 3, destroy: { notes.add(isCallbackThread()) })
    #expect(throws: UsherError.self) { try reference?.accept() }
    #expect(notes.all.isEmpty)
    reference = nil
    #expect(notes.all == [true])
  }

  @Test func pumped_jobThatHasRun_isFreedBeforeTheTurnEnds() throws {
    let executor = try #require(PumpedExecutor.make(onChange: { _ in }))
    let notes = Notes<String>()
    func enqueue() {
      let held = NotesItsEnd(notes)
      _ = executor.enqueue(1) {
        _ = executor.afterThisTurn { notes.add("the turn has ended") }
        _ = held
      }
    }
    enqueue()
    _ = executor.pump()
    #expect(notes.all == ["freed", "the turn has ended"])
    executor.shutDown()
  }

  @Test func pumped_jobRunsAtTheEndOfTheContext_aPumpOfAnotherThreadIsRefused() throws {
    let executor = try #require(PumpedExecutor.make(onChange: { _ in }))
    let ender = ThreadedExecutor(cap: 1, onChange: { _ in })
    let (isInside, gate) = (Wait<Bool>(), Wait<Bool>())
    let notes = Notes<Int>()
    _ = executor.enqueue(1) {
      isInside.end(true)
      _ = gate.wait()
      notes.add(1)
    }
    _ = executor.enqueue(1) { notes.add(2) }
    _ = ender.enqueue(1) { executor.shutDown() }
    #expect(isInside.wait())
    _ = executor.enqueue(1) { notes.add(3) }
    guard case .busy = executor.pump() else {
      Issue.record("two threads run callbacks at once")
      return gate.end(true)
    }
    gate.end(true)
    ender.shutDown()
    #expect(notes.all == [1, 2, 3])
  }

  @Test func pumped_jobThatComesWhileItIsServed_isRunAtOnce() throws {
    let executor = try #require(PumpedExecutor.make(onChange: { _ in }))
    let notes = Notes<Int>()
    let isOver = Wait<Bool>()
    _ = executor.enqueue(1) { notes.add(1) }
    let feeder = ThreadedExecutor(cap: 1, onChange: { _ in })
    _ = feeder.enqueue(1) {
      for number in 2...50 {
        _ = notes.wait(for: number - 1)
        _ = executor.enqueue(1) { notes.add(number) }
        guard notes.wait(for: number) else { break }
      }
      isOver.end(notes.wait(for: 50))
      executor.wake()
    }
    executor.serve { !isOver.isEnded }
    feeder.shutDown()
    executor.shutDown()
    #expect(isOver.wait() && notes.all == Array(1...50))
  }
}

private final class NotesItsEnd {
  private let notes: Notes<String>
  init(_ notes: Notes<String>) { self.notes = notes }
  deinit { notes.add("freed") }
}
