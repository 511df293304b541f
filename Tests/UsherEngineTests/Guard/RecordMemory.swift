import CGuard

@testable import UsherEngine

/// An area of recovery records in ordinary memory, and its reader. (In reality the reader is another process.)
final class RecordMemory {
  let bytes: UnsafeMutableRawBufferPointer
  let copySize: Int
  let area: RecordArea

  init(copySize: Int = 512, slotCount: Int = 4) {
    let size = RecordArea.size(copySize: copySize, slotCount: slotCount)
    bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 8)
    bytes.initializeMemory(as: UInt8.self, repeating: 0)
    self.copySize = copySize
    area = RecordArea(memory: bytes, copySize: copySize, slotCount: slotCount)
  }

  deinit { bytes.deallocate() }

  struct Found: Equatable {
    var playback: UInt64 = 0
    var retries: UInt32 = 0
    var fields: [String] = []
  }

  /// The bytes of one slot: two copies of a record.
  func slot(_ index: Int) -> UnsafeMutableRawBufferPointer {
    let start = RecordArea.headerSize + (1 + 2 * index) * copySize
    return UnsafeMutableRawBufferPointer(rebasing: bytes[start..<(start + 2 * copySize)])
  }

  /// The bytes of the two updates of one slot.
  func updates(_ index: Int) -> [UnsafeMutableRawBufferPointer] {
    var header = bytes.load(as: usher_record_header.self)
    return [0, 1].map { which in
      let start = usher_record_update_offset(&header, index, which)
      return UnsafeMutableRawBufferPointer(rebasing: bytes[start..<(start + Int(USHER_RECORD_UPDATE_SIZE))])
    }
  }

  /// Calls `body` with the newest record of a slot; nil: the slot has none.
  private func withNewest<Result>(_ index: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
    let room = copySize + Int(USHER_RECORD_UPDATE_SIZE)
    let record = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 8)
    defer { record.deallocate() }
    let updates = updates(index)
    let length = usher_record_newest(
      slot(index).baseAddress, copySize, updates[0].baseAddress, updates[1].baseAddress, record.baseAddress)
    return length > 0 ? body(UnsafeRawBufferPointer(rebasing: record[..<length])) : nil
  }

  /// When the lease of the newest record of a slot ends, on CLOCK_BOOTTIME; nil: the slot has no record.
  func leaseEnd(_ index: Int) -> Int64? {
    withNewest(index) { $0.load(as: usher_record.self).expires_boot_ms }
  }

  /// Reads the newest record of a slot; nil: the slot has none.
  func read(_ index: Int) -> Found? {
    withNewest(index) { record in
      let fixed = record.load(as: usher_record.self)
      var found = Found(playback: fixed.playback, retries: fixed.retries)
      var at = 0
      var field = usher_record_field()
      while let text = usher_record_next(record.baseAddress, record.count, &at, &field) {
        let bytes = UnsafeBufferPointer(start: text, count: Int(field.length))
        found.fields.append("\(field.kind) " + String(decoding: bytes, as: UTF8.self).replacing("\0", with: ""))
      }
      return found
    }
  }
}
