internal import CGuard

/// Writes the fields of one record into memory of a fixed size, one after another.
struct RecordWriter {
  private let target: UnsafeMutableRawBufferPointer
  /// How many bytes the record needs so far. If the record does not fit, this number is larger than the size of
  /// `target`.
  private(set) var length = MemoryLayout<usher_record>.size

  /// - Parameter target: the bytes behind the head of a copy.
  init(_ fixed: usher_record, into target: UnsafeMutableRawBufferPointer) {
    self.target = target
    if length <= target.count { target.storeBytes(of: fixed, as: usher_record.self) }
  }

  /// Whether all fields fit.
  var isComplete: Bool { length <= target.count }

  mutating func add(_ kind: UInt32, _ bytes: UnsafeRawBufferPointer) {
    let head = MemoryLayout<usher_record_field>.size
    let padded = usher_record_padded(bytes.count)
    let start = length
    length = start &+ head &+ padded
    guard isComplete else { return }
    let field = usher_record_field(kind: kind, length: UInt32(truncatingIfNeeded: bytes.count))
    target.storeBytes(of: field, toByteOffset: start, as: usher_record_field.self)
    // A field is padded with zeros to a multiple of 8 bytes. So zero its last 8 bytes first, and then copy the bytes.
    if padded > 0 { target.storeBytes(of: 0, toByteOffset: start &+ head &+ padded &- 8, as: UInt64.self) }
    UnsafeMutableRawBufferPointer(rebasing: target[(start &+ head)...]).copyMemory(from: bytes)
  }
}
