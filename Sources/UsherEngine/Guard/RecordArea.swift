internal import CGuard
internal import CPlatform
package import UsherCore

/// A block of memory with recovery records, in the format of `record.h`. Only one thread at a time may use it.
package final class RecordArea: RecordKeeper {
  private let memory: UnsafeMutableRawBufferPointer
  private let copySize: Int
  private var slots: RecordSlots
  /// The length of the longest record so far. A short record overwrites only the beginning of a longer record in the
  /// same copy. So `clear` wipes `longest` bytes of each copy, not only the length of its last record.
  private var longest = 0
  /// For each slot: what a renewal knows about its two copies. `keep` sets the shape of a slot before `renew` reads it,
  /// so the memory begins without values, and slots that are never used take no memory.
  private let shapes: UnsafeMutablePointer<usher_record_shape>

  /// The size of the header of an area: one page, so that the copies begin on a page.
  package static var headerSize: Int { 4096 }

  package static func size(copySize: Int, slotCount: Int) -> Int {
    usher_record_area_size(
      UInt32(truncatingIfNeeded: headerSize), UInt32(truncatingIfNeeded: copySize),
      UInt32(truncatingIfNeeded: slotCount))
  }

  /// - Parameters:
  ///   - memory: zeros, at an address that is a multiple of 8, of `size(copySize:slotCount:)` bytes. It must live as
  ///     long as the area.
  ///   - copySize: how many bytes one of the two copies of a record takes; a multiple of 8.
  package init(memory: UnsafeMutableRawBufferPointer, copySize: Int, slotCount: Int) {
    self.memory = memory
    self.copySize = copySize
    slots = RecordSlots(count: slotCount)
    shapes = .allocate(capacity: slotCount)
    var header = usher_record_header()
    header.magic = USHER_RECORD_MAGIC
    header.version = USHER_RECORD_VERSION
    header.header_size = UInt32(truncatingIfNeeded: Self.headerSize)
    header.copy_size = UInt32(truncatingIfNeeded: copySize)
    header.slot_count = UInt32(truncatingIfNeeded: slotCount)
    header.process = platform_process_id()
    header.state = USHER_AREA_IN_USE
    header.made_at_ms = platform_wall_clock_ms()
    withUnsafeMutableBytes(of: &header.boot_id) { $0.copyBytes(from: MachineMoment.bootID()) }
    memory.storeBytes(of: header, as: usher_record_header.self)
  }

  deinit { shapes.deallocate() }

  /// Writes the settings of the context, which hold for all records.
  /// - Returns: false if they do not fit.
  func keepSettings(_ write: (UnsafeMutableRawBufferPointer) -> Int?) -> Bool {
    let copy = copy(0)
    guard let length = write(body(of: copy)) else { return false }
    usher_record_seal(copy.baseAddress, 1, UInt64(length))
    return true
  }

  package func keep(_ record: RecoveryRecord, of playback: PlaybackID) -> Bool {
    guard let write = slots.next(of: playback) else { return false }
    shapes[write.slot].token_size = 0
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
    return true
  }

  package func renew(_ playback: PlaybackID, token: Secret, after last: Secret, lifetime: Milliseconds) -> Bool {
    guard token.count == last.count, let old = slots.last(of: playback) else { return false }
    let new = RecordSlots.Write(slot: old.slot, sequence: old.sequence &+ 1)
    let end = RecoveryRecord.end(of: lifetime)
    let target = copy(new.copy &+ 1).baseAddress
    let shape = shapes + old.slot
    if token.count > 0, Int(shape.pointee.token_size) == token.count {
      usher_record_renew_again(target, new.sequence, shape, token.address, end.boot, end.wall)
    } else if usher_record_renew(
      copy(old.copy &+ 1).baseAddress, target, copySize, new.sequence, last.address, token.address, token.count,
      end.boot, end.wall, shape) == 0
    {
      return false
    }
    return slots.next(of: playback) != nil
  }

  package func clear(_ playback: PlaybackID) {
    guard let writes = slots.clear(playback) else { return }
    empty(writes.first)
    empty(writes.second)
  }

  private func empty(_ write: RecordSlots.Write) {
    let copy = copy(write.copy &+ 1)
    usher_record_seal(copy.baseAddress, write.sequence, 0)
    KillPoint.pass("half cleared")
    wipe(UnsafeMutableRawBufferPointer(rebasing: body(of: copy)[..<longest]).bindMemory(to: UInt8.self))
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

  /// - Parameter index: 0 for the settings; then the copies of the slots follow.
  private func copy(_ index: Int) -> UnsafeMutableRawBufferPointer {
    let start = Self.headerSize &+ index &* copySize
    return UnsafeMutableRawBufferPointer(rebasing: memory[start..<(start &+ copySize)])
  }

  /// The bytes behind the head of a copy.
  private func body(of copy: UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: copy[MemoryLayout<usher_record_copy>.size...])
  }
}
