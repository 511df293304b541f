internal import CGuard
internal import CPlatform
package import UsherCore

/// A block of memory with recovery records, in the format of `record.h`. Only one thread at a time may use an object of
/// this type.
package final class RecordArea: RecordKeeper {
  private let memory: UnsafeMutableRawBufferPointer
  private let copySize: Int
  /// Where the first and the second copies for updates begin in `memory`.
  private let updates: (Int, Int)
  private var slots: RecordSlots
  /// The length of the longest record so far. A short record overwrites only the beginning of a longer record in the
  /// same copy. So `clear` wipes `longest` bytes of each copy, not only the length of its last record.
  private var longest = 0
  /// The length of the longest update so far. `clear` wipes this many bytes of each copy for updates.
  private var longestUpdate = 0
  /// The size of the header of an area: one page, so that the copies begin on a page.
  package static var headerSize: Int { 4096 }

  package static func size(copySize: Int, slotCount: Int) -> Int {
    var header = header(copySize, slotCount)
    return usher_record_area_size(&header)
  }

  private static func header(_ copySize: Int, _ slotCount: Int) -> usher_record_header {
    var header = usher_record_header()
    header.magic = USHER_RECORD_MAGIC
    header.version = USHER_RECORD_VERSION
    header.header_size = UInt32(truncatingIfNeeded: headerSize)
    header.copy_size = UInt32(truncatingIfNeeded: copySize)
    header.slot_count = UInt32(truncatingIfNeeded: slotCount)
    return header
  }

  /// - Parameters:
  ///   - memory: zeros, at an address that is a multiple of 8, of `size(copySize:slotCount:)` bytes. The memory must
  ///     live as long as the area.
  ///   - copySize: how many bytes one of the two copies of a record takes; a multiple of 8.
  package init(memory: UnsafeMutableRawBufferPointer, copySize: Int, slotCount: Int) {
    self.memory = memory
    self.copySize = copySize
    slots = RecordSlots(count: slotCount)
    var header = Self.header(copySize, slotCount)
    updates = (usher_record_update_offset(&header, 0, 0), usher_record_update_offset(&header, 0, 1))
    header.process = platform_process_id()
    header.state = USHER_AREA_IN_USE
    header.made_at_ms = platform_wall_clock_ms()
    withUnsafeMutableBytes(of: &header.boot_id) { $0.copyBytes(from: MachineMoment.bootID()) }
    memory.storeBytes(of: header, as: usher_record_header.self)
  }

  /// Writes the settings of the context, which hold for all records.
  /// - Returns: false if the settings do not fit.
  func keepSettings(_ write: (UnsafeMutableRawBufferPointer) -> Int?) -> Bool {
    let copy = copy(0)
    guard let length = write(body(of: copy)) else { return false }
    usher_record_seal(copy.baseAddress, 1, UInt64(length))
    return true
  }

  package func keep(_ record: RecoveryRecord, of playback: PlaybackID) -> Bool {
    guard let write = slots.nextRecord(of: playback) else { return false }
    let copy = copy(write.copy &+ 1)
    let body = body(of: copy)
    guard let length = record.write(playback, into: body) else {
      // This copy is invalid now, and the other copy may have a record with an old token. Clear both copies, so that
      // the guardian does not use that token.
      wipe(body.bindMemory(to: UInt8.self))
      clear(playback)
      return false
    }
    longest = max(longest, length)
    KillPoint.pass("half a record")
    usher_record_seal(copy.baseAddress, write.sequence, UInt64(length))
    slots.didWriteRecord(
      of: playback, token: record.tokenPlace(in: UnsafeRawBufferPointer(rebasing: body[..<length])))
    return true
  }

  package func update(_ playback: PlaybackID, token: Secret, lifetime: Milliseconds) -> Bool {
    let length = usher_record_update_length(token.count)
    guard length <= Self.updateRoom,
      let next = slots.nextUpdate(of: playback, tokenCount: token.count, lifetime: lifetime)
    else { return false }
    var update = next.update
    let copy = updateCopy(next.write)
    longestUpdate = max(longestUpdate, length)
    usher_record_write_update(body(of: copy).baseAddress, &update, token.address)
    KillPoint.pass("half an update")
    usher_record_seal_update(copy.baseAddress, next.write.sequence, &update, token.address)
    return true
  }

  package func clear(_ playback: PlaybackID) {
    guard let writes = slots.clear(playback) else { return }
    for write in [writes.first, writes.second] {
      empty(copy(write.copy &+ 1), write.sequence, longest)
      KillPoint.pass("half cleared")
    }
    empty(updateCopy(writes.first), 0, longestUpdate)
    empty(updateCopy(writes.second), 0, longestUpdate)
  }

  /// Makes a copy of a record or of an update valid and empty. Then wipes its first `count` bytes.
  private func empty(_ copy: UnsafeMutableRawBufferPointer, _ sequence: UInt64, _ count: Int) {
    usher_record_seal(copy.baseAddress, sequence, 0)
    wipe(UnsafeMutableRawBufferPointer(rebasing: body(of: copy)[..<count]).bindMemory(to: UInt8.self))
  }

  /// How many records the area has.
  package var count: Int { slots.count }

  /// Marks the area as ended: no process may use its records any more. Then removes the bytes of the records.
  package func end() {
    usher_record_end(memory.baseAddress)
    KillPoint.pass("area ended")
    for playback in slots.sortedIDs { clear(playback) }
    let settings = copy(0)
    let body = body(of: settings)
    let used = min(Int(clamping: settings.load(as: usher_record_copy.self).length), body.count)
    usher_record_seal(settings.baseAddress, 2, 0)
    wipe(UnsafeMutableRawBufferPointer(rebasing: body[..<used]).bindMemory(to: UInt8.self))
  }

  /// Returns one copy of the area.
  /// - Parameter index: 0 for the settings; then the copies of the slots follow.
  private func copy(_ index: Int) -> UnsafeMutableRawBufferPointer {
    let start = Self.headerSize &+ index &* copySize
    return UnsafeMutableRawBufferPointer(rebasing: memory[start..<(start &+ copySize)])
  }

  private func updateCopy(_ write: RecordSlots.Write) -> UnsafeMutableRawBufferPointer {
    let size = Int(USHER_RECORD_UPDATE_SIZE)
    let start = (write.which == 0 ? updates.0 : updates.1) &+ write.slot &* size
    return UnsafeMutableRawBufferPointer(rebasing: memory[start..<(start &+ size)])
  }

  /// How many bytes an update may have.
  private static var updateRoom: Int { Int(USHER_RECORD_UPDATE_SIZE) &- MemoryLayout<usher_record_copy>.size }

  /// The bytes behind the head of a copy.
  private func body(of copy: UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: copy[MemoryLayout<usher_record_copy>.size...])
  }
}
