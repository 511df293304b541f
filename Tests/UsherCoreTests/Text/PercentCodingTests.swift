import Testing

@testable import UsherCore

@Suite struct PercentCodingTests {
  @Test(arguments: [
    ("", ""), ("abc", "abc"), ("%41%62%2f", "Ab/"), ("%2B+", "++"), ("%", "%"), ("%4", "%4"), ("%zz", "%zz"),
    ("%4g", "%4g"), ("%%41", "%A"),
    ("%2541", "%41"), ("a%00b", "a\u{0}b"), ("%41%", "A%"), ("%41%4", "A%4")
  ])
  func text_decoded_keepsWhatIsNoCode(given: String, expected: String) {
    #expect(PercentCoding.decode(bytes(given)) == bytes(expected))
  }

  @Test func randomBytes_encoded_comeBackAndAreSafe() {
    var dice = Dice(11)
    for _ in 0..<2000 {
      let given = (0..<Int(dice.upTo(60))).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
      var target = [UInt8](repeating: 0, count: withBytes(given) { PercentCoding.encodedCount($0) })
      let written = withBytes(given) { from in
        target.withUnsafeMutableBufferPointer { PercentCoding.encode(from, into: $0) }
      }
      #expect(written == target.count)
      #expect(PercentCoding.decode(target) == given)
      #expect(!target.contains { $0 == 0x26 || $0 == 0x3D || $0 == 0x2B || $0 == 0x2F || $0 <= 0x20 || $0 >= 0x7F })
    }
  }

  @Test func encoding_withoutRoom_stopsAtTheEnd() {
    for room in 0..<6 {
      var target = [UInt8](repeating: 0x78, count: room)
      let written = withBytes("a&b&") { from in
        target.withUnsafeMutableBufferPointer { PercentCoding.encode(from, into: $0) }
      }
      #expect(written <= room)
    }
  }
}
