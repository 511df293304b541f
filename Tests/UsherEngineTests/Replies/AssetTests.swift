import Testing

@testable import UsherCore
@testable import UsherEngine

func base64(_ plain: [UInt8], _ alphabet: Base64.Alphabet = .standard, padded: Bool = true) -> [UInt8] {
  var text = [UInt8](repeating: 0, count: Base64.encodedCount(plain.count, padded: padded))
  withBytes(plain) { from in
    text.withUnsafeMutableBufferPointer { Base64.encode(from, into: $0, alphabet: alphabet, padded: padded) }
  }
  return text
}

@Suite struct AssetTests {
  private func read(_ url: [UInt8]) -> Asset? { withBytes(url) { try? AssetID($0) }?.read() }
  private func read(json: String) -> Asset? { read(bytes("skd://") + base64(bytes(json))) }

  @Test func json_ofAPackager_isRead() {
    let iv = (0..<16).map { UInt8($0) }
    let coded = String(decoding: base64(iv), as: UTF8.self)
    let json = #"{"ContentId":"movie/ä","KeyId":"00112233-4455-6677-8899-AABBCCDDEEFF","IV":"\#(coded)"}"#
    let asset = read(json: json)
    #expect(asset?.contentID == bytes("movie/ä") && asset?.isJSON == true && asset?.contentIdentifier == bytes(json))
    #expect((asset?.keyID?.text).map { String(decoding: $0, as: UTF8.self) } == "00112233-4455-6677-8899-aabbccddeeff")
    #expect(asset?.iv == iv)
  }

  @Test(arguments: [
    (#"{"contentid":"a"}"#, "a"), (#"{"CONTENTID":"a"}"#, "a"), (#"{"contentid":"a","ContentId":"b"}"#, "b"),
    (#"{"ContentId":"a\u0000b"}"#, "a\u{0}b"),
    (#" {"ContentId" : "a", "Other": {"ContentId":"x"}} "#, "a")
  ])
  func contentID_inAnyCase_isTaken(json: String, expected: String) {
    #expect(read(json: json)?.contentID == bytes(expected))
  }

  @Test(arguments: ["{}", #"{"ContentId":""}"#, #"{"ContentId":5}"#, #"{"ContentId":null}"#, #"{"Content":"a"}"#])
  func json_withoutContentID_isNamedByTheText(json: String) {
    let asset = read(json: json)
    #expect(asset?.contentID == base64(bytes(json)) && asset?.isJSON == true && asset?.contentIdentifier == bytes(json))
  }

  @Test(arguments: [
    "[]", #""a""#, "5", #"{"ContentId":"a""#, #"{"ContentId":"a"} x"#, "\u{0}\u{1}",
    String(repeating: #"{"a":"#, count: 40) + "1" + String(repeating: "}", count: 40)
  ])
  func base64_thatIsNoObject_isText(plain: String) {
    let asset = read(json: plain)
    let text = base64(bytes(plain))
    #expect(
      asset?.contentID == text && asset?.isJSON == false && asset?.contentIdentifier == text && asset?.keyID == nil)
  }

  @Test func plainID_thatHappensToBeBase64_staysText() {
    #expect(read(bytes("skd://movie123"))?.contentID == bytes("movie123"))
    #expect(read(bytes("movie123"))?.contentIdentifier == bytes("movie123"))
  }

  @Test(arguments: [
    #"{"ContentId":"a","KeyId":"x","IV":"y"}"#, #"{"ContentId":"a","KeyId":5,"IV":[]}"#,
    #"{"ContentId":"a","IV":"AAAA"}"#
  ])
  func keyAndIV_thatAreNone_areLeftOut(json: String) {
    let asset = read(json: json)
    #expect(asset?.contentID == bytes("a") && asset?.keyID == nil && asset?.iv == nil)
  }

  @Test func identifier_ofTheDefaultVariant_isTheJSON() {
    let json = bytes(#"{"ContentId":"a"}"#)
    let url = bytes("skd://") + base64(json, .url, padded: false) + bytes("?x=1")
    #expect(withBytes(url) { try? ContentIdentifier.decodedJSON.bytes(of: $0) } == json)
    #expect(
      withBytes(bytes("skd://movie123")) { try? ContentIdentifier.decodedJSON.bytes(of: $0) } == bytes("movie123"))
  }

  @Test func largeAndRandomJSON_neverTraps() {
    var dice = Dice(21)
    let pieces = [
      "{", "}", "\"ContentId\"", ":", "\"a\"", ",", "\"KeyId\"", "\"IV\"", "[", "]", "1", "null", "\\", "\u{0}", "ä"
    ]
    for _ in 0..<10_000 {
      let json = (0..<Int(dice.upTo(12))).map { _ in dice.pick(pieces) }.joined()
      if let asset = read(json: json) { #expect(!asset.contentID.isEmpty) }
    }
    let long = #"{"ContentId":"\#(String(repeating: "a", count: 49_000 - 20))"}"#
    #expect(read(json: long)?.contentID.count == 49_000 - 20)
  }
}
