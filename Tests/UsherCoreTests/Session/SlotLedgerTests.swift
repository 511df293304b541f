import Testing

@testable import UsherCore

@Suite struct SlotLedgerTests {
  private final class Delegate {}
  private let one = Delegate()
  private let other = Delegate()

  private func headEnd(_ delegate: Delegate, _ origin: String? = nil) -> SlotLedger.HeadEnd {
    SlotLedger.HeadEnd(delegate: ObjectIdentifier(delegate), teardownOrigin: origin.map { Array($0.utf8) })
  }

  @Test func ownTeardowns_ofAnotherPlayback_areUnderWayThenEnded() {
    var ledger = SlotLedger()
    let mark = ledger.mark
    #expect(ledger.ownTeardowns(besides: 2, at: headEnd(one), since: mark) == .none)
    ledger.teardownBegan(1, at: headEnd(one))
    #expect(ledger.ownTeardowns(besides: 2, at: headEnd(one), since: mark) == .underWay)
    #expect(ledger.ownTeardowns(besides: 1, at: headEnd(one), since: mark) == .none)
    ledger.teardownEnded(1)
    #expect(ledger.ownTeardowns(besides: 2, at: headEnd(one), since: mark) == .ended)
    #expect(ledger.ownTeardowns(besides: 2, at: headEnd(one), since: ledger.mark) == .none)
  }

  @Test func teardownEnded_ofAPlaybackThatHadNone_isNoSlotGivenBack() {
    var ledger = SlotLedger()
    ledger.teardownEnded(1)
    #expect(ledger.mark == 0)
  }

  @Test func headEnds_ofTwoDelegates_areOneWhereTheirTeardownServerIs() {
    #expect(headEnd(one, "https://a:443") == headEnd(other, "https://a:443"))
    #expect(headEnd(one, "https://a:443") != headEnd(other, "https://b:443"))
    #expect(headEnd(one) == headEnd(one, "https://a:443"))
    #expect(headEnd(one) != headEnd(other))
  }

  @Test func waitingSetups_areReadyWhenTheLastTeardownAtTheirHeadEndEnds() {
    var ledger = SlotLedger()
    ledger.teardownBegan(1, at: headEnd(one))
    ledger.teardownBegan(2, at: headEnd(one))
    ledger.teardownBegan(3, at: headEnd(other))
    ledger.setupWaits(5, at: headEnd(one))
    ledger.setupWaits(4, at: headEnd(one))
    ledger.setupWaits(6, at: headEnd(other))
    ledger.teardownEnded(1)
    #expect(ledger.readyToRetry.isEmpty)
    ledger.teardownEnded(2)
    #expect(ledger.readyToRetry == [4, 5])
    ledger.setupWaitsNoLonger(4)
    ledger.setupWaitsNoLonger(5)
    ledger.teardownEnded(3)
    #expect(ledger.readyToRetry == [6])
  }
}
