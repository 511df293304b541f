/// Writes a body of unknown length in two passes, the first to count and the second to write. So no buffer grows, and
/// each secret in the body exists only once in memory.
struct TextSink {
  private let target: UnsafeMutableBufferPointer<UInt8>?
  private(set) var count = 0
  /// Whether the sink percent-encodes all bytes that it writes.
  var isPercentCoded = false

  private init(target: UnsafeMutableBufferPointer<UInt8>?) { self.target = target }

  static func secret(_ write: (inout TextSink) -> Void) -> Secret {
    var counting = TextSink(target: nil)
    write(&counting)
    return Secret(count: counting.count) { target in
      var writing = TextSink(target: target)
      write(&writing)
    }
  }

  mutating func add(_ byte: UInt8) {
    if isPercentCoded && !PercentCoding.isUnreserved(byte) {
      put(0x25)
      put(hexDigit(byte >> 4, upper: true))
      put(hexDigit(byte, upper: true))
    } else {
      put(byte)
    }
  }

  mutating func add(_ text: StaticString) { text.withUTF8Buffer { add($0) } }

  mutating func add(_ bytes: UnsafeBufferPointer<UInt8>) {
    for byte in bytes { add(byte) }
  }

  mutating func add(_ bytes: [UInt8]) { bytes.withUnsafeBufferPointer { add($0) } }

  /// Writes bytes percent-encoded, even if `isPercentCoded` is false.
  mutating func addCoded(_ bytes: UnsafeBufferPointer<UInt8>) {
    let before = isPercentCoded
    isPercentCoded = true
    add(bytes)
    isPercentCoded = before
  }

  mutating func addBase64(_ bytes: UnsafeBufferPointer<UInt8>, coded: Bool = false) {
    let text = Secret(count: Base64.encodedCount(bytes.count, padded: true)) { Base64.encode(bytes, into: $0) }
    text.withBytes { coded ? addCoded($0) : add($0) }
  }

  /// Writes a JSON string in quotes; `text` must be UTF-8.
  mutating func addJSON(_ text: UnsafeBufferPointer<UInt8>) {
    add(0x22)
    for byte in text {
      switch byte {
      case 0x22, 0x5C:
        add(0x5C)
        add(byte)
      case 0..<0x20, 0x7F:
        add("\\u00")
        add(hexDigit(byte >> 4))
        add(hexDigit(byte))
      default: add(byte)
      }
    }
    add(0x22)
  }

  private mutating func put(_ byte: UInt8) {
    if let target, count < target.count { target[count] = byte }
    count += 1
  }
}
