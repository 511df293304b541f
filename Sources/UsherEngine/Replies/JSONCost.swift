/// Counts an upper bound of the memory that json-c takes for a JSON text. A text of many small values takes up to 300
/// times its size, so the library counts the values before it lets json-c build them.
struct JSONCost {
  /// The library parses texts of at most this size without counting; such a text takes at most 1.3 MB.
  private static var uncounted: Int { 4096 }
  /// A number of bytes. json-c's parser takes as much memory as the text. The values may take three times the size of
  /// the text, plus this number of bytes.
  static var allowance: Int { 1 << 16 }

  // The constants below are the numbers of bytes that json-c 0.16 to 0.18 allocates on a 64-bit system. They include
  // malloc's overhead and are rounded up.
  private static var object: Int { 800 }
  /// The part of an object's table that one member takes, with the free entries that the table has after it has grown.
  /// The member's value and the bytes of its name are counted separately.
  private static var member: Int { 200 }
  private static var array: Int { 400 }
  /// One element of an array. Its value is counted separately.
  private static var element: Int { 24 }
  private static var scalar: Int { 96 }

  private var bytes = 0
  /// One bit for each open container: 1 if it is an object, 0 if it is an array. The lowest bit is the innermost
  /// container.
  private var kinds: UInt64 = 0

  /// Whether json-c needs at most four times the size of the text, plus `allowance`, as memory to read it: once for its
  /// parser, and three times for the values. Returns true for every text of at most `uncounted` bytes, without
  /// counting.
  static func isBounded(_ text: UnsafeBufferPointer<UInt8>, _ allowance: Int) -> Bool {
    guard text.count > uncounted else { return true }
    var cost = JSONCost()
    let most = 3 &* text.count &+ allowance
    var index = 0
    while index < text.count, cost.bytes <= most {
      index = text[index] == 0x22 ? cost.skipString(text, index &+ 1) : cost.count(text[index], index)
    }
    return cost.bytes <= most
  }

  private mutating func count(_ byte: UInt8, _ index: Int) -> Int {
    switch byte {
    case 0x7B:  // {
      kinds = kinds << 1 | 1
      bytes &+= Self.object &+ Self.scalar
    case 0x5B:  // [
      kinds <<= 1
      bytes &+= Self.array &+ Self.scalar
    case 0x7D, 0x5D: kinds >>= 1
    case 0x2C: bytes &+= Self.scalar &+ (kinds & 1 == 1 ? Self.member : Self.element)
    default: bytes &+= 1  // json-c keeps the text of a number that is not an integer
    }
    return index &+ 1
  }

  /// Skips a string, and counts its bytes.
  /// - Returns: the index after the string.
  private mutating func skipString(_ text: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int {
    var index = start
    while index < text.count, text[index] != 0x22 { index &+= text[index] == 0x5C ? 2 : 1 }
    bytes &+= index &- start
    return index &+ 1
  }
}
