import Testing

@testable import UsherEngine

/// Tests which names get a thread for their lookup, and which answers the table uses.
@Suite struct NameTableTests {
  /// A table whose lookups end when the test calls `end`.
  private final class Names {
    private(set) var running: [NameLookup] = []
    private(set) lazy var table = NameTable(wakeFD: -1) { [unowned self] in
      running.append($0)
      return true
    }
    private var ids: UInt64 = 0

    static func name(_ host: String) throws -> HostAndPort { try #require(.named(Array(host.utf8), port: 80)) }

    /// Asks for the addresses of a host, as a request does. Returns whether the table knows them now. If the table does
    /// not know the addresses, but can look the host up, the request waits for the answer.
    @discardableResult
    func ask(_ host: String, now: Int64) throws -> Bool {
      let name = try Self.name(host)
      switch table.find(name, now: now) {
      case .ready: return true
      case .noThread: return false
      case .unknown:
        ids += 1
        table.wait(name, NameTable.Waiting(id: ids, request: request(), isFresh: false, deadline: now + 5000))
        return false
      }
    }

    /// Ends the oldest lookup of a host. Returns for each waiting request whether it got addresses.
    func end(_ host: String, _ addresses: String, now: Int64) throws -> [Bool] {
      let name = try Self.name(host)
      let index = try #require(running.firstIndex { $0.name == name })
      running.remove(at: index).end(Array(addresses.utf8))
      return table.takeAnswered(now: now).map { $0.addresses != nil }
    }

    func running(_ host: String) throws -> Int {
      let name = try Self.name(host)
      return running.filter { $0.name == name }.count
    }

    func networkChanged(now: Int64) { table.forgetAll(now: now) }
    func pass(until now: Int64) { _ = table.takeOverdue(now: now) }
  }

  /// The name server does not answer the lookups of eight names, which use all threads. After a second these lookups
  /// count as slow, and another name gets a thread.
  @Test func name_afterEightWithoutAnswer_isLookedUpWithinASecond() throws {
    let names = Names()
    for number in 0..<8 { try names.ask("dead\(number).test", now: 0) }
    try names.ask("good.test", now: 10)
    #expect(try names.running("good.test") == 0)
    #expect(names.table.nextDeadline == 1000)
    names.pass(until: 1000)
    #expect(try names.running("good.test") == 1)
    #expect(try names.end("good.test", "127.0.0.1", now: 1010) == [true])
  }

  /// The lookups of twenty names have failed, and requests ask for all these names again. Together these names get only
  /// eight threads. A name whose lookup has not failed gets a ninth thread at once.
  @Test func names_whoseLookupsFailed_leaveThreadsToOtherNames() throws {
    let names = Names()
    for number in 0..<20 { try names.ask("dead\(number).test", now: 0) }
    for number in 0..<20 {
      if try names.running("dead\(number).test") == 0 { names.pass(until: 1000 * Int64(number / 8)) }
      _ = try names.end("dead\(number).test", "", now: 4000)
    }
    #expect(names.running.isEmpty)
    for number in 0..<20 { try names.ask("dead\(number).test", now: 4500) }
    #expect(names.running.count == 8)
    try names.ask("good.test", now: 4500)
    #expect(try names.running("good.test") == 1)
  }

  /// A name whose last lookup failed counts as slow for five seconds, and lookups that run use all threads for slow
  /// names. After these five seconds the name no longer counts as slow. So this name gets a thread at once, although
  /// none of the slow lookups has ended.
  @Test func name_thatNoLongerCountsAsSlow_isLookedUpAtOnce() throws {
    let names = Names()
    for number in 0..<8 { try names.ask("dead\(number).test", now: 0) }
    try names.ask("good.test", now: 1000)
    names.pass(until: 1000)
    _ = try names.end("good.test", "", now: 1000)
    names.pass(until: 5000)
    try names.ask("good.test", now: 5000)
    #expect(try names.running("good.test") == 0)
    #expect(names.table.nextDeadline == 6000)
    names.pass(until: 6000)
    #expect(try names.running("good.test") == 1)
  }

  /// The name server of many names does not answer. Eight of these names get a thread each second, until 24 threads are
  /// in use. Then the network changes. The name of a session's server, which a lookup found before, gets a thread at
  /// once.
  @Test func name_thatWasFound_isLookedUpBesideManyNewNames() throws {
    let names = Names()
    try names.ask("session.test", now: 0)
    #expect(try names.end("session.test", "127.0.0.1", now: 0) == [true])
    for number in 0..<50 { try names.ask("dead\(number).test", now: 500 * Int64(number / 8)) }
    #expect(names.running.count == 24)
    names.networkChanged(now: 4000)
    #expect(try !names.ask("session.test", now: 4000))
    #expect(try names.running("session.test") == 1)
    try names.ask("new.test", now: 4000)
    #expect(try names.running("new.test") == 0)
  }

  /// Requests ask for a hundred names. The table remembers the addresses of the newest names only.
  @Test func names_moreThanTheTableRemembers_areForgotten() throws {
    let names = Names()
    for number in 0..<100 {
      try names.ask("host\(number).test", now: Int64(number))
      _ = try names.end("host\(number).test", "127.0.0.1", now: Int64(number))
    }
    #expect(try names.ask("host99.test", now: 100))
    #expect(try !names.ask("host0.test", now: 100))
  }

  /// Each lookup that finds addresses changes `version`; a lookup that finds none does not.
  @Test func version_changesWithEachAnswer() throws {
    let names = Names()
    let before = names.table.version
    try names.ask("good.test", now: 0)
    _ = try names.end("good.test", "", now: 10)
    #expect(names.table.version == before)
    try names.ask("good.test", now: 20)
    _ = try names.end("good.test", "127.0.0.1", now: 30)
    #expect(names.table.version != before)
  }

  /// The network changes ten times while a lookup gets no answer; the table uses at most two threads for this name.
  @Test func lookup_withoutAnswerWhileTheNetworkChanges_isRepeatedOnce() throws {
    let names = Names()
    try names.ask("dead.test", now: 0)
    for change in 1...10 { names.networkChanged(now: 100 * Int64(change)) }
    #expect(try names.running("dead.test") == 2)
  }

  /// The network changes before each answer arrives. The waiting request uses the answer, and the next request begins
  /// another lookup.
  @Test func answer_fromBeforeTheNetworkChanged_isUsedAndAskedForAgain() throws {
    let names = Names()
    try names.ask("good.test", now: 0)
    names.networkChanged(now: 5)
    names.networkChanged(now: 10)
    #expect(try names.end("good.test", "127.0.0.1", now: 12) == [true])
    #expect(try names.end("good.test", "127.0.0.2", now: 14) == [])
    #expect(names.running.isEmpty)
    #expect(try names.ask("good.test", now: 20))
    #expect(try names.running("good.test") == 1)
  }

  /// The network changes during a lookup, so the table begins a second lookup. The first lookup then fails; the request
  /// waits for the second one.
  @Test func failure_fromBeforeTheNetworkChanged_doesNotCount() throws {
    let names = Names()
    try names.ask("good.test", now: 0)
    names.networkChanged(now: 5)
    #expect(try names.end("good.test", "", now: 10) == [])
    #expect(try names.end("good.test", "127.0.0.1", now: 20) == [true])
  }
}
