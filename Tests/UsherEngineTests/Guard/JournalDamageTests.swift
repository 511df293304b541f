import CGuard
import Glibc
import Testing

@testable import UsherCore
@testable import UsherEngine

/// Tests journals that are damaged, for example by a loss of power. A context that opens such a journal finds a record
/// exactly as its writer wrote it (perhaps an older version of the record), or no record. If the context finds no
/// record, it reports a fault, with one exception: a file of zeros counts as an empty journal.
@Suite struct JournalDamageTests {
  private let written: Set<String> = ["t: s1", "t: s2", "t: s3"]

  /// The offsets of the bytes that the header and the records use.
  private func used(_ image: JournalScene.Image) -> [Int] {
    Array(0..<176) + image.start.indices.filter { $0 >= 4096 && image.start[$0] != 0 }
  }

  private func check(_ scene: JournalScene, _ what: @autoclosure () -> String) {
    let found = scene.found()
    let isRight = found.tokens.count == 1 ? written.contains(found.tokens[0]) : found.tokens.isEmpty
    #expect(isRight, "\(what()): \(found.tokens)")
    #expect(!found.tokens.isEmpty || !found.faults.isEmpty, "\(what()): nothing found, and no fault")
  }

  @Test(arguments: JournalTests.keys.indices) func file_cutAtEachByte_givesARecordAsItWas_orNone(index: Int) {
    let scene = JournalScene(key: JournalTests.keys[index])
    scene.die(with: "s1", "s2", "s3")
    let image = scene.image
    for cut in used(image).dropFirst() + [5000, 100_000, image.size - 1] {
      scene.image = JournalScene.Image(start: image.start, size: cut)
      check(scene, "cut at \(cut)")
    }
    scene.image = image
    #expect(scene.found().tokens == ["t: s3"])
  }

  @Test(arguments: JournalTests.keys.indices) func file_withAnyByteChanged_givesARecordAsItWas_orNone(index: Int) {
    let scene = JournalScene(key: JournalTests.keys[index])
    scene.die(with: "s1", "s2", "s3")
    let image = scene.image
    for offset in used(image) {
      var changed = image
      changed.start[offset] ^= 1 << (offset % 8)
      scene.image = changed
      check(scene, "a bit of byte \(offset) changed")
    }
  }

