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
  /// nil: the file cannot be used, or the context has ended.
  private var file: JournalFile?
  /// The page of this context; nil: the context keeps no records.
  private var page: Int?
  private var cipher: JournalCipher?
  private var sync: JournalSync?
  private var slots = RecordSlots(count: JournalFile.slotCount)
  /// How many bytes of each copy of the page are in use.
  private var used = [Int](repeating: 0, count: 2 * JournalFile.slotCount)
  /// One copy of a slot while the journal reads or writes it. Not private, because a test looks for secrets in it.
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: JournalFile.copySize, alignment: 8)
  /// The newest record of each slot, not encrypted; nil: the slot has none. `renew` overwrites the token in
  /// these bytes, which no other object has.
  private var records = [Secret?](repeating: nil, count: JournalFile.slotCount)
  /// The sessions that dead processes have left. The context has the locks of their pages.
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
    page = nil
    cipher = nil
    file = nil
    for index in records.indices { records[index] = nil }
  }

  // MARK: The records of this context

  package func keep(_ record: RecoveryRecord, of playback: PlaybackID) -> Bool {
    guard page != nil, let write = slots.next(of: playback) else { return false }
    guard let length = record.write(playback, into: body) else {
      wipeBuffer()
      // The other copy may have a record with an old token. Clear both copies, so that no later start uses this token.
      clear(playback)
      return false
    }
    records[write.slot] = Secret(UnsafeRawBufferPointer(rebasing: body[..<length]).bindMemory(to: UInt8.self))
    return seal(write, length, of: playback)
  }

  package func renew(_ playback: PlaybackID, token: Secret, after last: Secret, lifetime: Milliseconds) -> Bool {
    guard page != nil, token.count == last.count, let slot = slots.last(of: playback)?.slot, let record = records[slot]
    else { return false }
    let end = RecoveryRecord.end(of: lifetime)
    let isDone = record.withMutableBytes { bytes in
      let at = usher_record_token_at(bytes.baseAddress, bytes.count, last.address, last.count)
      if at == 0 { return false }
      usher_record_update(bytes.baseAddress, at, token.address, token.count, end.boot, end.wall)
      body.copyMemory(from: UnsafeRawBufferPointer(bytes))
      return true
    }
    guard isDone, let write = slots.next(of: playback) else { return false }
    return seal(write, record.count, of: playback)
  }

  /// The bytes of `buffer` behind the head of a copy.
  private var body: UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: buffer[MemoryLayout<usher_journal_copy>.size...])
  }

  @inline(never)
  private func wipeBuffer() { wipe(buffer.bindMemory(to: UInt8.self)) }

  /// Seals the record in `buffer`, and writes it to the file.
  /// - Returns: false if the file does not have this record.
  private func seal(_ write: RecordSlots.Write, _ length: Int, of playback: PlaybackID) -> Bool {
    guard let page, let file, let cipher,
      cipher.seal(buffer, slot: write.slot, sequence: write.sequence, length: length)
    else {
      wipeBuffer()
      // The other copy may have a record with an old token. Clear both copies, so that no later start uses this token.
      clear(playback)
      return false
    }
    let count = MemoryLayout<usher_journal_copy>.size &+ length
    used[write.copy] = max(used[write.copy], count)
    let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    let result = file.write(UnsafeRawBufferPointer(bytes), page, copy: write.copy)
    // With a key, the encryption has overwritten the record in `buffer`. Without a key, the token is still there.
    if cipher.isClear { wipe(bytes.bindMemory(to: UInt8.self)) }
    // The failed write may have damaged this copy, and then only the other copy is whole. So the next write goes to
    // this copy again.
    if result != 0 { _ = slots.next(of: playback) }
    return noteWrite(result)
  }

  package func clear(_ playback: PlaybackID) {
    guard let page, let file else { return }
    // The older copy comes first: if the process dies between the two writes, the newer record stays valid.
    if let writes = slots.clear(playback) {
      records[writes.first.slot] = nil
      empty(writes.first.copy, page, file)
      empty(writes.second.copy, page, file)
    }
  }

  @inline(never)
  private func empty(_ copy: Int, _ page: Int, _ file: JournalFile) {
    guard used[copy] > 0 else { return }
    if noteWrite(file.wipe(page, copy: copy, count: used[copy])) { used[copy] = 0 }
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
      file.read(page, copy: copy, into: buffer)
      if platform_is_zero(buffer.baseAddress, buffer.count) == 0 { _ = file.wipe(page, copy: copy) }
    }
    var header = usher_journal_header()
    var salt = [UInt8](repeating: 0, count: MemoryLayout.size(ofValue: header.salt))
    guard salt.withUnsafeMutableBytes({ platform_random_bytes($0.baseAddress, $0.count) }) == 0,
      let cipher = JournalCipher.make(hostKey: options.key, salt: salt), header.fill(page, salt, cipher, file, moment)
    else { return giveUp(page, file, "the journal cannot be used: the system is short of memory") }
    let reserved = file.reserve(page)
    let result = reserved == 0 ? file.writeHeader(header, page) : reserved
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

  /// Reads the pages that no other context uses. Keeps the locks of the pages with usable records, and of one page
  /// without. Returns the page without usable records; nil if there is none.
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

  /// - Returns: how many sessions the page has that the library can still give back.
  private func readRecords(_ page: Int, _ file: JournalFile) -> Int {
    let header = file.readHeader(page)
    let (opened, refusal) = header.open(page, options.key, file, moment)
    var fault = refusal
    var count = 0
    if let opened {
      var isDamaged = !file.isWhole(page)
      for slot in 0..<JournalFile.slotCount {
        guard let record = readNewest(page, slot, opened, file, isDamaged: &isDamaged),
          let fixed = LeftSession.fixed(record), !moment.isOver(fixed, writtenIn: header.boot)
        else { continue }
        left.append(
          LeftSession(
            page: page, slot: slot, record: record, retries: fixed.retries, setupDelayMax: options.setupDelayMax))
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

  /// Returns the newest valid record of a slot; nil if there is none.
  /// - Parameter isDamaged: becomes true if the slot has bytes, but no valid record.
  private func readNewest(
    _ page: Int, _ slot: Int, _ cipher: JournalCipher, _ file: JournalFile, isDamaged: inout Bool
  ) -> Secret? {
    let head = MemoryLayout<usher_journal_copy>.size
    var newest: Secret?
    var sequence: UInt64 = 0
    var isUsed = false
    for copy in (2 &* slot)..<(2 &* slot &+ 2) {
      file.read(page, copy: copy, into: buffer)
      guard platform_is_zero(buffer.baseAddress, buffer.count) == 0 else { continue }
      isUsed = true
      guard let found = cipher.open(buffer, slot: slot), found.sequence > sequence else { continue }
      let body = UnsafeRawBufferPointer(rebasing: buffer[head..<(head &+ found.length)])
      newest = Secret(body.bindMemory(to: UInt8.self))
      sequence = found.sequence
    }
    wipeBuffer()
    if isUsed, newest == nil { isDamaged = true }
    return newest
  }

  /// Removes the record of a session. When the last record of a page has been removed, frees the page.
  package func remove(_ session: LeftSession) {
    left.removeAll { $0 === session }
    guard let file else { return }
    _ = file.wipe(session.page, copy: 2 &* session.slot)
    _ = file.wipe(session.page, copy: 2 &* session.slot &+ 1)
    _ = sync?.noteChange()
    for other in left where other.page == session.page { return }
    _ = file.writeHeader(usher_journal_header(), session.page)
    file.unlock(session.page)
  }
}
