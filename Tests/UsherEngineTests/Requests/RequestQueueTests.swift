import Testing

@testable import UsherCore
@testable import UsherEngine

extension RequestQueue {
  /// Ends a request. Returns the next request that gets a permit.
  fileprivate mutating func passOn(_ origin: [UInt8]) -> TransferID? {
    ended(origin, hadPermit: true)
    return next()?.id
  }
}

@Suite struct RequestQueueTests {
  private let origin = Array("head-end".utf8)

  @Test func origin_keepsConnections_fromItsFirstReplyOnAKeptOneUntilARequestFails() {
    var queue = RequestQueue(least: 2, most: 2)
    var found: [Bool] = []
    func look() { found.append(queue.keepsConnections(origin)) }
    _ = queue.admit(1, request())
    look()
    queue.answered(origin, after: 300, now: 0)
    look()
    queue.answered(origin, after: 300, onKeptConnection: true, now: 0)
    look()
    queue.ended(origin, hadPermit: true)
    look()
    queue.distrust(origin)
    look()
    queue.answered(origin, after: 300, now: 0)
    look()
    #expect(found == [false, false, true, true, false, false])
  }

  @Test func idleTime_thatTheOriginNames_isUsableLessTwoSeconds() {
    var queue = RequestQueue(least: 2, most: 2)
    _ = queue.admit(1, request())
    #expect(queue.usableIdleSeconds(origin) == nil)
    for (named, usable) in [(60, 58), (3, 1), (2, 0), (0, 0), (1_000_000, 118)] {
      queue.answered(origin, after: 300, idleSeconds: named, now: 0)
      queue.answered(origin, after: 300, now: 0)
      let found = queue.usableIdleSeconds(origin)
      #expect(found == usable)
    }
  }

  @Test func origins_unusedForLong_areForgotten() {
    var queue = RequestQueue(least: 2, most: 2)
    queue.distrust(origin)
    for number in 0..<100 {
      let other = request(host: "host \(number)")
      _ = queue.admit(TransferID(number), other)
      queue.ended(other.endpoint.origin, hadPermit: true)
    }
    let isRemembered = queue.isDistrusted(origin)
    #expect(!isRemembered)
  }

  @Test func requests_beyondTheBound_wait() {
    var queue = RequestQueue(least: 2, most: 2)
    let got1 = [1, 2, 3, 4].map { queue.admit($0, request()) }
    #expect(got1 == [true, true, false, false])
    #expect(queue.waitingCount == 2)
    let got2 = queue.passOn(origin)
    #expect(got2 == 3)
    let got3 = queue.passOn(origin)
    #expect(got3 == 4)
    #expect(queue.waitingCount == 0)
    let got4 = queue.passOn(origin)
    #expect(got4 == nil)
    let admitted = queue.admit(5, request())
    #expect(admitted)
  }

  @Test func urgentRequests_passTheOthersButNotEachOther() {
    var queue = RequestQueue(least: 1, most: 1)
    _ = queue.admit(1, request())
    for (id, urgent) in [(2, false), (3, true), (4, false), (5, true)] as [(TransferID, Bool)] {
      _ = queue.admit(id, request(urgent: urgent))
    }
    var order: [TransferID] = []
    while let next = queue.passOn(origin) { order.append(next) }
    #expect(order == [3, 5, 2, 4])
  }

  @Test func origins_doNotWaitForEachOther() {
    var queue = RequestQueue(least: 1, most: 1)
    let got5 = [
      queue.admit(1, request(host: "a")), queue.admit(2, request(host: "b")), queue.admit(3, request(host: "a"))
    ]
    #expect(got5 == [true, true, false])
    let got6 = queue.passOn(Array("b".utf8))
    #expect(got6 == nil)
    let got7 = queue.passOn(Array("a".utf8))
    #expect(got7 == 3)
  }

