import Testing

@testable import UsherEngine

@Suite struct IDTableTests {
  @Test(arguments: 0..<20 as Range<UInt64>)
  func randomUse_againstADictionary_isTheSame(seed: UInt64) {
    var dice = Dice(seed)
    var table = IDTable<UInt64>()
    var model: [UInt64: UInt64] = [:]
    // The sets of ids to test: few or many ids, some close together and some far apart.
    let numbers = (1...(1 + dice.upTo(400))).map { dice.one(in: 2) ? $0 : max(1, dice.next()) }
    for _ in 0..<3000 {
      let id = dice.pick(numbers)
      switch dice.upTo(3) {
      case 0, 1:
        let value = dice.next()
        table[id] = value
        model[id] = value
      case 2:
        let removed = table.remove(id)
        #expect(removed == model.removeValue(forKey: id))
      default: #expect(table[id] == model[id])
      }
      #expect(table.count == model.count)
    }
    #expect(table.sortedIDs == model.keys.sorted())
    #expect(numbers.allSatisfy { table[$0] == model[$0] })
  }

  @Test func empty_knowsNothing() {
    var table = IDTable<Int>()
    let removed = table.remove(7)
    #expect(table[7] == nil && removed == nil && table.sortedIDs.isEmpty)
    table[7] = nil
    #expect(table.count == 0)
  }

  @Test func value_setToNil_isRemoved() {
    var table = IDTable<Int>()
    for id in 1...100 as ClosedRange<UInt64> { table[id] = Int(id) }
    for id in 1...100 as ClosedRange<UInt64> where id % 3 != 0 { table[id] = nil }
    #expect(table.count == 33 && table[99] == 99 && table[98] == nil)
  }
}
