import Testing

@testable import UsherEngine

/// Tests which ready sockets the transport reads next, and when it interrupts reading so that the engine can send
/// keep-alives.
@Suite struct SweepTests {
  /// The ready sockets of a test; each has the number of the sweep in which it had its last turn. All of them stay
  /// ready.
  private struct Sockets {
    var sweep = Sweep()
    var last: [UInt32]
    var slow: Set<Int> = []
    var now: Int64 = 0
    var looks: UInt64 = 0
    private(set) var isComplete = false

    init(_ count: Int) { last = Array(repeating: 0, count: count) }

    /// Runs one part of the sweep. Returns the sockets that the transport read in this part.
    /// - Parameter cost: returns for each socket how many milliseconds its turn takes. No watchdog runs here: this
    ///   function itself counts one look of the watchdog for every 5 ms.
    mutating func part(_ cost: (Int) -> Int64) -> [Int] {
      sweep.beginPart(now: now, looks: looks)
      var served: [Int] = []
      for isSlow in [false, true] {
        for socket in last.indices where slow.contains(socket) == isSlow {
          guard sweep.givesTurn(last: last[socket], isSlow: isSlow) else { continue }
          served.append(socket)
          last[socket] = sweep.number
          looks += UInt64((now + cost(socket)) / 5 - now / 5)
          now += cost(socket)
          let time = now
          _ = sweep.turnEnded(looks: looks, clock: { time })
        }
      }
      isComplete = sweep.endPart()
      return served
    }
  }

  /// Does the same as `#expect(value == expected)`. But `value` may call a mutating function, which `#expect` refuses.
  private func expect<Value: Equatable>(
    _ value: Value, _ expected: Value, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(value == expected, sourceLocation: sourceLocation)
  }

  @Test func sockets_thatTakeNoTime_getTheirTurnsInOnePart() {
    var sockets = Sockets(100)
    expect(sockets.part { _ in 0 }, Array(0..<100))
    #expect(sockets.isComplete)
    expect(sockets.part { _ in 0 }, Array(0..<100))
  }

  /// Each turn takes 8 ms. A part ends after two turns, and no socket gets a second turn before every socket has had
  /// one.
  @Test func sockets_thatTakeLong_getOneTurnEach_inParts() {
    var sockets = Sockets(5)
    expect(sockets.part { _ in 8 }, [0, 1])
    #expect(!sockets.isComplete)
    expect(sockets.part { _ in 8 }, [2, 3])
    expect(sockets.part { _ in 8 }, [4])
    #expect(sockets.isComplete)
    expect(sockets.part { _ in 8 }, [0, 1])
  }

  /// A server sends little and often, on socket 4. Four sockets of a slow server are ready all the time. Each part
  /// reads socket 4 first, and gives a turn to one socket of the slow server.
  @Test func socketOfAFastServer_beforeSlowOnes_getsATurnInEachPart() {
    var sockets = Sockets(5)
    sockets.slow = [0, 1, 2, 3]
    for turn in 0..<4 { expect(sockets.part { $0 == 4 ? 0 : 30 }, [4, turn]) }
    #expect(sockets.isComplete)
  }

  /// Fast servers use the whole time of each part. Still, each part reads one socket of a slow server, so that the
  /// sweep ends.
  @Test func socketsOfFastServers_thatUseTheWholeTime_doNotStopTheSweep() {
    var sockets = Sockets(6)
    sockets.slow = [4, 5]
    var parts: [[Int]] = []
    while !sockets.isComplete, parts.count < 20 { parts.append(sockets.part { _ in 6 }) }
    #expect(sockets.isComplete)
    #expect(Set(parts.joined()) == Set(0..<6))
    #expect(parts.count <= 5, "\(parts)")
  }

  @Test func turnEnded_reportsOnceThatTheWatchdogHasLooked() {
    var sweep = Sweep()
    sweep.beginPart(now: 0, looks: 7)
    expect(sweep.turnEnded(looks: 7, clock: { 0 }), false)
    expect(sweep.turnEnded(looks: 8, clock: { 5 }), true)
    expect(sweep.turnEnded(looks: 8, clock: { 5 }), false)
  }
}