  @Test func withdrawn_requestIsNeverSent() {
    var queue = RequestQueue(least: 1, most: 1)
    for (id, urgent) in [(1, false), (2, false), (3, true)] as [(TransferID, Bool)] {
      _ = queue.admit(id, request(urgent: urgent))
    }
    let got8 = [
      queue.withdraw(3, origin), queue.withdraw(3, origin), queue.withdraw(1, origin),
      queue.withdraw(2, Array("b".utf8))
    ]
    #expect(got8 == [true, false, false, false])
    #expect(queue.waitingCount == 1)
    let got9 = queue.passOn(origin)
    #expect(got9 == 2)
  }

  @Test func free_tooOften_neverGivesMorePlacesThanTheBound() {
    var queue = RequestQueue(least: 2, most: 2)
    for _ in 0..<5 { _ = queue.passOn(origin) }
    let got10 = [1, 2, 3].map { queue.admit($0, request()) }
    #expect(got10 == [true, true, false])
  }

  @Test func bound_zero_isOne() {
    var queue = RequestQueue(least: 0, most: 0)
    let got11 = [1, 2].map { queue.admit($0, request()) }
    #expect(got11 == [true, false])
  }

  @Test func randomUse_keepsTheBoundAndLosesNothing() {
    for seed in 0..<50 as Range<UInt64> {
      var dice = Dice(seed)
      let bound = 1 + Int(dice.upTo(5))
      var queue = RequestQueue(least: bound, most: bound)
      var underWay: Set<TransferID> = []
      var waiting: Set<TransferID> = []
      var next: TransferID = 1
      for _ in 0..<500 {
        if dice.one(in: 2) {
          if queue.admit(next, request(urgent: dice.one(in: 3))) { underWay.insert(next) } else { waiting.insert(next) }
          next += 1
        } else if dice.one(in: 4), let victim = waiting.randomElement(using: &dice) {
          let withdrawn = queue.withdraw(victim, origin)
          #expect(withdrawn)
          waiting.remove(victim)
        } else if let done = underWay.randomElement(using: &dice) {
          underWay.remove(done)
          if let started = queue.passOn(origin) {
            #expect(waiting.remove(started) != nil)
            underWay.insert(started)
          }
        }
        #expect(underWay.count <= bound && queue.waitingCount == waiting.count)
        #expect(waiting.isEmpty || underWay.count == bound)
      }
    }
  }

  /// Returns the number of permits in use after each round trip, while other requests wait. The origin replies to each
  /// request after `microseconds`.
  private func growth(_ microseconds: Int64, least: Int = 4, most: Int = 64, trips: Int = 8) -> [Int] {
    var queue = RequestQueue(least: least, most: most)
    var next: TransferID = 0
    var underWay = 0
    for _ in 0..<1000 {
      if queue.admit(next, request()) { underWay += 1 }
      next += 1
    }
    return (0..<trips).map { _ in
      for _ in 0..<underWay {
        queue.answered(origin, after: microseconds, now: 0)
        queue.ended(origin, hadPermit: true)
        underWay -= 1
        while queue.next() != nil { underWay += 1 }
      }
      return underWay
    }
  }

  @Test func bound_whereAnswersTakeLong_treblesWithEachRoundTripUpToTheMost() {
    #expect(growth(50_000) == [12, 36, 64, 64, 64, 64, 64, 64])
  }

  @Test func bound_isWhatKeepsAThreadBusyAtTheOriginsPace() {
    #expect(growth(6_400).last == 32)
    #expect(growth(800).last == 4)
    #expect(growth(0).last == 4)
    #expect(growth(50_000, least: 4, most: 4).last == 4)
  }

  @Test func bound_whereNobodyWaits_staysWhereItWas() {
    var queue = RequestQueue(least: 2, most: 64)
    for id in 0..<100 as Range<TransferID> {
      let isAdmitted = queue.admit(id, request())
      #expect(isAdmitted)
      queue.answered(origin, after: 90_000, now: 0)
      queue.ended(origin, hadPermit: true)
    }
    let places = (100..<110 as Range<TransferID>).map { queue.admit($0, request()) }
    #expect(places.filter { $0 }.count == 2)
  }

