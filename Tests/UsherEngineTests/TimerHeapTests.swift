import Testing

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
}
