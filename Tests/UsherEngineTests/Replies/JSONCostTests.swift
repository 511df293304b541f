import Testing

@testable import UsherEngine

/// Tests which JSON texts the library refuses because json-c would need too much memory to parse them. The story
/// `test_refusals.py::test_json_ofManyValues_takesLittleMemory` measures the memory.
@Suite struct JSONCostTests {
  struct Shape: CustomTestStringConvertible {
    let testDescription: String
    let open: String
    let unit: String
    let close: String

    init(_ name: String, _ open: String, _ unit: String, _ close: String) {
      (testDescription, self.open, self.unit, self.close) = (name, open, unit, close)
    }

    /// Whether the library parses a JSON text that begins with `open` and ends with `close`. Between the two, `unit` is
    /// repeated as many times as the limit of `size` bytes allows.
    func isParsed(_ size: Int) -> Bool {
      let units = String(repeating: unit, count: (size - open.utf8.count - close.utf8.count) / unit.utf8.count)
      let text = Array((open + units.dropLast(unit.hasSuffix(",") ? 1 : 0) + close).utf8)
      return text.withUnsafeBufferPointer { JSONDocument.parse($0) != nil }
    }
  }

  static let dense = [
    Shape("digits", "[", "1,", "]"), Shape("nulls", "[", "null,", "]"), Shape("doubles", "[", "1.5,", "]"),
    Shape("empty strings", "[", "\"\",", "]"), Shape("empty arrays", "[", "[],", "]"),
    Shape("empty objects", "[", "{},", "]"), Shape("members", "{", "\"a\":1,", "}"),
    Shape("objects of one member", "[", "{\"a\":1},", "]")
  ]
  static let light = [
    Shape("one string", "[\"", "a", "\"]"), Shape("escaped backslashes", "[\"", "\\\\", "\"]"),
    Shape("escaped quotes", "[\"", "\\\"", "\"]"),
    Shape("words of 60", "[", "\"" + String(repeating: "w", count: 60) + "\",", "]"),
    Shape("structure in a string", "[\"", "{[,]}", "\"]")
  ]

  @Test(arguments: dense) func parse_ofManySmallValues_isRefused(shape: Shape) { #expect(!shape.isParsed(100_000)) }

  @Test(arguments: light, [5000, 100_000])
  func parse_ofFewLargeValues_succeeds(shape: Shape, size: Int) { #expect(shape.isParsed(size)) }

  @Test(arguments: dense + light)
  func parse_ofASmallText_isNotCounted(shape: Shape) { #expect(shape.isParsed(4000)) }
}