  /// Returns the number of permits after replies that took these times in µs (nil: the connection was refused), while
  /// other requests wait.
  private func places(_ answers: [Int64?], least: Int = 2) -> Int {
    var queue = RequestQueue(least: least, most: 64)
    for id in 0..<200 as Range<TransferID> { _ = queue.admit(id, request()) }
    for microseconds in answers { queue.answered(origin, after: microseconds, now: 0) }
    var count = least
    while queue.next() != nil { count += 1 }
    return count
  }

  @Test func bound_whereOneAnswerOfManyIsSlow_staysSmall() {
    #expect(places((0..<100).map { $0 % 5 == 4 ? 90_000 : 300 }) == 2)
  }

  @Test func bound_whereOneAnswerOfManyIsQuick_growsAllTheSame() {
    #expect(places((0..<100).map { $0 % 20 == 0 ? 300 : 90_000 }) == 64)
  }

  @Test func bound_isNotJudgedByRefusals() {
    #expect(places((0..<100).map { $0 % 2 == 0 ? nil : 90_000 }) == 64)
    #expect(places(Array(repeating: nil, count: 100)) == 2)
  }

  @Test func bound_whereRequestsStall_growsForUrgentOnesAsIfTheyWereSlowAnswers() {
    #expect(stalls(urgent: true) == [12, 36, 64, 64])
    #expect(stalls(urgent: false) == [4, 4, 4, 4])
  }

  /// Returns how many requests the queue sends in each second if the origin never replies.
  private func stalls(urgent: Bool) -> [Int] {
    var queue = RequestQueue(least: 4, most: 64)
    for id in 0..<200 as Range<TransferID> { _ = queue.admit(id, request(urgent: urgent)) }
    var underWay = 4
    return (0..<4).map { _ -> Int in
      for _ in 0..<underWay {
        queue.stalled(origin)
        queue.free(origin)
      }
      underWay = 0
      while queue.next() != nil { underWay += 1 }
      return underWay
    }
  }

  @Test func bound_thatGrewWhileOthersWait_isForThemFirst() {
    var queue = RequestQueue(least: 1, most: 64)
    let admitted = (1...2 as ClosedRange<TransferID>).map { queue.admit($0, request(urgent: true)) }
    queue.answered(origin, after: 90_000, now: 0)
    let later = [queue.admit(3, request()), queue.admit(4, request(urgent: true))]
    let next = [queue.next()?.id, queue.next()?.id]
    #expect(admitted == [true, false] && later == [false, false] && next == [2, 4])
  }

  @Test func hasAnswered_knowsOfTheOriginsLastAnswer() {
    var queue = RequestQueue(least: 1, most: 1)
    for id in 1...3 as ClosedRange<TransferID> { _ = queue.admit(id, request()) }
    let atFirst = queue.hasAnswered(origin, since: 0)
    queue.answered(origin, after: 1, now: 500)
    let later = [400, 500, 501].map { queue.hasAnswered(origin, since: $0) }
    let elsewhere = queue.hasAnswered(Array("b".utf8), since: 0)
    #expect(!atFirst && later == [true, true, false] && !elsewhere)
  }

  // MARK: Connections

  /// Returns how many of `count` requests to an origin get a connection.
  private func connected(
    _ queue: inout RequestQueue, _ count: Int, host: String = "a", urgent: Bool = false, from first: TransferID
  ) -> Int {
    (0..<count).filter { queue.admit(first + TransferID($0), request(host: host, urgent: urgent)) }.count
  }

  @Test(arguments: [(1, 1), (2, 2), (3, 3), (4, 4), (24, 20), (504, 404)])
  func oneOrigin_ofUrgentRequests_leavesAFifthOfTheConnections(most: Int, expected: Int) {
    var queue = RequestQueue(least: 4096, most: 4096, connectionsMax: most)
    #expect(connected(&queue, 600, urgent: true, from: 0) == expected)
    #expect(queue.waitingCount == 600 - expected)
  }

  @Test func origins_thatHang_leaveConnectionsToOthersAndToUrgentRequests() {
    var queue = RequestQueue(least: 4096, most: 4096, connectionsMax: 24)
    #expect(connected(&queue, 50, host: "a", from: 0) == 16)
    #expect(connected(&queue, 50, host: "a", urgent: true, from: 100) == 4)
    #expect(connected(&queue, 50, host: "b", urgent: true, from: 200) == 4)
    #expect(connected(&queue, 50, host: "c", urgent: true, from: 300) == 0)
  }

