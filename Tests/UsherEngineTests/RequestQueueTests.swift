import Testing

@testable import UsherCore
@testable import UsherEngine

@Suite struct RequestQueueTests {
  private let origin = Array("head-end".utf8)

  @Test func requests_beyondTheBound_wait() {
    var queue = RequestQueue(bound: 2)
    let got1 = [1, 2, 3, 4].map { queue.admit($0, request()) }
    #expect(got1 == [true, true, false, false])
    #expect(queue.waitingCount == 2)
    let got2 = queue.free(origin)?.id
    #expect(got2 == 3)
    let got3 = queue.free(origin)?.id
    #expect(got3 == 4)
    #expect(queue.waitingCount == 0)
    let got4 = queue.free(origin)
    #expect(got4 == nil)
    let admitted = queue.admit(5, request())
    #expect(admitted)
  }

  @Test func urgentRequests_passTheOthersButNotEachOther() {
    var queue = RequestQueue(bound: 1)
    _ = queue.admit(1, request())
    for (id, urgent) in [(2, false), (3, true), (4, false), (5, true)] as [(TransferID, Bool)] { _ = queue.admit(id, request(urgent: urgent)) }
    var order: [TransferID] = []
    while let next = queue.free(origin) { order.append(next.id) }
    #expect(order == [3, 5, 2, 4])
  }

  @Test func origins_doNotWaitForEachOther() {
    var queue = RequestQueue(bound: 1)
    let got5 = [queue.admit(1, request(host: "a")), queue.admit(2, request(host: "b")), queue.admit(3, request(host: "a"))]
    #expect(got5 == [true, true, false])
    let got6 = queue.free(Array("b".utf8))
    #expect(got6 == nil)
    let got7 = queue.free(Array("a".utf8))?.id
    #expect(got7 == 3)
  }

  @Test func withdrawn_requestIsNeverSent() {
    var queue = RequestQueue(bound: 1)
    for (id, urgent) in [(1, false), (2, false), (3, true)] as [(TransferID, Bool)] { _ = queue.admit(id, request(urgent: urgent)) }
    let got8 = [queue.withdraw(3, origin), queue.withdraw(3, origin), queue.withdraw(1, origin), queue.withdraw(2, Array("b".utf8))]
    #expect(got8 == [true, false, false, false])
    #expect(queue.waitingCount == 1)
    let got9 = queue.free(origin)?.id
    #expect(got9 == 2)
  }

  @Test func free_tooOften_neverGivesMorePlacesThanTheBound() {
    var queue = RequestQueue(bound: 2)
    for _ in 0..<5 { _ = queue.free(origin) }
    let got10 = [1, 2, 3].map { queue.admit($0, request()) }
    #expect(got10 == [true, true, false])
  }

  @Test func bound_zero_isOne() {
    var queue = RequestQueue(bound: 0)
    let got11 = [1, 2].map { queue.admit($0, request()) }
    #expect(got11 == [true, false])
  }

  @Test func randomUse_keepsTheBoundAndLosesNothing() {
    for seed in 0..<50 as Range<UInt64> {
      var dice = Dice(seed)
      let bound = 1 + Int(dice.upTo(5))
      var queue = RequestQueue(bound: bound)
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
          if let started = queue.free(origin) {
            #expect(waiting.remove(started.id) != nil)
            underWay.insert(started.id)
          }
        }
        #expect(underWay.count <= bound && queue.waitingCount == waiting.count)
        #expect(waiting.isEmpty || underWay.count == bound)
      }
    }
  }
}
