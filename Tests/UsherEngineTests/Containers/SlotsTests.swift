import Testing

@testable import UsherEngine

@Suite struct SlotsTests {
  @Test func numbers_areGivenOnce_andTheNewerTheHigher() {
    var slots = Slots<Int>()
    var given: [UInt64] = []
    for round in 0..<50 {
      let id = slots.insert(round)
      given.append(id)
      if round % 3 != 0 { slots.remove(id) }
    }
    #expect(given == given.sorted() && Set(given).count == 50 && !given.contains(0))
    #expect(slots.count == 17 && slots.ids.compactMap { slots[$0] } == Array(stride(from: 0, to: 50, by: 3)))
  }

  @Test func removed_isNotFoundEvenWhereItsPlaceIsTakenAgain() {
    var slots = Slots<String>()
    let first = slots.insert("first")
    let removed = slots.remove(first)
    let second = slots.insert("second")
    let again = slots.remove(first)
    #expect(removed == "first" && again == nil && slots[first] == nil && slots[second] == "second")
    #expect(Slots<String>.place(first) == Slots<String>.place(second))
  }

  @Test func unknownNumbers_areNothing() {
    var slots = Slots<Int>()
    let known = slots.insert(1)
    for id in [0, 1, known + 1, known + 1 << 24, .max] as [UInt64] {
      let removed = slots.remove(id)
      #expect(slots[id] == nil && removed == nil && !slots.contains(id))
    }
    #expect(slots.count == 1)
  }
}
