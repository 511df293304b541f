import Testing

@testable import UsherCore
@testable import UsherEngine

@Suite struct TimerHeapTests {
  @Test func timers_setInAnyOrder_ringSoonestFirst() {
    var heap = TimerHeap<Int>()
    for at in [50, 10, 40, 20, 30] { _ = heap.set(at: UInt64(at), at) }
    var rung: [Int] = []
    while let target = heap.popDue(now: 45) { rung.append(target) }
    #expect(rung == [10, 20, 30, 40])
    #expect(heap.next() == 50)
  }

  @Test func timers_ofOneInstant_ringInTheOrderTheyWereSet() {
    var heap = TimerHeap<Int>()
    for index in 0..<100 { _ = heap.set(at: 5, index) }
    var rung: [Int] = []
    while let target = heap.popDue(now: 5) { rung.append(target) }
    #expect(rung == Array(0..<100))
  }

  @Test func timer_cancelled_neverRings() {
    var heap = TimerHeap<Int>()
    let first = heap.set(at: 1, 1)
    _ = heap.set(at: 2, 2)
    heap.cancel(first)
    heap.cancel(first)
    heap.cancel(nil)
    heap.cancel(999)
    #expect(heap.next() == 2 && heap.count == 1)
    #expect(heap.popDue(now: 10) == 2)
    #expect(heap.popDue(now: 10) == nil)
    #expect(heap.next() == nil && heap.count == 0)
  }

  @Test func timer_postponed_keepsItsIdAndRingsLater() {
    var heap = TimerHeap<Int>()
    let first = heap.set(at: 1, 1)
    _ = heap.set(at: 2, 2)
    _ = heap.set(at: 4, 4)
    heap.postponeFirst(to: 3)
    #expect(heap.count == 3 && heap.next() == 2)
    #expect(heap.popDue(now: 3) == 2 && heap.first == 1)
    heap.cancel(first)
    #expect(heap.next() == 4 && heap.count == 1)
  }

  @Test func timer_never_isNotDueBeforeTheEndOfTime() {
    var heap = TimerHeap<Int>()
    _ = heap.set(at: .max, 1)
    #expect(heap.popDue(now: .max - 1) == nil)
    #expect(heap.popDue(now: .max) == 1)
  }

  @Test(arguments: 0..<4 as Range<UInt64>)
  func randomUse_againstASortedList_isTheSame(seed: UInt64) {
    var dice = Dice(seed)
    var heap = TimerHeap<UInt64>()
    var model: [(at: UInt64, id: UInt64)] = []
    var now: UInt64 = 0
    for _ in 0..<4000 {
      switch dice.upTo(9) {
      case 0...4:
        let at = now + dice.upTo(1000)
        let expected = (model.map(\.id).max() ?? 0)
        let id = heap.set(at: at, at)
        #expect(id > expected)
        model.append((at, id))
      case 5...7 where !model.isEmpty:
        let victim = model.remove(at: Int(dice.upTo(UInt64(model.count - 1))))
        heap.cancel(victim.id)
      default:
        now += dice.upTo(300)
        let due = model.filter { $0.at <= now }.sorted { ($0.at, $0.id) < ($1.at, $1.id) }
        model.removeAll { $0.at <= now }
        var rung: [UInt64] = []
        while let at = heap.popDue(now: now) { rung.append(at) }
        #expect(rung == due.map(\.at))
      }
      #expect(heap.count == model.count)
      #expect(heap.next() == model.map(\.at).min())
    }
  }
}
