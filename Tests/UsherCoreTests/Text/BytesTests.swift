import Testing

@testable import UsherCore

@Suite struct BytesTests {
  @Test func firstIndex_atEdges() {
    withBytes("abcabc") { hay in
      #expect(firstIndex(of: Array("abc".utf8), in: hay) == 0)
      #expect(firstIndex(of: Array("abc".utf8), in: hay, from: 1) == 3)
      #expect(firstIndex(of: Array("abc".utf8), in: hay, from: 4) == nil)
      #expect(firstIndex(of: Array("abc".utf8), in: hay, from: 400) == nil)
      #expect(firstIndex(of: Array("abc".utf8), in: hay, from: -1) == nil)
      #expect(firstIndex(of: [], in: hay) == nil)
      #expect(firstIndex(of: Array("abcabcd".utf8), in: hay) == nil)
    }
  }

  @Test(arguments: [
    ("", false), (" ", false), ("\t", false), (" \t \t \t \t \t", false), ("a", true), (" a", true), ("a\r", false),
    ("\na", false), ("a\u{0}b", false), ("a\u{1B}[1mb", false), ("a b,c\tä", true)
  ])
  func headerSafety_ofAToken(given: String, expected: Bool) {
    #expect(withBytes(given) { isHeaderSafe($0) } == expected)
  }

  @Test func headerSafety_isUpTo64kB() {
    for (count, expected) in [(1 << 16, true), (1 << 16 + 1, false)] {
      #expect([UInt8](repeating: 0x61, count: count).withUnsafeBufferPointer { isHeaderSafe($0) } == expected)
    }
  }

  @Test func headerSafety_whereverTheByteStands() {
    for count in 1...33 {
      for filler in [0x21, 0x41, 0x7E, 0x80, 0x8A, 0x8D, 0xFE, 0xFF] as [UInt8] {
        let safe = [UInt8](repeating: filler, count: count)
        #expect(safe.withUnsafeBufferPointer { isHeaderSafe($0) })
        for at in 0..<count {
          for bad in [0x00, 0x01, 0x08, 0x0A, 0x0D, 0x10, 0x1F, 0x7F] as [UInt8] {
            var bytes = safe
            bytes[at] = bad
            #expect(!bytes.withUnsafeBufferPointer { isHeaderSafe($0) }, "\(bad) at \(at) of \(count) times \(filler)")
          }
        }
      }
    }
  }

  @Test(arguments: [("", "....."), ("ab", "..ab."), ("abc", "..abc"), ("abcdef", "..abc")])
  func copy_atAPlace_goesNoFurtherThanTheRoom(given: String, expected: String) {
    var target = Array(".....".utf8)
    target.withUnsafeMutableBufferPointer { room in withBytes(given) { copy($0, into: room, at: 2) } }
    #expect(target == Array(expected.utf8))
    target.withUnsafeMutableBufferPointer { room in
      for nowhere in [5, 6, -1, .max] { withBytes("x") { copy($0, into: room, at: nowhere) } }
    }
    #expect(target == Array(expected.utf8))
  }

  @Test func case_ofLettersOnly_isIgnored() {
    #expect(equalIgnoringCase(Array("HeartBeat".utf8), Array("heartbeat".utf8)))
    #expect(!equalIgnoringCase(Array("[".utf8), Array("{".utf8)))
    #expect(!equalIgnoringCase(Array("a".utf8), Array("ab".utf8)))
  }
}