  /// Power fails while the disk writes a record: only the first bytes of the record are new, or only the last bytes.
  @Test(arguments: JournalTests.keys.indices) func record_writtenOnlyInPart_leavesTheOneBefore(index: Int) {
    let scene = JournalScene(key: JournalTests.keys[index])
    let journal = scene.open()
    for token in ["s1", "s2"] { #expect(journal.keep(scene.record(token), of: 7)) }
    let image = scene.image
    #expect(journal.keep(scene.record("s3"), of: 7))
    let last = scene.image
    journal.end()
    let (before, after) = (image.start, last.start)
    let changed = before.indices.filter { before[$0] != after[$0] }
    for cut in changed.dropFirst() {
      scene.image = JournalScene.Image(start: Array(after[..<cut] + before[cut...]), size: last.size)
      #expect(scene.found().tokens == ["t: s2"], "the bytes from \(cut) on are missing")
      scene.image = JournalScene.Image(start: Array(before[..<cut] + after[cut...]), size: last.size)
      #expect(scene.found().tokens == ["t: s2"], "the bytes before \(cut) are missing")
    }
    scene.image = last
    #expect(scene.found().tokens == ["t: s3"])
  }

  /// Power fails while the disk writes an update: only the first bytes of the update are new, or only the last bytes.
  @Test(arguments: JournalTests.keys.indices) func update_writtenOnlyInPart_leavesTheOneBefore(index: Int) {
    let scene = JournalScene(key: JournalTests.keys[index])
    let journal = scene.open()
    #expect(journal.keep(scene.record("s1"), of: 7))
    var images = [scene.image]
    for token in ["s2", "s3", "s4"] {
      #expect(journal.update(7, token: secret(token), lifetime: 60_000))
      images.append(scene.image)
    }
    journal.end()
    for (number, last) in images.enumerated().dropFirst() {
      let padding = [UInt8](repeating: 0, count: last.start.count - images[number - 1].start.count)
      let (before, after) = (images[number - 1].start + padding, last.start)
      for cut in before.indices.filter({ before[$0] != after[$0] }).dropFirst() {
        scene.image = JournalScene.Image(start: Array(after[..<cut] + before[cut...]), size: last.size)
        #expect(scene.found().tokens == ["t: s\(number)"], "the bytes from \(cut) on are missing")
        scene.image = JournalScene.Image(start: Array(before[..<cut] + after[cut...]), size: last.size)
        #expect(scene.found().tokens == ["t: s\(number)"], "the bytes before \(cut) are missing")
      }
      scene.image = last
      #expect(scene.found().tokens == ["t: s\(number + 1)"])
    }
  }

  /// Somebody moves an update to the place of a record. The library does not take it for a record.
  @Test(arguments: JournalTests.keys.indices) func update_inThePlaceOfARecord_isNotRead(index: Int) {
    let scene = JournalScene(key: JournalTests.keys[index])
    scene.die(with: "s1", updated: "s2")
    var image = scene.image
    let start = image.start.indices.first { $0 >= 4096 + JournalFile.firstUpdate * 8192 && image.start[$0] != 0 }
    let update = image.start[(start ?? 0)...].prefix(100)
    for copy in [0, 1] { image.start.replaceSubrange((4096 + copy * 8192)..<(4096 + copy * 8192 + 100), with: update) }
    scene.image = image
    let found = scene.found()
    #expect(found.tokens == [] && found.faults.hasSuffix("they are damaged, or the file was cut"))
  }

  @Test func file_ofZeros_isAnEmptyJournal() {
    let scene = JournalScene()
    scene.die(with: "s1")
    scene.image.start = []
    #expect(scene.found().tokens == [] && scene.found().faults == "")
  }

  @Test func file_ofRandomBytes_isReported_andTheNextContextUsesIt() {
    let scene = JournalScene()
    scene.die(with: "s1")
    var dice = Dice(3)
    scene.image = JournalScene.Image(
      start: (0..<70_000).map { _ in UInt8(truncatingIfNeeded: dice.next()) }, size: 70_000)
    #expect(scene.found().faults.contains("the page is damaged"))
    scene.die(with: "s2")
    #expect(scene.found().tokens == ["t: s2"])
  }

  /// The header of the page has another version. The library refuses the page whether or not the checksum of the header
  /// is right, since another version may calculate it in another way.
  @Test(arguments: [0, 1] as [UInt64]) func page_ofAnotherVersion_isNotUsed(difference: UInt64) {
    let scene = JournalScene()
    scene.die(with: "s1")
    scene.image.start.withUnsafeMutableBytes { all in
      var header = all.loadUnaligned(as: usher_journal_header.self)
      header.version = UInt32(USHER_JOURNAL_VERSION) + 1
      header.checksum = usher_journal_header_checksum(&header) &+ difference
      withUnsafeBytes(of: header) { all.copyBytes(from: $0) }
    }
    let found = scene.found()
    #expect(found.tokens == [] && found.faults.hasSuffix("another version of the library wrote them"))
  }

  // MARK: Files that must not be used

  /// Opens the journal, which must refuse the file. Returns what it reports as wrong.
  private func refusal(_ scene: JournalScene) -> String {
    let journal = scene.open()
    #expect(!journal.keepsRecords && journal.left.isEmpty)
    return journal.faults
  }

  @Test func symbolicLink_isNotFollowed() {
    let scene = JournalScene()
    scene.die(with: "s1")
    #expect(rename(scene.path, scene.folder + "/moved") == 0)
    #expect(symlink(scene.folder + "/moved", scene.path) == 0)
    #expect(refusal(scene) == "the journal cannot be opened: Too many levels of symbolic links")
  }

  @Test func fifoAndDirectory_areRefused() {
    let scene = JournalScene()
    #expect(mkfifo(scene.path, 0o600) == 0)
    #expect(refusal(scene) == "the journal cannot be opened: not a regular file")
    unlink(scene.path)
    #expect(mkdir(scene.path, 0o700) == 0)
    #expect(refusal(scene) == "the journal cannot be opened: Is a directory")
  }

  @Test func fileThatOthersCanRead_orThatHasAnotherName_isRefused() {
    let scene = JournalScene()
    scene.die(with: "s1")
    #expect(chmod(scene.path, 0o640) == 0)
    #expect(refusal(scene).hasSuffix("other users may read or write the file; set its mode to 0600"))
    #expect(chmod(scene.path, 0o600) == 0)
    #expect(link(scene.path, scene.folder + "/copy") == 0)
    #expect(refusal(scene).hasSuffix("the file has other names (hard links), or was removed"))
  }

  @Test(.enabled(if: geteuid() == 0)) func fileOfAnotherUser_isRefused() {
    let scene = JournalScene()
    scene.die(with: "s1")
    #expect(chown(scene.path, 65534, 65534) == 0)
    #expect(refusal(scene) == "the journal cannot be opened: the file belongs to another user")
  }

  @Test func newFile_isOnlyForItsOwner() {
    let scene = JournalScene()
    scene.open().end()
    var file = stat()
    #expect(stat(scene.path, &file) == 0 && file.st_mode & 0o7777 == 0o600)
  }
}