  @Test func connections_allInUse_nextIsTheUrgentOneOfTheOriginWithTheFewest() {
    var queue = RequestQueue(least: 9, most: 9, connectionsMax: 3)
    #expect(connected(&queue, 3, host: "a", urgent: true, from: 1) == 3)
    _ = queue.admit(11, request(host: "a", urgent: true))
    _ = queue.admit(12, request(host: "b"))
    _ = queue.admit(13, request(host: "c", urgent: true))
    let order = (0..<3).map { _ -> TransferID? in
      queue.ended(Array("a".utf8), hadPermit: true)
      return queue.next()?.id
    }
    #expect(order == [13, 11, 12])
  }

  @Test func keepAlive_withoutPermitAndConnection_isTheNextAndHasNoPermit() {
    var queue = RequestQueue(least: 1, most: 1, connectionsMax: 1)
    let admitted = (1...3 as ClosedRange<TransferID>).map { queue.admit($0, request(urgent: true)) }
    let isSent = queue.sendsWithoutPermit(3, origin)
    #expect(admitted == [true, false, false] && !isSent && queue.waitingCount == 2)
    queue.ended(origin, hadPermit: true)
    let next = queue.next()
    #expect(next == RequestQueue.Next(id: 3, hasPermit: false))
    let withdrawn = [queue.withdraw(3, origin), queue.withdraw(2, origin)]
    #expect(withdrawn == [false, true] && queue.waitingCount == 0)
  }

  @Test func keepAlive_withAConnectionLeft_isSentWithoutAPermit() {
    var queue = RequestQueue(least: 1, most: 1, connectionsMax: 2)
    for id in 1...2 as ClosedRange<TransferID> { _ = queue.admit(id, request(urgent: true)) }
    let isSent = queue.sendsWithoutPermit(2, origin)
    #expect(isSent && queue.waitingCount == 0 && queue.next() == nil)
  }

  @Test func randomUse_keepsTheConnectionBoundAndLosesNothing() {
    for seed in 0..<50 as Range<UInt64> {
      var dice = Dice(seed)
      let most = 1 + Int(dice.upTo(9))
      var queue = RequestQueue(least: 2, most: 4, connectionsMax: most)
      var connected: [TransferID: (host: String, hasPermit: Bool)] = [:]
      var waiting: [TransferID: (host: String, isUrgent: Bool)] = [:]
      for id in 0..<600 as Range<TransferID> {
        let host = dice.pick(["a", "b", "c"])
        switch dice.upTo(4) {
        case 0, 1:
          let isUrgent = dice.one(in: 2)
          if queue.admit(id, request(host: host, urgent: isUrgent)) {
            connected[id] = (host, true)
          } else {
            waiting[id] = (host, isUrgent)
          }
        case 2:
          guard let (id, entry) = waiting.filter({ $0.value.isUrgent }).min(by: { $0.key < $1.key }) else { continue }
          if queue.sendsWithoutPermit(id, Array(entry.host.utf8)) {
            waiting[id] = nil
            connected[id] = (entry.host, false)
          }
        default:
          guard let (id, entry) = connected.min(by: { $0.key < $1.key }) else { continue }
          connected[id] = nil
          queue.ended(Array(entry.host.utf8), hadPermit: entry.hasPermit)
        }
        while let next = queue.next() {
          #expect(waiting[next.id] != nil)
          connected[next.id] = (waiting.removeValue(forKey: next.id)?.host ?? "", next.hasPermit)
        }
        #expect(connected.count <= most && queue.waitingCount == waiting.count)
      }
      for _ in 0..<600 {
        guard let (id, entry) = connected.first else { break }
        connected[id] = nil
        queue.ended(Array(entry.host.utf8), hadPermit: entry.hasPermit)
        while let next = queue.next() {
          connected[next.id] = (waiting.removeValue(forKey: next.id)?.host ?? "", next.hasPermit)
        }
      }
      #expect(waiting.isEmpty, "with all connections free, every queued request is sent")
    }
  }
}
