/// Reads numbers and ranges from bytes, never beyond their end.
struct ByteReader {
  private let bytes: UnsafeBufferPointer<UInt8>
  private(set) var at = 0

  init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

  var left: Int { bytes.count - at }

  /// Reads the next `count` bytes. If fewer are left, reads nothing and returns nil.
  mutating func take(_ count: Int) -> UnsafeBufferPointer<UInt8>? {
    guard count >= 0, count <= left else { return nil }
    defer { at += count }
    return UnsafeBufferPointer(rebasing: bytes[at..<(at + count)])
  }

  /// Reads a big-endian number of up to eight bytes.
  mutating func number(_ count: Int) -> UInt64? { take(count)?.reduce(0) { $0 << 8 | UInt64($1) } }

  mutating func littleEndian(_ count: Int) -> UInt64? { take(count)?.reversed().reduce(0) { $0 << 8 | UInt64($1) } }

  mutating func byte() -> UInt8? { take(1)?.first }

  /// Reads a varint of a protobuf message: seven bits of the number in each byte, lowest bits first, at most ten bytes.
  mutating func varint() -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 70, by: 7) {
      guard let byte = byte() else { return nil }
      value |= shift < 64 ? UInt64(byte & 0x7F) << shift : 0
      if byte & 0x80 == 0 { return value }
    }
    return nil
  }
}
