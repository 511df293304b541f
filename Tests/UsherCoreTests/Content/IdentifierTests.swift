import Testing

@testable import UsherCore

/// Returns up to `most` parts, one after another: each is a random choice from `pieces`, or a few random bytes.
func hostile(_ dice: inout Dice, _ pieces: [String], upTo most: UInt64 = 14) -> [UInt8] {
  var made: [UInt8] = []
  for _ in 0..<dice.upTo(most) {
    if dice.one(in: 5) {
      for _ in 0...dice.upTo(8) { made.append(UInt8(truncatingIfNeeded: dice.next())) }
    } else {
      made += bytes(dice.pick(pieces))
    }
  }
  return made
}

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

@Suite struct UUIDBytesTests {
  private let plain = "00112233-4455-6677-8899-aabbccddeeff"

  @Test func text_inAnyDress_isTheSameID() {
    let expected = UUIDBytes([
      0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF
    ])
    for dress in [
      plain, plain.uppercased(), "urn:uuid:" + plain, "URN:UUID:" + plain, "{" + plain + "}",
      "00112233445566778899aabbccddeeff"
    ] {
      #expect(UUIDBytes(text: bytes(dress)) == expected)
    }
    #expect(expected.map { String(decoding: $0.text, as: UTF8.self) } == plain)
    #expect(expected?.bytes.count == 16 && expected?.bytes.last == 0xFF)
  }

  @Test(arguments: [
    "", "-", "00112233-4455-6677-8899-aabbccddeef", "00112233-4455-6677-8899-aabbccddeeff0",
    "00112233-4455-6677-8899-aabbccddeefg",
    "{00112233-4455-6677-8899-aabbccddeeff", " 00112233-4455-6677-8899-aabbccddeeff",
    "00112233445566778899aabbccddeeff\u{0}",
    "--------------------------------", "urn:uuid:urn:uuid:00112233445566778899aabbccddeeff"
  ])
  func text_thatIsNone_isRefused(given: String) {
    #expect(UUIDBytes(text: bytes(given)) == nil)
  }

  @Test func bytes_ofAnotherCount_areRefused() {
    for count in [0, 1, 15, 17, 1_000_000] { #expect(UUIDBytes([UInt8](repeating: 1, count: count)) == nil) }
    #expect(UUIDBytes(random: []) == nil)
    #expect(UUIDBytes(text: [UInt8](repeating: 0x30, count: 1_000_000)) == nil)
  }

  @Test func random_marksVersionAndVariant() {
    let made = UUIDBytes(random: [UInt8](repeating: 0xFF, count: 16)).map { String(decoding: $0.text, as: UTF8.self) }
    #expect(made == "ffffffff-ffff-4fff-bfff-ffffffffffff")
  }

  @Test func guid_asStored_hasItsNumbersSwapped() {
    let id = UUIDBytes(text: bytes(plain))
    #expect(
      (id?.mixedEndian).map { String(decoding: $0.text, as: UTF8.self) } == "33221100-5544-7766-8899-aabbccddeeff")
    #expect(id?.mixedEndian.mixedEndian == id)
  }

  @Test(arguments: KeySystem.allCases)
  func keySystem_asBytes_isRecognised(keySystem: KeySystem) {
    #expect(keySystem.uuid.flatMap { KeySystem($0) } == keySystem)
  }

  @Test func keySystem_unknown_isNone() {
    #expect(UUIDBytes(text: bytes(plain)).flatMap { KeySystem($0) } == nil)
  }
}

@Suite struct AssetIDTests {
  private func asset(_ url: String, scheme: String = "skd") -> AssetID? {
    withBytes(url) { try? AssetID($0, scheme: bytes(scheme)) }
  }

  @Test(arguments: [
    ("skd://movie-1", "movie-1"), ("SKD://movie-1", "movie-1"), ("sKd:movie-1", "movie-1"), ("movie-1", "movie-1"),
    ("skd://movie-1/", "movie-1"),
    ("skd://a/b//", "a/b/"), ("skd:///a", "/a"), ("skd:/a", "/a"), ("skd://a?b#c", "a"), ("skd://a#b?c", "a"),
    ("skd://a/?b/", "a"),
    ("skd://a%20b%2Fc%2f/", "a b/c/"), ("skd://%zz%4", "%zz%4"), ("skd://UPPER.Case", "UPPER.Case"),
    ("skdx://a", "skdx://a"), ("sk://a", "sk://a"),
    ("skd", "skd"), ("http://h/p", "http://h/p"), ("skd://skd://a", "skd://a"), ("skd://a%3Fb%23c", "a?b#c"),
    ("skd:skd:a", "skd:a"), ("skd://a+b", "a+b")
  ])
  func url_isCutAndDecoded(url: String, expected: String) {
    #expect(asset(url)?.text == bytes(expected))
  }

  private func refusal(_ url: [UInt8]) -> AssetID.Refusal? {
    withBytes(url) { url in
      do throws(AssetID.Refusal) { _ = try AssetID(url) } catch { return error }
      return nil
    }
  }

  @Test(arguments: ["", "skd:", "skd://", "skd:///", "skd://?a", "skd://#a", "skd:///?a", "?", "#", "/"])
  func url_namingNothing_isRefused(url: String) {
    #expect(refusal(bytes(url)) == .empty)
  }

