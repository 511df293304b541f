/// One line of text, made from its parts. The library has this type because a single string interpolation would make
/// the library 10 kB larger.
package struct TextLine {
  package private(set) var bytes: [UInt8] = []

  package init() {}

  @inline(never)
  package mutating func add(_ text: StaticString) { text.withUTF8Buffer { bytes.append(contentsOf: $0) } }

  @inline(never)
  package mutating func add(_ text: String) { bytes.append(contentsOf: text.utf8) }

  @inline(never)
  package mutating func add(_ byte: UInt8) { bytes.append(byte) }

  @inline(never)
  package mutating func add(_ number: UInt64) {
    var rest = number
    let start = bytes.count
    repeat {
      bytes.insert(0x30 + UInt8(truncatingIfNeeded: rest % 10), at: start)
      rest /= 10
    } while rest > 0
  }

  package var count: Int { bytes.count }

  package mutating func cut(to count: Int) { bytes.removeLast(max(bytes.count - count, 0)) }

  @inline(never)
  package func text() -> String { String(decoding: bytes, as: UTF8.self) }
}
