import Testing

@testable import UsherCore

@Suite struct SecretTests {
  @Test func secret_holdsItsBytes() {
    let one = secret("abc")
    #expect(one.count == 3 && text(one) == "abc")
    #expect(withBytes("xyz") { text(Secret($0)) } == "xyz")
    #expect(Secret(count: 4) { $0[1] = 7 }.withBytes { Array($0) } == [0, 7, 0, 0])
  }

  @Test func secret_inText_showsNothing() {
    #expect(!"\(secret("hunter2-hunter2"))".contains("hunter2"))
    #expect(!String(reflecting: secret("hunter2-hunter2")).contains("hunter2"))
    var dumped = ""
    dump(secret("hunter2-hunter2"), to: &dumped)
    #expect(!dumped.contains("hunter2"))
  }

  @Test func wipe_leavesZeros() {
    var bytes = [UInt8](repeating: 0xAA, count: 1000)
    bytes.withUnsafeMutableBufferPointer { wipe($0) }
    #expect(bytes.allSatisfy { $0 == 0 })
    wipe(UnsafeMutableBufferPointer(start: nil, count: 0))
  }
}

@Suite struct TimeTests {
  @Test func adding_saturates() {
    #expect((5 as Milliseconds).adding(6) == 11)
    #expect(Milliseconds.max.adding(1) == .max)
    #expect((1 as Milliseconds).adding(.never) == .never)
  }

  @Test func since_neverGoesBelowZero() {
    #expect((9 as Milliseconds).since(4) == 5)
    #expect((4 as Milliseconds).since(9) == 0)
    #expect((0 as Milliseconds).since(.max) == 0)
  }

  @Test func permille_ofAnything_neverTraps() {
    #expect((60_000 as Milliseconds).permille(50) == 3000)
    #expect((999 as Milliseconds).permille(500) == 499)
    #expect((0 as Milliseconds).permille(1000) == 0)
    #expect(Milliseconds.max.permille(1000) <= .max)
    _ = Milliseconds.max.permille(.max)
  }
}

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

@Suite struct WordsTests {
  @Test func statusNames_areUniqueAndWellFormed() {
    let names = Status.allCases.map { string($0.name) }
    #expect(Set(names).count == names.count)
    #expect(names.allSatisfy { $0 == "USHER_OK" || $0.hasPrefix("USHER_E_") })
    #expect(Set(Status.allCases.map(\.rawValue)).count == Status.allCases.count)
  }

  @Test func statusTexts_areOneLineEach() {
    let texts = Status.allCases.map(\.message)
    #expect(Set(texts).count == texts.count)
    #expect(texts.allSatisfy { !$0.isEmpty && !$0.contains("\n") })
  }

  @Test func explanation_sameCode_dependsOnWhoAnswered() {
    let session = explanation(origin: .ssm, status: .limit, code: 1007)
    let license = explanation(origin: .license, status: .refused, code: 1007)
    #expect(session.isKnown && license.isKnown)
    #expect(string(session.summary) != string(license.summary))
    #expect(string(session.summary).contains("Too many"))
    #expect(!string(license.summary).contains("Too many"))
  }

  @Test func explanation_unknownCode_fallsBackToTheStatus() {
    for origin in [Origin.ssm, .license, .certificate, .local] {
      let words = explanation(origin: origin, status: .tls, code: 987_654_321)
      #expect(!words.isKnown)
      #expect(string(words.summary) == string(explanation(origin: .local, status: .tls, code: 0).summary))
    }
    #expect(!explanation(origin: .certificate, status: nil, code: 1007).isKnown)
  }

  @Test func explanation_ofEveryPublishedCode_isKnown() {
    for code in [
      1000, 1001, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1011, 1012, 1013, 1017, 1018, 3001, 3004, 4000, 4001
    ] as [Int64] {
      #expect(explanation(origin: .ssm, status: nil, code: code).isKnown, "\(code)")
    }
    for code in [
      1001, 1010, 2001, 2102, 3001, 3011, 4000, 4001, 4002, 4003, 4004, 4005, 4006, 4007, 4008, 4009, 4016, 4017, 4025,
      4027
    ] as [Int64] {
      #expect(explanation(origin: .license, status: nil, code: code).isKnown, "\(code)")
    }
    for code in [.min, -1, 0, 9999, .max] as [Int64] {
      for origin in [Origin.ssm, .license, .certificate, .local] {
        #expect(!explanation(origin: origin, status: .ok, code: code).isKnown)
      }
    }
  }

  @Test func failure_isTransient_byItsKind() {
    #expect(WireFailure(.transport).isTransient)
    #expect(WireFailure(.http, httpStatus: 503).isTransient)
    #expect(WireFailure(.http, httpStatus: 429).isTransient)
    #expect(!WireFailure(.http, httpStatus: 404).isTransient)
    #expect(!WireFailure(.refused, httpStatus: 400, serviceCode: 1006).isTransient)
    #expect(WireFailure(.refused, httpStatus: 503, serviceCode: 4001).isTransient)
    #expect(WireFailure(.redirect, httpStatus: 302).isTransient)
  }

  @Test func error_withoutMessage_takesTheStatusText() {
    #expect(UsherError(.limit).message == Status.limit.message)
    #expect(UsherError(.limit, message: "full").message == "full")
    #expect(UsherError(.limit).stopping().mustStop)
  }
}