  @Test func url_tooLong_isRefused() {
    #expect(refusal([UInt8](repeating: 0x61, count: AssetID.mostBytes)) == nil)
    #expect(refusal([UInt8](repeating: 0x61, count: AssetID.mostBytes + 1)) == .tooLong)
    #expect(refusal(bytes("skd://a?") + [UInt8](repeating: 0x61, count: 1_000_000)) == .tooLong)
  }

  @Test(arguments: ["{\"ContentId\":\"a\"}", "{\"ContentId\":\"ab\"}", "{\"ContentId\":\"a\",\"IV\":\"??>>\"}"])
  func base64_inEveryVariant_isDecoded(json: String) {
    for alphabet in [Base64.Alphabet.standard, .url] {
      for padded in [true, false] {
        var text = [UInt8](repeating: 0, count: Base64.encodedCount(json.utf8.count, padded: padded))
        withBytes(json) { from in
          text.withUnsafeMutableBufferPointer { Base64.encode(from, into: $0, alphabet: alphabet, padded: padded) }
        }
        let plain = String(decoding: text, as: UTF8.self)
        let coded = plain.replacing("/", with: "%2F").replacing("=", with: "%3d").replacing("+", with: "%2B")
        for url in ["skd://\(plain)", "skd:\(plain)", "skd://\(plain)/", "skd://\(plain)?x=1", plain, "Skd://\(coded)"]
        {
          #expect(asset(url)?.decoded == bytes(json), "\(url)")
        }
      }
    }
  }

  @Test func text_thatIsNoBase64_hasNothingDecoded() {
    for url in ["skd://movie_1!", "skd://a", "skd://====", "skd://a.b"] {
      #expect(asset(url) != nil && asset(url)?.decoded == nil)
    }
  }

  @Test func scheme_ofTheHost_isUsedInstead() {
    #expect(asset("fairplay://x", scheme: "FAIRPLAY")?.text == bytes("x"))
    #expect(asset("skd://x", scheme: "fairplay")?.text == bytes("skd://x"))
    #expect(asset("skd://x", scheme: "")?.text == bytes("skd://x"))
  }

  @Test func hostileURL_neverTraps() {
    var dice = Dice(12)
    for _ in 0..<20_000 {
      let url = hostile(
        &dice,
        [
          "skd", ":", "//", "/", "?", "#", "%", "%4", "%41", "%00", "=", "e30", "eyJhIjoxfQ==", "-_", ";", "@", "[",
          "]", "ä"
        ])
      let found = withBytes(url) { try? AssetID($0) }
      #expect((found == nil) == (refusal(url) != nil))
      if let found {
        #expect(!found.text.isEmpty && found.text.count <= url.count && (found.decoded?.count ?? 0) <= found.text.count)
      }
    }
  }
}

@Suite struct ContentIdentifierTests {
  private func found(_ variant: ContentIdentifier, _ url: String, isJSON: Bool = true) -> String? {
    withBytes(url) { try? variant.bytes(of: $0) { _ in isJSON } }.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test(arguments: [
    (ContentIdentifier.hostOnly, "skd://Host.Example/a?b", "Host.Example"), (.hostOnly, "skd://h:443/a", "h"),
    (.hostOnly, "skd://u:p@h:1", "h"),
    (.hostOnly, "skd://h%2Di?x", "h-i"), (.hostOnly, "skd://[::1]:80/x", "[::1]"), (.hostOnly, "skd:h#x", "h"),
    (.hostOnly, "h/x", "h"),
    (.hostOnly, "skd://h:x", "h:x"), (.everythingAfterScheme, "skd://a%20b/?c#d", "a%20b/?c#d"),
    (.everythingAfterScheme, "SKD:a", "a"),
    (.afterLastSemicolon, "skd://h/;a;b", "b"), (.afterLastSemicolon, "skd://h/a", "skd://h/a"),
    (.wholeURL, "skd://h/?a#b", "skd://h/?a#b"),
    (.decodedBase64, "skd://YWJj?x=/", "abc"), (.decodedBase64, "skd://a.b?x", "a.b"),
    (.decodedJSON, "skd://e30/", "{}")
  ])
  func variant_takesItsPart(variant: ContentIdentifier, url: String, expected: String) {
    #expect(found(variant, url) == expected)
  }

  @Test func decodedJSON_whereItIsNone_isTheText() {
    #expect(found(.decodedJSON, "skd://movie123?x", isJSON: false) == "movie123")
  }

  @Test(arguments: [
    (ContentIdentifier.hostOnly, "skd:///a"), (.hostOnly, "skd://@"), (.everythingAfterScheme, "skd://"),
    (.afterLastSemicolon, "skd://a;"), (.wholeURL, ""),
    (.decodedBase64, "skd://?"), (.decodedJSON, "")
  ])
  func variant_thatFindsNothing_isRefused(variant: ContentIdentifier, url: String) {
    #expect(found(variant, url) == nil)
  }

  @Test func hostileURL_neverTraps() {
    var dice = Dice(13)
    for _ in 0..<5000 {
      let url = hostile(&dice, ["skd:", "//", "/", "?", "#", "%", "%41", "@", ":", ":8", "[", "]", ";", "YWJj"])
      for variant in ContentIdentifier.allCases {
        if let part = withBytes(url, { try? variant.bytes(of: $0) { _ in true } }) {
          #expect(!part.isEmpty && part.count <= url.count)
        }
      }
    }
    let long = [UInt8](repeating: 0x3B, count: 1_000_000)
    for variant in ContentIdentifier.allCases {
      #expect(withBytes(long) { try? variant.bytes(of: $0) { _ in true } } == nil)
    }
  }
}
