import Testing

@testable import UsherCore

/// Tests the notices about one item, with stories and with all orders of events up to a length.
@Suite struct ItemNoticesTests {
  enum Event: CaseIterable, Hashable {
    case sessionStarted, waitsForSlot, licenseArrived, setupFailed, licenseFailed, renewalFailed, keepAliveFailed,
      recovered, teardownFailed, sessionEnded, sessionLeft, closed
  }

  private static func happen(_ event: Event, _ notices: inout ItemNotices) -> ItemNotices.Notice? {
    switch event {
    case .sessionStarted: return notices.sessionStarted()
    case .waitsForSlot: return notices.waitsForSlot()
    case .licenseArrived: return notices.licenseArrived()
    case .setupFailed, .licenseFailed: return notices.failed(mustStop: true)
    case .renewalFailed: return notices.failed(mustStop: false)
    case .keepAliveFailed: return notices.keepAliveFailed()
    case .recovered: return notices.recovered()
    case .teardownFailed: return notices.teardownFailed(UsherError(.timeout))
    case .sessionEnded: return notices.sessionEnded(left: false)
    case .sessionLeft: return notices.sessionEnded(left: true)
    case .closed: return notices.closed(orphanPossible: false)
    }
  }

  private static func story(_ events: [Event]) -> [ItemNotices.Notice] {
    var notices = ItemNotices()
    return events.compactMap { happen($0, &notices) }
  }

  static let stories: [([Event], [ItemNotices.Notice])] = [
    ([.sessionStarted, .licenseArrived, .sessionEnded, .closed], [.ready, .tornDown]),
    ([.setupFailed, .licenseFailed, .closed], [.refused, .ended]),
    ([.waitsForSlot, .sessionStarted, .licenseArrived], [.waiting, .ready]),
    ([.waitsForSlot, .setupFailed, .licenseFailed], [.waiting, .refused]),
    ([.sessionStarted, .licenseFailed, .licenseArrived], [.refused, .ready]),
    ([.licenseArrived, .keepAliveFailed, .licenseArrived, .recovered], [.ready, .lost, .recovered]),
    ([.licenseArrived, .renewalFailed, .keepAliveFailed, .sessionEnded, .closed], [.ready, .lost, .tornDown]),
    ([.licenseArrived, .licenseFailed, .licenseArrived], [.ready, .lost, .recovered]),
    ([.sessionStarted, .keepAliveFailed, .licenseArrived, .recovered], [.refused, .ready]),
    // While an item plays, a new session replaces its session.
    ([.licenseArrived, .sessionEnded, .waitsForSlot, .sessionStarted, .closed], [.ready, .waiting, .ready, .ended]),
    ([.licenseArrived, .sessionEnded, .waitsForSlot, .setupFailed], [.ready, .waiting, .lost]),
    ([.licenseArrived, .teardownFailed, .sessionEnded, .closed], [.ready, .ended]),
    // The host closes the item and leaves its session to expire. Later the host asks for the teardown of this session.
    ([.licenseArrived, .sessionLeft, .closed, .sessionEnded], [.ready, .ended, .tornDown]),
    ([.licenseArrived, .sessionLeft, .closed, .teardownFailed, .sessionEnded], [.ready, .ended, .ended])
  ]

  @Test(arguments: stories) func notices_ofAStory(events: [Event], expected: [ItemNotices.Notice]) {
    #expect(Self.story(events) == expected)
  }

  @Test func closed_withAPossibleOrphan_isNotTornDown() {
    var notices = ItemNotices()
    _ = notices.sessionEnded(left: false)
    #expect(notices.closed(orphanPossible: true) == .ended)
  }

  @Test func teardownError_isKept() {
    var notices = ItemNotices()
    _ = notices.teardownFailed(UsherError(.timeout))
    #expect(notices.teardownError?.status == .timeout)
  }

  /// Tries all orders of five events. Checks that each notice may follow the previous one (`mayFollow`): for example,
  /// RECOVERED comes only after LOST, and after the end only TORN_DOWN and ENDED come. Also checks that after each
  /// phase comes only a phase that the comment of the earlier phase lists.
  @Test func notices_inEachOrderOfEvents_areTrue() {
    let log = TransitionLog()
    var broken: [String] = []
    func search(_ notices: ItemNotices, _ last: ItemNotices.Notice?, _ path: [Event]) {
      guard path.count < 5, broken.count < 5 else { return }
      for event in Event.allCases {
        var next = notices
        let told = Self.happen(event, &next)
        if next.phase != notices.phase { log.add("ItemNotices", "\(notices.phase)", "\(next.phase)") }
        if let told, !Self.mayFollow(told, last) {
          broken.append("\(path + [event]): \(told) after \(last.map { "\($0)" } ?? "nothing")")
        }
        search(next, told ?? last, path + [event])
      }
    }
    search(ItemNotices(), nil, [])
    #expect(broken == [])
    let comments = PhaseComments([.init("ItemNotices", in: "Sources/UsherCore/Playback/ItemNotices.swift")])
    #expect(comments.differences(log.transitions, isWhole: true) == [])
  }

  private static func mayFollow(_ notice: ItemNotices.Notice, _ last: ItemNotices.Notice?) -> Bool {
    switch notice {
    case .ready: return last == nil || last == .waiting || last == .refused
    case .waiting: return last != .waiting && last != .lost && last != .tornDown && last != .ended
    case .refused: return last == nil || last == .waiting || last == .refused
    case .lost: return last == .ready || last == .recovered || last == .waiting
    case .recovered: return last == .lost
    // After the end of the item, the host may still tear down a session that the playback had left at the head-end:
    // tornDown if this teardown succeeds, and ended once more if it fails.
    case .tornDown, .ended: return true
    }
  }

  /// The teardown of a replaced session fails, and the teardown of the next session succeeds. Since the head-end may
  /// still hold the slot of the replaced session, the last notice is ENDED.
  @Test func teardownOfAReplacedSession_failed_isEnded() {
    var notices = ItemNotices()
    for event in [
      Event.sessionStarted, .licenseArrived, .teardownFailed, .sessionEnded, .sessionStarted, .sessionEnded
    ] {
      _ = Self.happen(event, &notices)
    }
    #expect(Self.happen(.closed, &notices) == .ended)
  }
}
