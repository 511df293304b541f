import Testing

@testable import UsherCore

@Suite struct PlayerMachineTests {
  private func words(_ actions: [PlayerMachine<Int>.Action]) -> [String] {
    actions.map {
      switch $0 {
      case .start(let item): return "start \(item)"
      case .close(let item): return "close \(item)"
      case .replace(let item): return "replace \(item)"
      }
    }
  }

  @Test func play_onAFreePlayer_startsAtOnce() {
    var player = PlayerMachine<Int>()
    let step1 = words(player.play(1))
    #expect(step1 == ["start 1"])
    #expect(player.current == 1 && player.waiting == nil)
  }

  @Test func zap_waitsUntilTheOldItemIsReleased() {
    var player = PlayerMachine<Int>()
    _ = player.play(1)
    let step2 = words(player.play(2))
    #expect(step2 == ["close 1"])
    let step3 = words(player.nextMayStart(after: 1))
    #expect(step3 == ["start 2"])
    #expect(player.current == 2)
  }

  @Test func zap_thatDoesNotWait_closesTheOldItemAndStartsAtOnce() {
    var player = PlayerMachine<Int>()
    _ = player.play(1)
    let step1 = words(player.play(2, waits: false))
    #expect(step1 == ["close 1", "start 2"])
    #expect(player.current == 2 && player.waiting == nil)
    let step2 = words(player.nextMayStart(after: 1))
    #expect(step2 == [])
    #expect(player.current == 2)
  }

  @Test func zap_thatDoesNotWait_replacesTheItemThatWaits() {
    var player = PlayerMachine<Int>()
    _ = player.play(1)
    _ = player.play(2)
    let step1 = words(player.play(3, waits: false))
    #expect(step1 == ["replace 2", "close 1", "start 3"])
    let step2 = words(player.nextMayStart(after: 2))
    #expect(step2 == [])
    #expect(player.current == 3)
  }

  @Test func zaps_inQuickSuccession_newestWinsAndThoseBetweenAreReplaced() {
    var player = PlayerMachine<Int>()
    _ = player.play(1)
    _ = player.play(2)
    let step4 = words(player.play(3))
    #expect(step4.contains("replace 2"))
    _ = player.nextMayStart(after: 2)
    let step5 = words(player.play(4))
    #expect(step5.contains("replace 3"))
    _ = player.nextMayStart(after: 3)
    let step6 = words(player.nextMayStart(after: 1))
    #expect(step6 == ["start 4"])
  }

  @Test func nextMayStart_twiceOrAfterAStranger_changesNothing() {
    var player = PlayerMachine<Int>()
    _ = player.play(1)
    let step7 = words(player.nextMayStart(after: 9))
    #expect(step7 == [])
    let step8 = words(player.nextMayStart(after: 1))
    #expect(step8 == [])
    let step9 = words(player.nextMayStart(after: 1))
    #expect(step9 == [])
    let step10 = words(player.play(2))
    #expect(step10 == ["start 2"])
  }

  @Test func waitingItem_closedBeforeItsTurn_isNotStarted() {
    var player = PlayerMachine<Int>()
    _ = player.play(1)
    _ = player.play(2)
    let step11 = words(player.nextMayStart(after: 2))
    #expect(step11 == [])
    let step12 = words(player.nextMayStart(after: 1))
    #expect(step12 == [])
    #expect(player.current == nil)
  }

  @Test func randomZaps_whateverTheOrder_oneAtATimeAndTheNewestLast() {
    for seed in 0..<500 as Range<UInt64> {
      var dice = Dice(seed)
      var player = PlayerMachine<Int>()
      var started: [Int] = []
      var playing: Set<Int> = []
      var next = 1
      for _ in 0..<40 {
        let actions: [PlayerMachine<Int>.Action]
        if dice.one(in: 2) {
          actions = player.play(next)
          next += 1
        } else if let current = player.current {
          playing.remove(current)
          actions = player.nextMayStart(after: current)
        } else {
          continue
        }
        for case .start(let item) in actions {
          #expect(playing.isEmpty, "seed \(seed)")
          playing.insert(item)
          started.append(item)
        }
      }
      while let current = player.current {
        playing.remove(current)
        for case .start(let item) in player.nextMayStart(after: current) {
          started.append(item)
          playing.insert(item)
        }
      }
      #expect(started == started.sorted(), "seed \(seed)")
      #expect(next == 1 || started.last == next - 1, "seed \(seed)")
    }
  }
}
