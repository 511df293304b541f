import Testing

@testable import UsherCore

@Suite struct SEESRequestTests {
  private let messageID = UUIDBytes(text: bytes("00112233-4455-4677-8899-aabbccddeeff"))

  private func request(
    _ kind: SEESRequest.Kind, _ contentID: [UInt8], _ cookie: [UInt8] = []
  ) throws(SEESRequest.Failure) -> SEESRequest? {
    guard let messageID else { return nil }
    return try SEESRequest(messageID: messageID, kind: kind, contentID: contentID, cookie: cookie)
  }

  @Test func body_isTheJSONOfTheServer() throws {
    #expect(
      text(try request(.timeBased, bytes("movie \"1\""))?.body)
        == #"{"messageID":"00112233-4455-4677-8899-aabbccddeeff","version":1,"requestType":1,"#
        + #""contentID":"movie \"1\""}"#
    )
    #expect(
      text(try request(.deviceBound, bytes("m"), bytes("device-7"))?.body)
        == #"{"messageID":"00112233-4455-4677-8899-aabbccddeeff","version":1,"requestType":3,"#
        + #""contentID":"m","customerCookie":"device-7"}"#
    )
  }

  @Test(
    arguments: [[], [0xFF], [UInt8](repeating: 0x61, count: 65_537), [UInt8](repeating: 0x61, count: 1_000_000)]
      as [[UInt8]])
  func contentID_thatCannotBeAsked_isRefused(contentID: [UInt8]) {
    #expect(throws: SEESRequest.Failure.badContentID) { try request(.timeBased, contentID) }
  }

  @Test(arguments: [[0xFF], [UInt8](repeating: 0x61, count: 33)] as [[UInt8]])
  func cookie_thatCannotBeSent_isRefused(cookie: [UInt8]) {
    #expect(throws: SEESRequest.Failure.badCookie) { try request(.deviceBound, bytes("m"), cookie) }
    #expect((try? request(.deviceBound, bytes("m"), [UInt8](repeating: 0x61, count: 32))) != nil)
  }

  @Test func binding_takesTwoPasses() {
    var binding = SEESBinding(cookie: bytes("c"))
    #expect(binding.kind == .deviceRegistration)
    binding.licenseArrived()
    #expect(binding.kind == .deviceBound && binding.isRegistered)
    binding.deviceUnknown()
    #expect(binding.kind == .deviceRegistration)
    #expect(SEESBinding(cookie: bytes("c"), isRegistered: true).kind == .deviceBound)
  }
}

@Suite struct TokenURLTests {
  private func url(_ text: String, _ scheme: String = "skd", _ target: String = "https") -> String? {
    withBytes(text) { TokenURL.url(in: $0, scheme: bytes(scheme), target: bytes(target)) }.map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  @Test(arguments: [
    (
      "skd://fp.service.example.com:80/hms/fp/rights/?ExpressPlayToken=aB-_1,~",
      "https://fp.service.example.com:80/hms/fp/rights/?ExpressPlayToken=aB-_1,~"
    ),
    ("SKD://H/%41?x#frag", "https://H/%41?x"), ("skd:https://ent.example/s?cid=1", "https://ent.example/s?cid=1"),
    ("skd://https://ent.example/s", "https://ent.example/s"),
    ("skd://h", "https://h"), ("skd:HTTPS://h", "HTTPS://h"),
    ("skd:ent.example/s?cid=1", "https://ent.example/s?cid=1")
  ])
  func url_inside_isTakenAsItStands(text: String, expected: String) {
    #expect(url(text) == expected)
  }

  @Test(arguments: [
    "", "skd:", "skd://", "skd:///x", "skd://?x", "skd://#x", "skd:content-1", "skd:/x", "skd:https://",
    "skd:https://#x", "skd:http://h",
    "https://h", "skdx://h"
  ])
  func text_withoutOne_hasNone(text: String) {
    #expect(url(text) == nil)
  }

  @Test func schemes_ofTheHost_areUsed() {
    #expect(url("fps://h:1/x", "fps", "http") == "http://h:1/x")
    #expect(url("skd://h", "fps") == nil && url("skd://h", "") == nil)
    #expect(url("skd://" + String(repeating: "a", count: 1_000_000)) == nil)
  }

  @Test(arguments: [
    ("skd://h/s?cid=movie%201", "movie 1"), ("https://h?a=b&cid=x&cid=y", "x"), ("https://h?cid=", ""),
    ("https://h?xcid=1&cid=2#cid=3", "2"),
    ("https://h?cid&cid=4", "4"), ("h?CID=1&cid=5?6=7", "5?6=7")
  ])
  func query_value_isFound(text: String, expected: String) {
    #expect(withBytes(text) { TokenURL.queryValue("cid", in: $0) } == bytes(expected))
  }

  @Test(arguments: ["", "?", "?cid", "https://h/cid=1", "https://h#?cid=1", "https://h?CID=1", "https://h?x=cid=1"])
  func query_withoutIt_hasNone(text: String) {
    #expect(withBytes(text) { TokenURL.queryValue("cid", in: $0) } == nil)
  }

  @Test func hostileText_neverTraps() {
    var dice = Dice(71)
    for _ in 0..<20_000 {
      let text = hostile(&dice, ["skd", ":", "//", "/", "?", "#", "https://", "cid", "=", "&", "%", "%4", "h"])
      if let found = withBytes(text, { TokenURL.url(in: $0) }) { #expect(found.count <= text.count + 8) }
      if let found = withBytes(text, { TokenURL.queryValue("cid", in: $0) }) { #expect(found.count < text.count) }
    }
  }
}

@Suite struct ExpressPlayErrorTests {
  @Test func error_withoutWords_getsOurs() {
    #expect(ExpressPlayError(code: -2002, message: "").message == "the token has expired")
    #expect(ExpressPlayError(code: -2022, message: "").message == ExpressPlayError(code: -2020, message: "").message)
    #expect(ExpressPlayError(code: -2002, message: "theirs").message == "theirs")
    for code in [0, 1007, -1, .min, .max] as [Int64] {
      #expect(ExpressPlayError(code: code, message: "").message == "")
    }
  }

  @Test func published_numbers_haveWords() {
    let published: [Int64] = [
      -2002, -2003, -2005, -2027, -2008, -2034, -2040, -2017, -2018, -2019, -2020, -2025, -2030, -2031, -2033, -2035,
      -2037, -3004, -4001, -4010, -4018,
      -4022, -4024, -5003, -6001, -6002, -6003, -6004,
      -6005, -6006, -6007, -6008, -6009
    ]
    for code in published { #expect(ExpressPlayError.meaning(of: code) != nil) }
  }
}
