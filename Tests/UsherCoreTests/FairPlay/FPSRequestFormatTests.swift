import Testing

@testable import UsherCore

@Suite struct FPSRequestFormatTests {
  /// In base64 these bytes are "+/++/w==". This text contains all characters of base64 that a form must percent-code.
  private let payload: [UInt8] = [0xFB, 0xFF, 0xBE, 0xFF]

  private func body(_ format: FPSRequestFormat, _ payload: [UInt8]) throws(FPSRequestFormat.Failure) -> String {
    let result = withBytes(payload) { payload in
      Result { () throws(FPSRequestFormat.Failure) in try format.body(payload) }
    }
    return text(try result.get())
  }

  private func format(
    _ encoding: FPSRequestFormat.Encoding, _ urlEncoding: FPSRequestFormat.URLEncoding = .value,
    _ fields: [(String, String)] = [], members: String = ""
  ) -> FPSRequestFormat {
    var format = FPSRequestFormat()
    format.encoding = encoding
    format.urlEncoding = urlEncoding
    format.fields = fields.map { FPSRequestFormat.Field(bytes($0.0), secret($0.1)) }
    format.members = bytes(members)
    return format
  }

  @Test func raw_isThePayloadItself() throws {
    let same = try #require(withBytes(payload) { try? format(.raw).body($0) })
    #expect(same.withBytes { Array($0) } == payload)
    #expect(string(format(.raw).contentType) == "application/octet-stream")
  }

  @Test func base64_isPaddedAndStandard() throws {
    #expect(try body(format(.base64), payload) == "+/++/w==")
  }

  @Test(arguments: [
    (FPSRequestFormat.URLEncoding.value, "spc=%2B%2F%2B%2B%2Fw%3D%3D&asset%20Id=a%26b%3Dc"),
    (.none, "spc=+/++/w==&asset%20Id=a%26b%3Dc"),
    (.whole, "spc%3D%2B%2F%2B%2B%2Fw%3D%3D%26asset%20Id%3Da%26b%3Dc")
  ])
  func form_isCodedAsAsked(urlEncoding: FPSRequestFormat.URLEncoding, expected: String) throws {
    #expect(try body(format(.form, urlEncoding, [("asset Id", "a&b=c")]), payload) == expected)
    #expect(string(format(.form).contentType) == "application/x-www-form-urlencoded")
  }

  @Test func form_withoutFields_isOnePair() throws {
    var other = format(.form)
    other.name = bytes("payload")
    #expect(try body(other, payload) == "payload=%2B%2F%2B%2B%2Fw%3D%3D")
  }

  @Test(
    arguments: [
      ([], "", #"{"spc":"+/++/w=="}"#), ([], "{}", #"{"spc":"+/++/w=="}"#), ([], " { } ", #"{"spc":"+/++/w=="}"#),
      ([("asset", "a\"b\\c\n\u{7F}ä")], "", #"{"spc":"+/++/w==","asset":"a\"b\\c\u000a\u007fä"}"#),
      ([("a", "")], #" {"n":1,"o":{"p":[]}} "#, #"{"spc":"+/++/w==","a":"","n":1,"o":{"p":[]}}"#),
      ([], "}{", #"{"spc":"+/++/w=="}"#),
      ([], "[1]", #"{"spc":"+/++/w=="}"#)
    ] as [([(String, String)], String, String)])
  func json_hasItsMembers(fields: [(String, String)], members: String, expected: String) throws {
    #expect(try body(format(.json, .value, fields, members: members), payload) == expected)
  }

  @Test(arguments: FPSRequestFormat.Encoding.allCases)
  func payload_empty_isRefused(encoding: FPSRequestFormat.Encoding) {
    #expect(throws: FPSRequestFormat.Failure.emptyPayload) { try body(format(encoding), []) }
  }

  @Test func fields_thatCannotBeWritten_areRefused() {
    for encoding in [FPSRequestFormat.Encoding.form, .json] {
      #expect(throws: FPSRequestFormat.Failure.badField) { try body(format(encoding, .value, [("", "x")]), payload) }
    }
    for broken in [[0xFF], [0xC3], [0xED, 0xA0, 0x80]] as [[UInt8]] {
      var other = format(.json)
      other.fields = [FPSRequestFormat.Field(bytes("a"), Secret(broken))]
      #expect(throws: FPSRequestFormat.Failure.badField) { try body(other, payload) }
      other.encoding = .form
      #expect((try? body(other, payload))?.hasPrefix("spc=%2B%2F%2B%2B%2Fw%3D%3D&a=%") == true)
      other.fields = []
      other.encoding = .json
      other.name = broken
      #expect(throws: FPSRequestFormat.Failure.badField) { try body(other, payload) }
    }
    var nameless = format(.form)
    nameless.name = []
    #expect(throws: FPSRequestFormat.Failure.badField) { try body(nameless, payload) }
  }

  @Test(arguments: [
    (FPSRequestFormat.Encoding.raw, 10_000_000), (.base64, 1_000_000), (.form, 1_000_000), (.json, 1_000_000)
  ])
  func payload_large_isWhole(encoding: FPSRequestFormat.Encoding, size: Int) throws {
    let made = try #require(withBytes([UInt8](repeating: 0x00, count: size)) { try? format(encoding).body($0) })
    let around =
      switch encoding {
      case .raw, .base64: 0
      case .form: 4 + 4
      case .json: 10
      }
    #expect(made.count == (encoding == .raw ? size : Base64.encodedCount(size, padded: true)) + around)
  }
}
