import CPlatform
import Glibc
import Testing

@testable import UsherCore
@testable import UsherEngine

/// Tests what a process finds in a journal if the process that wrote the journal has died.
@Suite struct JournalTests {
  static let keys: [Secret?] = [nil, JournalScene.someKey]

  @Test(arguments: keys.indices) func record_ofADeadProcess_isFoundWithItsNewestToken(index: Int) {
    let scene = JournalScene(key: Self.keys[index])
    scene.die(with: "s1", "s2", "s3")
    let found = scene.found()
    #expect(found.tokens == ["t: s3"] && found.faults == "")
    // A context that finds a record does not remove it by itself. So the next context finds the record too.
    #expect(scene.found().tokens == ["t: s3"])
  }

  /// Each slot of the page has two copies of a record and two updates. A journal with a key decrypts all these one
  /// after another in the same buffer, in each slot the older ones last. Afterwards this buffer must not contain any
  /// record or update.
  @Test(arguments: keys.indices) func journal_thatHasReadAllRecords_hasNoneInItsBuffer(index: Int) {
    let scene = JournalScene(key: Self.keys[index])
    let dead = scene.open()
    for playback in 1...UInt64(JournalFile.slotCount) {
      for token in ["s1", "s2"] { #expect(dead.keep(scene.record(token), of: playback)) }
      for token in ["s3", "s4"] { #expect(dead.update(playback, token: secret(token), lifetime: 120_000)) }
    }
    dead.end()
    let journal = scene.open()
    defer { journal.end() }
    #expect(journal.left.count == JournalFile.slotCount)
    #expect(journal.buffer.allSatisfy { $0 == 0 })
  }

  @Test func record_isReadAsTheRequestThatItsWriterMade() throws {
    let scene = JournalScene(key: JournalScene.someKey)
    scene.die(with: "s1")
    let journal = scene.open()
    let record = try #require(journal.left.first)
    let request = try #require(try LeftSession.request(record.record, insecure: false, sendsCookies: true))
    let lines = request.headers.map { $0.withBytes { String(decoding: $0.dropLast(), as: UTF8.self) } }
    #expect(lines == ["t: s1", "Cookie: lb=server-7"])
    #expect(request.method == .post && request.isUrgent && !request.opensSession)
    #expect(String(decoding: request.endpoint.url.dropLast(), as: UTF8.self) == "https://head-end/teardown")
    #expect(request.body?.withBytes { Array($0) } == Array("{}".utf8))
    #expect(record.session.policy.teardownRetries == 3 && record.session.policy.teardownTimeout == 3000)
    #expect(try LeftSession.request(record.record, insecure: false, sendsCookies: false)?.headers.count == 1)
  }

  @Test(arguments: keys.indices) func record_updated_hasTheNewTokenAndAllElse(index: Int) throws {
    let scene = JournalScene(key: Self.keys[index])
    let journal = scene.open()
    #expect(journal.keep(scene.record("s1", lifetime: 1), of: 7))
    for next in ["s2", "s3", "s4"] {
      #expect(journal.update(7, token: secret(next), lifetime: 120_000))
    }
    journal.end()
    let next = scene.open()
    defer { next.end() }
    let record = try #require(next.left.first, "the updated record has its first lifetime, which is over")
    let request = try #require(try LeftSession.request(record.record, insecure: false, sendsCookies: true))
    let lines = request.headers.map { $0.withBytes { String(decoding: $0.dropLast(), as: UTF8.self) } }
    #expect(lines == ["t: s4", "Cookie: lb=server-7"])
    #expect(request.body?.withBytes { Array($0) } == Array("{}".utf8))
  }

  @Test func update_thatIsMoreThanANewToken_isRefused_andChangesNothing() {
    let scene = JournalScene()
    let journal = scene.open()
    #expect(!journal.update(7, token: secret("s2"), lifetime: 120_000), "there is no record")
    #expect(journal.keep(scene.record("s1"), of: 7))
    let before = scene.image
    #expect(!journal.update(7, token: secret("longer"), lifetime: 120_000))
    #expect(!journal.update(8, token: secret("s2"), lifetime: 120_000))
    #expect(scene.image == before)
    journal.clear(7)
    #expect(!journal.update(7, token: secret("s2"), lifetime: 120_000), "the record was cleared")
    #expect(!scene.contains("t: s"))
    #expect(journal.keep(scene.record("s8"), of: 8))
    #expect(journal.update(8, token: secret("s9"), lifetime: 120_000))
    journal.end()
    #expect(scene.found().tokens == ["t: s9"])
  }

  /// A record has two copies. A write that fails may leave half a record in one of them, so that only the other copy is
  /// whole. The next write must not change the whole copy.
  @Test func record_afterAWriteThatFailed_isWrittenToTheSameCopy() {
    let scene = JournalScene()
    let journal = scene.open()
    for token in ["s1", "s2"] { #expect(journal.keep(scene.record(token), of: 7)) }
    scene.whileTheDiskIsFull { #expect(!journal.keep(scene.record("s3"), of: 7)) }
    #expect(journal.takeFaults() == "the journal cannot be written: No space left on device")
    #expect(journal.keep(scene.record("s4"), of: 7))
    #expect(scene.contains("t: s2") && scene.contains("t: s4"))
    journal.end()
    #expect(scene.found().tokens == ["t: s4"])
  }

  /// A record has room for two updates. If the write of an update fails, perhaps only the earlier update is whole. So
  /// the next update must replace the failed one, and not the earlier one.
  @Test func update_afterAWriteThatFailed_isWrittenToTheSameCopy() {
    let scene = JournalScene()
    let journal = scene.open()
    #expect(journal.keep(scene.record("token-1"), of: 7))
    for token in ["token-2", "token-3"] { #expect(journal.update(7, token: secret(token), lifetime: 120_000)) }
    scene.whileTheDiskIsFull { #expect(!journal.update(7, token: secret("token-4"), lifetime: 120_000)) }
    #expect(journal.takeFaults() == "the journal cannot be written: No space left on device")
    #expect(journal.update(7, token: secret("token-5"), lifetime: 120_000))
    #expect(scene.contains("token-3") && scene.contains("token-5"))
    journal.end()
    #expect(scene.found().tokens == ["t: token-5"])
  }

  /// If the write of a record has failed, the file does not have this record. So the journal refuses to update it: the
  /// update would have a token that belongs to no record in the file.
  @Test func record_thatWasNotWritten_isNotUpdated() {
    let scene = JournalScene()
    let journal = scene.open()
    #expect(journal.keep(scene.record("s1"), of: 7))
    scene.whileTheDiskIsFull { #expect(!journal.keep(scene.record("s2"), of: 7)) }
    #expect(!journal.update(7, token: secret("s3"), lifetime: 120_000))
    journal.end()
    #expect(scene.found().tokens == ["t: s1"])
  }

  @Test func update_ofATokenThatIsTooLong_isRefused() {
    let scene = JournalScene()
    let journal = scene.open()
    for (size, fits) in [(4096 - 32 - 32, true), (4096 - 32 - 31, false)] {
      let first = String(repeating: "a", count: size)
      let next = String(repeating: "b", count: size)
      #expect(journal.keep(scene.record(first), of: 7))
      #expect(journal.update(7, token: secret(next), lifetime: 120_000) == fits)
    }
    journal.end()
  }

  @Test func recordOfALivingContext_isNotTouched_andEachContextHasItsPage() {
    let scene = JournalScene()
    let living = scene.open()
    #expect(living.keep(scene.record("living"), of: 7))
    let other = scene.open()
    #expect(other.left.isEmpty && other.faults == "" && other.keepsRecords)
    #expect(other.keep(scene.record("other"), of: 7))
    other.end()
    #expect(scene.found().tokens == ["t: other"])
    #expect(living.keep(scene.record("still living"), of: 7))
    living.end()
    #expect(scene.found().tokens == ["t: still living", "t: other"])
  }

  @Test func record_thatIsRemoved_isGoneAndItsPageIsFree() {
    let scene = JournalScene()
    scene.die(with: "s1", updated: "s2", "s3")
    let journal = scene.open()
    for record in journal.left { journal.remove(record) }
    #expect(journal.left.isEmpty && !scene.contains("t: s") && !scene.contains("s3"))
    journal.end()
    #expect(scene.found().tokens == [] && scene.found().faults == "")
  }

  @Test(arguments: keys.indices) func token_afterItsSessionHasEnded_isNotInTheFile(index: Int) {
    let scene = JournalScene(key: Self.keys[index])
    let journal = scene.open()
    for token in ["secret-1", "secret-2", "secret-3"] { #expect(journal.keep(scene.record(token), of: 7)) }
    for token in ["secret-4", "secret-5"] { #expect(journal.update(7, token: secret(token), lifetime: 120_000)) }
    #expect(scene.contains("secret-") == (Self.keys[index] == nil))
    journal.clear(7)
    journal.clear(7)
    #expect(!scene.contains("secret-"))
    #expect(journal.keep(scene.record("secret-6"), of: 8))
    journal.end()
    #expect(scene.found().tokens == ["t: secret-6"])
  }

  @Test func context_thatEndsWithoutSessions_leavesAFreePage() {
    let scene = JournalScene()
    scene.open().end()
    #expect(scene.image.start.isEmpty)
  }

  @Test func record_withoutRoom_isRefused_andNoOldTokenStays() {
    let scene = JournalScene()
    let journal = scene.open()
    for id in 1...64 as ClosedRange<UInt64> { #expect(journal.keep(scene.record("s\(id)"), of: id)) }
    #expect(!journal.keep(scene.record("s65"), of: 65))
    #expect(!journal.keep(scene.record("s1", body: String(repeating: "x", count: 8192)), of: 1))
    journal.end()
    let found = scene.found()
    #expect(found.tokens == (2...64).map { "t: s\($0)" } && found.faults == "")
  }

  @Test func contexts_beyondTheLastPage_workWithoutTheJournal() {
    let scene = JournalScene()
    let contexts = (0..<16).map { _ in scene.open() }
    #expect(contexts.allSatisfy { $0.keepsRecords && $0.faults == "" })
    let last = scene.open()
    #expect(!last.keepsRecords && !last.keep(scene.record("s1"), of: 1))
    #expect(last.faults == "the journal cannot be used: other contexts use all its pages")
    for context in contexts { context.end() }
    #expect(scene.open().keepsRecords)
  }

  // MARK: Time and place

  @Test func record_whoseSessionIsOver_isNotUsed() {
    let scene = JournalScene()
    scene.die(with: "s1")
    var later = MachineMoment.now()
    later.bootTime += 130_000
    // Somebody has set the wall clock back. Within one boot the library compares only the boot-time clock.
    later.wallTime -= 1_000_000
    #expect(scene.found(at: later).tokens == [] && scene.found(at: later).faults == "")
    var sameBoot = MachineMoment.now()
    sameBoot.wallTime += 1_000_000
    scene.die(with: "s1")
    #expect(scene.found(at: sameBoot).tokens == ["t: s1"])
  }

  @Test(arguments: [true, false]) func record_ofAnotherBoot_isJudgedByTheWallClock(isKnown: Bool) {
    let scene = JournalScene()
    scene.die(with: "s1")
    var moment = MachineMoment.now()
    moment.boot = isKnown ? [UInt8](repeating: 0x61, count: 40) : [UInt8](repeating: 0, count: 40)
    moment.bootTime = 5000
    #expect(scene.found(at: moment).tokens == ["t: s1"])
    // The machine has no battery for its clock, so its wall clock began at 0.
    moment.wallTime = 0
    #expect(scene.found(at: moment).tokens == ["t: s1"])
    moment.wallTime = MachineMoment.now().wallTime + 130_000
    #expect(scene.found(at: moment).tokens == [])
  }

  @Test func record_ofAnotherMachineOrUser_isNotUsed() {
    let scene = JournalScene()
    scene.die(with: "s1")
    let reason = "the journal has records that cannot be used: "
    var moment = MachineMoment.now()
    moment.machine &+= 1
    var found = scene.found(at: moment)
    #expect(found.tokens == [] && found.faults == reason + "they were written on another machine")
    scene.die(with: "s1")
    moment = MachineMoment.now()
    moment.user += 1
    found = scene.found(at: moment)
    #expect(found.tokens == [] && found.faults == reason + "another user wrote them")
  }

  /// Somebody copies the file while its host lives, and then starts a host with the copy.
  @Test func copyOfTheFile_isNotUsed() {
    let scene = JournalScene()
    let living = scene.open()
    #expect(living.keep(scene.record("living"), of: 7))
    let image = scene.image
    #expect(rename(scene.path, scene.folder + "/moved") == 0)
    Glibc.close(Glibc.open(scene.path, O_RDWR | O_CREAT, 0o600))
    scene.image = image
    let found = scene.found()
    #expect(found.tokens == [])
    #expect(found.faults.hasSuffix("the file is a copy of the file in which they were written"))
    living.end()
  }

  /// The file has the page of a dead context a second time, at another place. The next context uses the record only at
  /// the place where the dead context wrote it, and reports the other page.
  @Test func page_inAnotherPlaceOfTheFile_isNotUsed() {
    let scene = JournalScene()
    scene.die(with: "s1")
    var image = scene.image
    let first = image.start
    image.start += [UInt8](repeating: 0, count: image.size - first.count) + first
    image.size *= 2
    scene.image = image
    let found = scene.found()
    #expect(found.tokens == ["t: s1"])
    #expect(found.faults.hasSuffix("the file is a copy of the file in which they were written"))
  }

  // MARK: Keys

  @Test func record_withAnotherKey_isNotUsed() {
    let scene = JournalScene(key: JournalScene.someKey)
    scene.die(with: "s1")
    let found = scene.found(key: Secret([UInt8](repeating: 1, count: 32)))
    #expect(found.tokens == [])
    #expect(found.faults == "the journal has records that cannot be used: journal_key is another key")
  }

  @Test func record_inClearOrEncrypted_isUsedOnlyByAContextOfTheSameKind() {
    let clear = JournalScene()
    clear.die(with: "s1")
    #expect(clear.found(key: JournalScene.someKey).faults.contains("they are in clear"))
    let sealed = JournalScene(key: JournalScene.someKey)
    sealed.die(with: "s1")
    let journal = Journal(JournalOptions(path: Array(sealed.path.utf8) + [0], key: nil, setupDelayMax: 1))
    #expect(journal.left.isEmpty && journal.faults.contains("they are encrypted"))
  }

  /// No nonce is used twice: the same record looks different in each use of the page and in each write.
  @Test func sameRecord_isNeverEncryptedTheSameWay() {
    let scene = JournalScene(key: JournalScene.someKey)
    var seen: Set<[UInt8]> = []
    for _ in 0..<8 {
      let journal = scene.open()
      for record in journal.left { journal.remove(record) }
      for _ in 0..<4 {
        #expect(journal.keep(scene.record("s1"), of: 7))
        let bytes = scene.image.start
        for start in stride(from: 0, to: bytes.count, by: JournalFile.pageSize) {
          for copy in 0..<2 {
            let body = Array(bytes.dropFirst(start + 4096 + copy * 8192 + 32).prefix(64))
            if body.contains(where: { $0 != 0 }) { seen.insert(body) }
          }
        }
      }
      journal.end()
    }
    #expect(seen.count == 32)
  }
}
