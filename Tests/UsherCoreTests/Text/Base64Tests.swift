import Testing

@testable import UsherCore

@Suite struct Base64Tests {
  private func encoded(_ bytes: [UInt8], _ alphabet: Base64.Alphabet = .standard, padded: Bool = true) -> String {
    var target = [UInt8](repeating: 0, count: Base64.encodedCount(bytes.count, padded: padded))
    withBytes(bytes) { from in
      target.withUnsafeMutableBufferPointer { Base64.encode(from, into: $0, alphabet: alphabet, padded: padded) }
    }
    return String(decoding: target, as: UTF8.self)
  }

  private func decoded(_ text: String) -> [UInt8]? { withBytes(text) { Base64.decode($0) }?.withBytes { Array($0) } }

  @Test(arguments: ["", "f", "fo", "foo", "foob", "fooba", "foobar"])
  func text_everyLength_comesBack(text: String) {
    let bytes = Array(text.utf8)
    for alphabet in [Base64.Alphabet.standard, .url] {
      for padded in [true, false] { #expect(decoded(encoded(bytes, alphabet, padded: padded)) == bytes) }
    }
  }

  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
    ("foobar", "Zm9vYmFy")
  ])
  func vectors_ofRFC4648_areWrittenExactly(plain: String, text: String) {
    #expect(encoded(Array(plain.utf8)) == text)
    #expect(encoded(Array(plain.utf8), padded: false) == String(text.prefix { $0 != "=" }))
  }

  @Test func alphabets_differInTwoLettersOnly() {
    #expect(encoded([0xFB, 0xFF, 0xBF]) == "+/+/")
    #expect(encoded([0xFB, 0xFF, 0xBF], .url) == "-_-_")
    #expect(decoded("+/+/") == [0xFB, 0xFF, 0xBF])
    #expect(decoded("-_-_") == [0xFB, 0xFF, 0xBF])
    #expect(decoded("+_-/") == [0xFB, 0xFF, 0xBF])
  }

  @Test func whiteSpace_between_isSkipped() {
    #expect(decoded(" Zm9v\r\n\tYmFy \n") == Array("foobar".utf8))
    #expect(decoded("Zg=\n=") == Array("f".utf8))
  }

  @Test(arguments: [
    "Z", "Zm9vY", "=", "==", "===", "====", "Zg=", "Zg===", "Zm8==", "Zm9v=", "Zm9v====", "Z=g=", "Zg==Zg==", "Zm9v!",
    "Zm9v\u{0}", "ä", "Zm 9v,"
  ])
  func garbage_isRefused(text: String) {
    #expect(decoded(text) == nil)
  }

  @Test func randomBytes_inEveryVariant_comeBack() {
    var dice = Dice(1)
    for _ in 0..<2000 {
      let bytes = (0..<Int(dice.upTo(70))).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
      #expect(decoded(encoded(bytes, dice.one(in: 2) ? .url : .standard, padded: dice.one(in: 2))) == bytes)
    }
  }

  @Test func randomText_neverTraps() {
    var dice = Dice(2)
    for _ in 0..<5000 {
      let bytes = (0..<Int(dice.upTo(20))).map { _ in
        dice.one(in: 4) ? UInt8(truncatingIfNeeded: dice.next()) : dice.pick(Array("AZaz09+/-_= \n".utf8))
      }
      if let result = withBytes(bytes, { Base64.decode($0) }) { #expect(result.count <= bytes.count) }
    }
  }
}
