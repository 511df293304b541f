/// The 16 bytes of a UUID in the order of its text: a key id, a key system, a message id.
package struct UUIDBytes: Equatable, Sendable {
  private let high: UInt64
  private let low: UInt64

  /// Fails unless `bytes` has exactly 16 bytes.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == 16 else { return nil }
    var halves: (UInt64, UInt64) = (0, 0)
    for byte in bytes { halves = (halves.0 << 8 | halves.1 >> 56, halves.1 << 8 | UInt64(byte)) }
    (high, low) = halves
  }

  /// Reads 32 hex digits in either case, with or without dashes, braces and `urn:uuid:`.
  package init?(text: some Collection<UInt8>) {
    guard text.count >= 32, text.count <= 64 else { return nil }
    var rest = Array(text)[...]
    let prefix: StaticString = "urn:uuid:"
    if prefix.withUTF8Buffer({ equalIgnoringCase(rest.prefix($0.count), $0) }) {
      rest = rest.dropFirst(prefix.utf8CodeUnitCount)
    }
    if rest.first == 0x7B && rest.last == 0x7D { rest = rest.dropFirst().dropLast() }
    var halves: (UInt64, UInt64) = (0, 0)
    var digits = 0
    for byte in rest where byte != 0x2D {
      guard digits < 32, let four = hexValue(byte) else { return nil }
      halves = (halves.0 << 4 | halves.1 >> 60, halves.1 << 4 | UInt64(four))
      digits += 1
    }
    guard digits == 32 else { return nil }
    (high, low) = halves
  }

  /// Makes a UUID of version 4 from 16 random bytes. Fails unless `bytes` has exactly 16 bytes.
  package init?(random bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    var marked = bytes
    marked[6] = marked[6] & 0x0F | 0x40
    marked[8] = marked[8] & 0x3F | 0x80
    self.init(marked)
  }

  @inline(never)
  package var bytes: [UInt8] { (0..<16).map { byte($0) } }

  /// The text in lower case: 8-4-4-4-12 digits.
  package var text: [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(36)
    for index in 0..<16 {
      if index == 4 || index == 6 || index == 8 || index == 10 { text.append(0x2D) }
      text.append(hexDigit(byte(index) >> 4))
      text.append(hexDigit(byte(index)))
    }
    return text
  }

  /// The same id in the byte order of a Microsoft GUID: its first three numbers are little-endian.
  package var mixedEndian: UUIDBytes {
    let first = UInt32(truncatingIfNeeded: high >> 32).byteSwapped
    let second = UInt16(truncatingIfNeeded: high >> 16).byteSwapped
    let third = UInt16(truncatingIfNeeded: high).byteSwapped
    return UUIDBytes(high: UInt64(first) << 32 | UInt64(second) << 16 | UInt64(third), low: low)
  }

  init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  private func byte(_ index: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: (index < 8 ? high : low) >> UInt64(56 - 8 * (index & 7)))
  }
}

extension [UUIDBytes] {
  /// The largest number of key ids in one list; `appendOnce` ignores further ids.
  package static var mostKeyIDs: Int { 1024 }

  @inline(never)
  mutating func appendOnce(_ id: UUIDBytes) {
    if count < [UUIDBytes].mostKeyIDs && !contains(id) { append(id) }
  }

  /// The bytes of all ids, one after another.
  @inline(never)
  package var joined: [UInt8] {
    var joined: [UInt8] = []
    for id in self { joined += id.bytes }
    return joined
  }
}

extension KeySystem {
  /// Fails if the UUID is not one of a known key system.
  package init?(_ system: UUIDBytes) {
    guard let known = system.text.withUnsafeBufferPointer({ KeySystem($0) }) else { return nil }
    self = known
  }

  package var uuid: UUIDBytes? { identifier.withUTF8Buffer { UUIDBytes(text: $0) } }
}
