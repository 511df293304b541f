internal import CGuard
internal import CPlatform
package import UsherCore

package struct JournalOptions {
  /// NUL-terminated.
  package var path: [UInt8]
  /// The host's key, of 32 bytes; nil: the records are in clear.
  package var key: Secret?
  /// How long the first set-ups of the context wait for the teardowns of the sessions that a dead process left.
  package var setupDelayMax: Milliseconds

  package init(path: [UInt8], key: Secret?, setupDelayMax: Milliseconds) {
    self.path = path
    self.key = key
    self.setupDelayMax = setupDelayMax
  }
}

/// The recovery records of a context in a file, and the records that dead processes have left there. `journal.h`
/// describes the file. Any thread may make this object; from then on only the I/O thread uses it.
package final class Journal: RecordKeeper {
  private let options: JournalOptions
  private let moment: MachineMoment
  /// The file of the journal. nil: the file cannot be used, or the context has ended.
  private var file: JournalFile?
  /// The page of this context; nil: the context keeps no records.
  private var page: Int?
  private var cipher: JournalCipher?
  private var sync: JournalSync?
  private var slots = RecordSlots(count: JournalFile.slotCount)
  /// How many bytes of each copy of the page are in use.
  private var used = [Int](repeating: 0, count: JournalFile.copyCount)
  /// One copy while the journal reads or writes it. Not private, because a test looks for secrets in it.
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: JournalFile.copySize, alignment: 8)
  /// The sessions that dead processes have left. The context has the locks of the pages of these sessions.
  package private(set) var left: [LeftSession] = []
  /// What is wrong with the journal, as a list with "; " between the reasons; empty: nothing.
  package private(set) var faults = ""
  private var hasFailed = false

  /// Opens the file, reads what dead processes have left, and takes a page for this context. If the file cannot be
  /// used, `faults` says why.
  package init(_ options: JournalOptions, at moment: MachineMoment = .now()) {
    self.options = options
    self.moment = moment
    switch JournalFile.open(options.path) {
    case .refused(let reason): addFault(reason)
    case .file(let file):
      self.file = file
      if let free = readPages(file) { take(free, file) }
    }
  }

  deinit {
    end()
    wipeBuffer()
    buffer.deallocate()
  }

  /// Whether the context can keep records in the journal.
  package var keepsRecords: Bool { page != nil }

  /// Returns `faults`, and removes them.
  package func takeFaults() -> String {
    defer { faults = "" }
    return faults
  }

  @inline(never)
  private func addFault(_ reason: String) {
    var line = TextLine()
    line.add(faults)
    if line.count > 0 { line.add("; ") }
    line.add(reason)
    faults = line.text()
  }

  /// Called when the context ends. Records that the context still has stay in the file for the next start.
  package func end() {
    sync?.stop()
    sync = nil
    if let page, let file, slots.count == 0 { _ = file.writeHeader(usher_journal_header(), page) }
    KillPoint.pass("journal, ended")
    page = nil
    cipher = nil
    file = nil
  }

  // MARK: The records of this context

  package func keep(_ record: RecoveryRecord, of playback: PlaybackID) -> Bool {
    guard page != nil, let write = slots.nextRecord(of: playback) else { return false }
    guard let length = record.write(playback, into: body) else {
      wipeBuffer()
      // The other copy may have a record with an old token. Clear both copies, so that no later start uses this token.
      clear(playback)
      return false
    }
    let token = record.tokenPlace(in: UnsafeRawBufferPointer(rebasing: body[..<length]))
    let isWritten = seal(write.copy, write.sequence, length, of: playback)
    if isWritten { slots.didWriteRecord(of: playback, token: token) }
    return isWritten
  }

  package func update(_ playback: PlaybackID, token: Secret, lifetime: Milliseconds) -> Bool {
    let length = usher_record_update_length(token.count)
    guard page != nil, length <= JournalFile.updateSize &- MemoryLayout<usher_journal_copy>.size,
      let next = slots.nextUpdate(of: playback, tokenCount: token.count, lifetime: lifetime)
    else { return false }
    var update = next.update
    usher_record_write_update(body.baseAddress, &update, token.address)
    let copy = JournalFile.firstUpdate &+ next.write.copy
    let isWritten = seal(copy, next.write.sequence, length, of: playback)
    if !isWritten { slots.didFailUpdate(of: playback) }
    return isWritten
  }

  /// The bytes of `buffer` behind the head of a copy.
  private var body: UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: buffer[MemoryLayout<usher_journal_copy>.size...])
  }

  @inline(never)
  private func wipeBuffer() { wipe(buffer.bindMemory(to: UInt8.self)) }

  /// Seals the record or update in `buffer`, and writes it to the file.
  /// - Returns: false if the file does not have it.
  private func seal(_ copy: Int, _ sequence: UInt64, _ length: Int, of playback: PlaybackID) -> Bool {
    guard let page, let file, let cipher, cipher.seal(buffer, number: copy, sequence: sequence, length: length) else {
      wipeBuffer()
      // The file may have a record with an old token. Clear it, so that no later start uses this token.
      clear(playback)
      return false
    }
    let count = MemoryLayout<usher_journal_copy>.size &+ length
    used[copy] = max(used[copy], count)
    let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    KillPoint.pass("journal, before the record")
    let result = file.write(UnsafeRawBufferPointer(bytes), page, copy: copy)
    KillPoint.pass("journal, after the record")
    // With a key, the encryption has overwritten the token in `buffer`. Without a key, the token is still there.
    if cipher.isClear { wipe(bytes.bindMemory(to: UInt8.self)) }
    return noteWrite(result)
  }

  package func clear(_ playback: PlaybackID) {
    guard let page, let file, let writes = slots.clear(playback) else { return }
    // Clear the older copy first. If the process dies between the writes, the file has either the newest record with
    // its newest token, or no record.
    for first in [0, JournalFile.firstUpdate] {
      for copy in [writes.first.copy, writes.second.copy] { empty(first &+ copy, page, file) }
    }
  }

  @inline(never)
  private func empty(_ copy: Int, _ page: Int, _ file: JournalFile) {
    guard used[copy] > 0 else { return }
    if noteWrite(file.wipe(page, copy: copy, count: used[copy])) { used[copy] = 0 }
    KillPoint.pass("journal, cleared in part")
  }

  /// Called with the result of a write. The first failure after a success becomes a fault.
  private func noteWrite(_ result: Int32) -> Bool {
    let failure = result == 0 ? sync?.noteChange() ?? 0 : result
    if failure != 0, !hasFailed {
      addFault(
        JournalFile.reason(
          result == 0 ? "the disk does not write the journal" : "the journal cannot be written", failure))
    }
    hasFailed = failure != 0
    return result == 0
  }

  /// Takes a page without usable records for this context: removes the bytes that are left in it, and writes a new
  /// header.
  private func take(_ page: Int, _ file: JournalFile) {
    for copy in 0..<used.count where page < file.usedPages {
      let bytes = readBytes(page, copy, file)
      if platform_is_zero(bytes.baseAddress, bytes.count) == 0 { _ = file.wipe(page, copy: copy) }
    }
    var header = usher_journal_header()
    var salt = [UInt8](repeating: 0, count: MemoryLayout.size(ofValue: header.salt))
    guard salt.withUnsafeMutableBytes({ platform_random_bytes($0.baseAddress, $0.count) }) == 0,
      let cipher = JournalCipher.make(hostKey: options.key, salt: salt), header.fill(page, salt, cipher, file, moment)
    else { return giveUp(page, file, "the journal cannot be used: the system is short of memory") }
    let reserved = file.reserve(page)
    KillPoint.pass("journal, page reserved")
    let result = reserved == 0 ? file.writeHeader(header, page) : reserved
    KillPoint.pass("journal, page taken")
    guard result == 0 else { return giveUp(page, file, JournalFile.reason("the journal cannot be written", result)) }
    self.page = page
    self.cipher = cipher
    sync = JournalSync.start(file)
    if sync?.noteChange() == nil {
      addFault("the system does not start a thread: power loss may destroy the journal")
    }
  }

  private func giveUp(_ page: Int, _ file: JournalFile, _ reason: String) {
    file.unlock(page)
    addFault(reason)
  }

  // MARK: The records of dead processes

  /// Reads the pages that no other context uses. Keeps the locks of the pages with usable records, and the lock of one
  /// page that has none. Returns this page; nil if there is none.
  private func readPages(_ file: JournalFile) -> Int? {
    var free: Int?
    for page in 0..<JournalFile.pageCount {
      if page >= file.usedPages, free != nil { break }
      let result = file.lock(page)
      if result == -EAGAIN { continue }
      guard result == 0 else {
        addFault(JournalFile.reason("the journal cannot be locked", result))
        return nil
      }
      if page < file.usedPages, readRecords(page, file) > 0 { continue }
      if free == nil { free = page } else { file.unlock(page) }
    }
    if free == nil { addFault("the journal cannot be used: other contexts use all its pages") }
    return free
  }

  /// Reads the records of a page that no other context uses. Adds to `left` the sessions that the library can still
  /// give back.
  /// - Returns: how many sessions it has added.
  private func readRecords(_ page: Int, _ file: JournalFile) -> Int {
    let header = file.readHeader(page)
    let (opened, refusal) = header.open(page, options.key, file, moment)
    var fault = refusal
    var count = 0
    if let opened {
      var isDamaged = !file.isWhole(page)
      for slot in 0..<JournalFile.slotCount {
        guard let (record, copy) = readNewest(page, slot, opened, file, isDamaged: &isDamaged),
          let fixed = LeftSession.fixed(record), !moment.isOver(fixed, writtenIn: header.boot)
        else { continue }
        left.append(
          LeftSession(
            page: page, copy: copy, record: record, retries: fixed.retries, setupDelayMax: options.setupDelayMax))
        count += 1
      }
      if isDamaged { fault = "they are damaged, or the file was cut" }
    }
    if let fault {
      var line = LogLine("the journal has records that cannot be used: ")
      line.add(fault)
      addFault(line.text())
    }
    return count
  }

  /// Returns the newest valid record of a slot with its newest token, and the number of its copy; nil if there is none.
  /// - Parameter isDamaged: becomes true if the slot has bytes of records, but no valid record.
  private func readNewest(
    _ page: Int, _ slot: Int, _ cipher: JournalCipher, _ file: JournalFile, isDamaged: inout Bool
  ) -> (record: Secret, copy: Int)? {
    let pair = (2 &* slot)..<(2 &* slot &+ 2)
    var newest: (record: Secret, copy: Int)?
    var (record, update): (UInt64, UInt64) = (0, 0)
    var isUsed = false
    for number in pair {
      isUsed =
        readCopy(page, number, cipher, file) { sequence, body in
          guard sequence > record else { return }
          newest = (Secret(body.bindMemory(to: UInt8.self)), number)
          record = sequence
        } || isUsed
    }
    for number in pair {
      _ = readCopy(page, JournalFile.firstUpdate &+ number, cipher, file) { sequence, body in
        guard sequence > update, let newest else { return }
        let isApplied = newest.record.withMutableBytes {
          usher_record_apply($0.baseAddress, $0.count, record, body.baseAddress, body.count) != 0
        }
        if isApplied { update = sequence }
      }
    }
    wipeBuffer()
    if isUsed, newest == nil { isDamaged = true }
    return newest
  }

  /// Reads a copy into `buffer`. If the copy is valid, calls `use` with its sequence and the bytes behind its head.
  /// - Returns: false if all its bytes are 0.
  private func readCopy(
    _ page: Int, _ number: Int, _ cipher: JournalCipher, _ file: JournalFile,
    use: (UInt64, UnsafeRawBufferPointer) -> Void
  ) -> Bool {
    let copy = readBytes(page, number, file)
    guard platform_is_zero(copy.baseAddress, copy.count) == 0 else { return false }
    if let found = cipher.open(copy, number: number) {
      let start = MemoryLayout<usher_journal_copy>.size
      use(found.sequence, UnsafeRawBufferPointer(rebasing: copy[start..<(start &+ found.length)]))
    }
    return true
  }

  /// Reads a copy into `buffer`.
  private func readBytes(_ page: Int, _ number: Int, _ file: JournalFile) -> UnsafeMutableRawBufferPointer {
    let copy = UnsafeMutableRawBufferPointer(rebasing: buffer[..<JournalFile.size(number)])
    file.read(page, copy: number, into: copy)
    return copy
  }

  /// Removes the record of a session that a dead process has left. When the last record of a page has been removed,
  /// frees the page.
  package func remove(_ session: LeftSession) {
    guard case .journal(let page, let copy) = session.source else { return }
    left.removeAll { $0 === session }
    guard let file else { return }
    // Remove the older copy first, as `clear` does.
    for first in [0, JournalFile.firstUpdate] {
      for copy in [copy ^ 1, copy] {
        _ = file.wipe(page, copy: first &+ copy)
        KillPoint.pass("journal, removed in part")
      }
    }
    _ = sync?.noteChange()
    for other in left {
      if case .journal(page, _) = other.source { return }
    }
    _ = file.writeHeader(usher_journal_header(), page)
    KillPoint.pass("journal, page freed")
    file.unlock(page)
  }
}
