internal import CGuard
internal import CPlatform
package import UsherCore

/// Keeps the recovery records of a context somewhere: in the memory that the guardian shares, or in a file. Only the
/// I/O thread calls it.
package protocol RecordKeeper: AnyObject {
  /// Keeps the record of a playback, in place of the one before.
  /// - Returns: false if there is no room for it; then the playback has no record.
  func keep(_ record: RecoveryRecord, of playback: PlaybackID) -> Bool
  /// Removes the record of a playback; does nothing if there is none.
  func clear(_ playback: PlaybackID)
}

/// A block of memory with recovery records, in the format of `record.h`. Only one thread at a time may use it.
package final class RecordArea: RecordKeeper {
  private struct Slot {
    let index: Int
    /// Counts the writes of the slot.
    var sequence: UInt64
  }

  private let memory: UnsafeMutableRawBufferPointer
  private let copySize: Int
  private let slotCount: Int
  private var slots = IDTable<Slot>()
  /// The slots that no playback uses, but that were used before; the next playback gets the last one.
  private var free: [Slot] = []
  /// How many slots were ever used.
  private var usedCount = 0

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
    self.slotCount = slotCount
    var header = usher_record_header()
    header.magic = USHER_RECORD_MAGIC
    header.version = USHER_RECORD_VERSION
    header.header_size = UInt32(truncatingIfNeeded: Self.headerSize)
    header.copy_size = UInt32(truncatingIfNeeded: copySize)
    header.slot_count = UInt32(truncatingIfNeeded: slotCount)
    header.process = platform_process_id()
    header.state = USHER_AREA_IN_USE
    header.made_at_ms = platform_wall_clock_ms()
    withUnsafeMutableBytes(of: &header.boot_id) { text in
      let length = platform_read_file("/proc/sys/kernel/random/boot_id", text.baseAddress, text.count)
      // The file ends with a newline.
      text[max(0, min(length &- 1, text.count &- 1))] = 0
    }
    memory.storeBytes(of: header, as: usher_record_header.self)
  }

  /// Writes the settings of the context, which hold for all records.
  /// - Returns: false if they do not fit.
  func keepSettings(_ write: (UnsafeMutableRawBufferPointer) -> Int?) -> Bool {
    let copy = copy(0)
    guard let length = write(body(of: copy)) else { return false }
    usher_record_seal(copy.baseAddress, 1, UInt64(length))
    return true
  }

  package func keep(_ record: RecoveryRecord, of playback: PlaybackID) -> Bool {
    guard var slot = slots[playback] ?? take() else { return false }
    slot.sequence &+= 1
    let copy = copy(slot.index &* 2 &+ 1 &+ Int(slot.sequence & 1))
    guard let length = record.write(playback, into: body(of: copy)) else {
      // The copy is invalid now, and the other copy has an old token. Clear both.
      slots[playback] = slot
      clear(playback)
      return false
    }
    usher_record_seal(copy.baseAddress, slot.sequence, UInt64(length))
    slots[playback] = slot
    return true
  }

  package func clear(_ playback: PlaybackID) {
    guard var slot = slots.remove(playback) else { return }
    // The first of these writes makes an empty record the newest one of the slot; the second removes the old bytes.
    for _ in 0..<2 {
      slot.sequence &+= 1
      let copy = copy(slot.index &* 2 &+ 1 &+ Int(slot.sequence & 1))
      let body = body(of: copy)
      let used = min(Int(clamping: copy.load(as: usher_record_copy.self).length), body.count)
      usher_record_seal(copy.baseAddress, slot.sequence, 0)
      wipe(UnsafeMutableRawBufferPointer(rebasing: body[..<used]).bindMemory(to: UInt8.self))
    }
    free.append(slot)
  }

  /// How many records the area has.
  package var count: Int { slots.count }

  /// Marks the area as ended: nobody may use its records any more.
  package func end() { usher_record_end(memory.baseAddress) }

  private func take() -> Slot? {
    if let slot = free.popLast() { return slot }
    guard usedCount < slotCount else { return nil }
    usedCount += 1
    return Slot(index: usedCount &- 1, sequence: 0)
  }

  private func copy(_ index: Int) -> UnsafeMutableRawBufferPointer {
    let start = Self.headerSize &+ index &* copySize
    return UnsafeMutableRawBufferPointer(rebasing: memory[start..<(start &+ copySize)])
  }

  /// The bytes behind the head of a copy.
  private func body(of copy: UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: copy[MemoryLayout<usher_record_copy>.size...])
  }
}
