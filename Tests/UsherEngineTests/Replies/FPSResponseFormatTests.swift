import Testing

@testable import UsherCore
@testable import UsherEngine

/// The base64 of `opaque`.
private let coded = "+/v7+/v7+/v7+/v7+/v7+/v7"

@Suite struct FPSResponseFormatTests {
  private typealias Failure = FPSResponseFormat.Failure
  private static let opaque = [UInt8](repeating: 0xFB, count: 18)
  private let ckc: [UInt8] = (0..<40).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 200) }
  private var text: String { String(decoding: base64(ckc), as: UTF8.self) }

  private func read(
    _ body: [UInt8], _ encoding: FPSResponseFormat.Encoding = .auto, path: String? = nil
  ) -> Result<[UInt8], FPSResponseFormat.Failure> {
    var format = FPSResponseFormat()
    format.encoding = encoding
    if let path { format.keyPath = FPSResponseFormat.keyPath(bytes(path)) ?? [[0x3F]] }
    return withBytes(body) { body in
      do throws(FPSResponseFormat.Failure) { return .success(try format.ckc(body).withBytes { Array($0) }) } catch {
        return .failure(error)
      }
    }
  }
  private func read(
    _ body: String, _ encoding: FPSResponseFormat.Encoding = .auto, path: String? = nil
  ) -> Result<[UInt8], FPSResponseFormat.Failure> {
    read(bytes(body), encoding, path: path)
  }

  @Test func auto_everyWrapper_isOpened() {
    let unpadded = String(text.prefix { $0 != "=" })
    let url = String(decoding: base64(ckc, .url, padded: false), as: UTF8.self)
    let lines = text.enumerated().map { $0.offset % 16 == 15 ? "\($0.element)\r\n" : "\($0.element)" }.joined()
    for wrapped in [
      #"{"CkcMessage":"\#(text)"}"#, #"{"ckcMessage":"\#(unpadded)","sessionToken":"t"}"#, #"{"ckc":"\#(url)"}"#,
      #"{"CKC":"\#(text)"}"#,
      #"{"License":"\#(text)"}"#,
      #" {"license" : "\#(text)"} "#, "\u{FEFF}{\"ckc\":\"\(text)\"}", "<ckc>\(text)</ckc>",
      "\n<ckc>\n\(lines)\n</ckc>\n",
      "<?xml version='1.0'?><r><CKC>\(unpadded)</CKC></r>", text,
      unpadded, url, "\r\n \(lines)\n"
    ] { #expect(read(wrapped) == .success(ckc), "\(wrapped)") }
    #expect(read(ckc) == .success(ckc))
  }

  @Test func auto_octetsWithBlanksAround_keepThem() {
    for octets in [[0x20, 0x0A, 0x00, 0xFF] + ckc + [0x0A], [0x7B, 0x00, 0xFF] + ckc, [0x3C, 0x00, 0xFF] + ckc] {
      #expect(read(octets) == .success(octets))
    }
  }

  @Test(arguments: [
    ("", FPSResponseFormat.Failure.empty), (" \r\n\t", .empty), ("\u{FEFF}", .empty), ("Access denied", .text),
    ("Unauthorized", .text), ("denied", .text),
    ("zu viele Geräte", .text),
    ("<html><body>no</body></html>", .webPage), ("<!DOCTYPE html>", .webPage), ("{", .notJSON),
    ("{'ckc':'x'}", .notJSON), ("{}", .noMember),
    (#"{"errorCode":4000}"#, .noMember),
    (#"{"ckc":5}"#, .noMember), (#"{"ckc":null}"#, .noMember), (#"{"ckc":{"ckc":"\#(coded)"}}"#, .noMember),
    (#"{"ckc":""}"#, .empty), (#"{"ckc":"  "}"#, .empty),
    (#"{"ckc":"!"}"#, .notBase64),
    ("<ckc></ckc>", .empty), ("<ckc> \n</ckc>", .empty), ("<ckc>AAA", .noElement), ("<ckc>!</ckc>", .notBase64),
    ("[]", .text), ("\"\(coded)\"", .text),
    (#"{"ckc":"QWNjZXNzIGRlbmllZA=="}"#, .noMember), ("<ckc>PGh0bWw+PC9odG1sPg==</ckc>", .noMember),
    ("VGhpcyBpcyBhIHNlbnRlbmNlIHdpdGhvdXQgYSBrZXkuCg==", .text), ("=", .text)
  ])
  func auto_noLicence_saysWhy(body: String, expected: FPSResponseFormat.Failure) {
    #expect(read(body) == .failure(expected))
  }

  @Test(arguments: [
    ([0x1F, 0x8B, 8, 0, 0xFF], FPSResponseFormat.Failure.compressed), ([0x78, 0xDA, 0, 0xFF], .compressed),
    ([0xFF, 0xFE, 0x7B, 0], .utf16), ([0x7B, 0, 0x22, 0, 0x63, 0], .utf16)
  ])
  func auto_otherCodings_areRefused(body: [UInt8], expected: FPSResponseFormat.Failure) {
    #expect(read(body) == .failure(expected) && read(body, .raw) == .failure(expected))
  }

  @Test func named_encoding_takesThatOnly() {
    #expect(read(ckc, .raw) == .success(ckc) && read("", .raw) == .failure(.empty))
    #expect(read("text", .raw) == .failure(.text) && read("<html>", .raw) == .failure(.webPage))
    #expect(
      read(coded, .base64) == .success(Self.opaque)
        && read(" +/v7+/v7+/ v7+/v7+/v7+/v7\n", .base64) == .success(Self.opaque))
    #expect(
      read("", .base64) == .failure(.empty) && read("{}", .base64) == .failure(.notBase64)
        && read(ckc, .base64) == .failure(.notBase64))
    #expect(
      read("x<ckc>\(coded)</ckc>", .element) == .success(Self.opaque) && read(coded, .element) == .failure(.noElement)
        && read("", .element) == .failure(.empty))
    #expect(
      read(#"{"ckc":"\#(coded)"}"#, .json) == .success(Self.opaque) && read(coded, .json) == .failure(.notJSON)
        && read("[]", .json) == .failure(.notJSON))
    #expect(read("", .json) == .failure(.empty) && read("{}", .json) == .failure(.noMember))
  }

  @Test(arguments: [
    ("data.ckc", #"{"data":{"ckc":"\#(coded)"}}"#), ("Data.0.CKC", #"{"data":[{"ckc":"\#(coded)"}]}"#),
    ("a.1", #"{"a":["x","\#(coded)"]}"#),
    ("x", #"{"ckc":"no","x":"\#(coded)"}"#),
    ("0", #"{"0":"\#(coded)"}"#), ("a.b.c.d", #"{"a":{"b":{"c":{"d":"\#(coded)"}}}}"#)
  ])
  func keyPath_leadsToTheCKC(path: String, body: String) {
    for encoding in [FPSResponseFormat.Encoding.auto, .json] {
      #expect(read(body, encoding, path: path) == .success(Self.opaque))
    }
  }

  @Test(arguments: [
    ("data.ckc", #"{"ckc":"\#(coded)"}"#), ("a.5", #"{"a":["\#(coded)"]}"#), ("a.-1", #"{"a":["\#(coded)"]}"#),
    ("a.9999999999999999999999", #"{"a":["\#(coded)"]}"#),
    ("a.b", #"{"a":"\#(coded)"}"#),
    ("a", #"{"a":["\#(coded)"]}"#), ("a.b.c", #"{"a":{"b":null}}"#)
  ])
  func keyPath_leadingNowhere_isNoMember(path: String, body: String) {
    #expect(read(body, path: path) == .failure(.noMember))
  }

  @Test(arguments: ["", ".", "a.", ".a", "a..b", "a\u{0}b", "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"])
  func keyPath_thatIsNone_isRefused(path: String) {
    #expect(FPSResponseFormat.keyPath(bytes(path)) == nil)
  }

  @Test func body_ofTenMegabytes_isWhole() {
    let large = [UInt8](repeating: 0xFB, count: 10_000_000)
    #expect(read(large) == .success(large))
  }

  @Test func body_ofAMegabyte_isReadInEveryWrapper() {
    let large = [UInt8](repeating: 0xFB, count: 750_000)
    let coded = base64(large)
    #expect(read(coded) == .success(large))
    #expect(read(bytes("<ckc>") + coded + bytes("</ckc>")) == .success(large))
    #expect(read(bytes(#"{"ckc":""#) + coded + bytes(#""}"#)) == .success(large))
    #expect(read([UInt8](repeating: 0x3C, count: 1_000_000)) == .failure(.text))
    #expect(read([UInt8](repeating: 0x7B, count: 1_000_000)) == .failure(.notJSON))
  }

  @Test func hostileBody_neverTraps() {
    var dice = Dice(41)
    let pieces = [
      "{", "}", "\"ckc\"", ":", "\"\(coded)\"", "<ckc>", "</ckc>", coded, "=", " ", "\n", "\u{0}", "\u{FEFF}",
      "License",
      "ä", "[", "]", "<html>"
    ]
    for _ in 0..<10_000 {
      var body: [UInt8] = []
      for _ in 0..<dice.upTo(10) {
        body += dice.one(in: 6) ? [UInt8(truncatingIfNeeded: dice.next())] : bytes(dice.pick(pieces))
      }
      for encoding in FPSResponseFormat.Encoding.allCases {
        if case .success(let found) = read(body, encoding) { #expect(!found.isEmpty && found.count <= body.count) }
      }
    }
  }
}
