import Testing

@testable import UsherCore
@testable import UsherEngine

private var nothing: ReplySecrets { .these(HiddenSecrets()) }

/// Bodies that do not come from a session manager, licence server or certificate server.
private let foreignBodies: [[UInt8]] =
  [
    "<html>sign in</html>", "\u{FEFF}\n<!DOCTYPE html><html/>", String(repeating: " ", count: 70) + "<html/>",
    "<!-- portal -->\n<html/>", "<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"/>",
    "<error><code>7</code></error>", "Zugang f\u{FC}r Kunden", "{\"keys\":[", "{\"certificate\":",
    "This network asks you to sign in before you may use it. See the card."
  ].map(bytes) + [
    [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xAB, 0x56], [0x78, 0x9C, 0xAB, 0xAE, 5, 0], [0x28, 0xB5, 0x2F, 0xFD, 4, 0],
    [0xFF, 0xFE] + bytes("{}").flatMap { [$0, 0] }, [0xFE, 0xFF] + bytes("{}").flatMap { [0, $0] },
    bytes("{\"sessionToken\":\"t\"}").flatMap { [$0, 0] }, bytes("<html>").flatMap { [0, $0] },
    bytes("Zugang f") + [0xFC] + bytes("r Kunden"), [0xEF, 0xBB, 0xBF, 0x30, 3, 1, 2, 3] + noise, utf16("St\u{F6}rung"),
    utf16("{\"\u{FC}\":1}"),
    utf16("{\"\u{43E}\u{448}\u{438}\u{431}\u{43A}\u{430}\":\"\u{441}\u{435}\u{430}\u{43D}\u{441}\"}"),
    utf16("\u{41E}\u{448}\u{438}\u{431}\u{43A}\u{430} \u{434}\u{43E}\u{441}\u{442}\u{443}\u{43F}\u{430}"),
    bytes("\u{1B}[31mForbidden"), bytes("access denied\0"),
    bytes("\u{1B}[31m\u{41E}\u{448}\u{438}\u{431}\u{43A}\u{430}"), [7],
    [0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10] + noise, bytes("%PDF-1.7\n") + noise, [0x50, 0x4B, 3, 4] + noise,
    [0xFF, 0xD8, 0xFF, 0xE0] + noise
  ]

private let noise = (0..<40).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 200) }

/// Text in UTF-16 without a byte order mark; the low byte of each character comes first.
private func utf16(_ text: String) -> [UInt8] {
  text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
}

@Suite struct ReplyDecoderTests {
  private func response(_ status: Int32, _ body: String, retryAfter: Milliseconds? = nil) -> HTTPOutcome {
    .response(HTTPResponse(status: status, body: secret(body), retryAfter: retryAfter))
  }

  private func fields(_ outcome: SSMOutcome) -> SessionFields? {
    if case .success(let fields) = outcome { return fields } else { return nil }
  }
  private func failure(_ outcome: SSMOutcome) -> WireFailure? {
    if case .failure(let failure) = outcome { return failure } else { return nil }
  }

  private func setup(_ status: Int32, _ body: String) -> SSMOutcome {
    ReplyDecoder.ssm(response(status, body), .setup, hiding: nothing)
  }

  @Test(arguments: [200, 201, 299] as [Int32])
  func setup_anySuccess_isRead(status: Int32) {
    let read = fields(setup(status, #" {"sessionToken":"a.b-c_d","heartbeat":60} "#))
    #expect(
      text(read?.token) == "a.b-c_d" && read?.period == .number(60) && read?.isObject == true && read?.enforced == nil)
  }

  @Test(arguments: [
    (#"{"heartbeat":60}"#, PeriodField.number(60)), (#"{"heartBeat":30}"#, .number(30)),
    (#"{"HEARTBEAT":1}"#, .number(1)),
    (#"{"heartbeat":0.07}"#, .number(0.07)), (#"{"heartbeat":1e12}"#, .number(1e12)),
    (#"{"heartbeat":-1}"#, .number(-1)),
    (#"{"heartbeat":"60"}"#, .text(60)), (#"{"heartbeat":"0.5"}"#, .text(0.5)), (#"{"heartbeat":"soon"}"#, .wrongType),
    (#"{"heartbeat":""}"#, .wrongType), (#"{"heartbeat":null}"#, .wrongType), (#"{"heartbeat":true}"#, .wrongType),
    (#"{"heartbeat":[60]}"#, .wrongType),
    (#"{"heartbeat":{}}"#, .wrongType), ("{}", .missing), (#"{"heartBeat":30,"heartbeat":60}"#, .number(60))
  ])
  func period_inEveryShape_isReadAsItStands(body: String, expected: PeriodField) {
    let read = fields(setup(200, body))?.period
    if body.contains("null") { #expect(read == .missing || read == .wrongType) } else { #expect(read == expected) }
  }

  @Test(arguments: [
    #"{"sessionToken":""}"#, #"{"sessionToken":null}"#, #"{"sessionToken":5}"#, #"{"sessionToken":["t"]}"#,
    #"{"sessionToken":"a\r\nX: y"}"#, #"{"sessionToken":"a\u0000b"}"#, #"{"token":"t"}"#
  ])
  func token_thatIsNone_isNotTaken(body: String) {
    let read = fields(setup(200, body))
    #expect(read != nil && read?.token == nil)
  }

  @Test func token_inAnotherCase_isTaken() {
    #expect(text(fields(setup(200, #"{"SessionToken":"t"}"#))?.token) == "t")
  }

  @Test(arguments: [
    "<html>hello</html>", "{", #"{"sessionToken":"t""#, "nonsense", #"{"sessionToken":"t"} trailing"#,
    "{\"sessionToken\":\"t\"}\0 trailing", #"{'sessionToken':'t'}"#
  ])
  func reply_unreadable_isProtocolErrorThatMayHaveTakenEffect(body: String) {
    for call in [SSMSession.Call.setup, .heartbeat] {
      let failed = failure(ReplyDecoder.ssm(response(200, body), call, hiding: nothing))
      #expect(
        failed?.status == .protocolError && failed?.mayHaveTakenEffect == true && failed?.httpStatus == 200
          && failed?.isTransient == true)
    }
  }

  @Test func reply_deeplyNested_isRefused() {
    #expect(
      failure(setup(200, String(repeating: "[", count: 100) + String(repeating: "]", count: 100)))?.status
        == .protocolError)
  }

  @Test(arguments: ["[]", "5", "\"text\"", "true"])
  func reply_thatIsNoObject_hasNoFields(body: String) {
    let read = fields(setup(200, body))
    #expect(read == nil || (read?.isObject == false && read?.token == nil))
  }

  @Test(arguments: [
    "", "  \r\n", "OK", "session torn down", "\u{FEFF}OK\n", "{}", "\u{FEFF}{}", #"{"sessionToken":"late"}"#,
    #"{"sessionToken":7}"#, "[]",
    #"{"errorCode":0}"#, #"{"code":200,"message":"OK"}"#
  ])
  func teardown_confirmed_isSuccess(body: String) {
    for status in [200, 204] as [Int32] {
      #expect(fields(ReplyDecoder.ssm(response(status, body), .teardown, hiding: nothing)) != nil)
    }
  }

  @Test(arguments: [
    #"{"errorCode":4000}"#, #"{"errorCode":"4000","message":"internal"}"#, #"{"error":{"code":4000}}"#,
    #"{"code":"4000"}"#
  ])
  func teardown_withAnErrorCode_isRefused(body: String) {
    let failed = failure(ReplyDecoder.ssm(response(200, body), .teardown, hiding: nothing))
    #expect(failed?.status == .refused && failed?.serviceCode == 4000 && failed?.isTransient == false)
  }

  @Test(arguments: foreignBodies)
  func foreignBody_isNobodysAnswer(body: [UInt8]) {
    for call in [SSMSession.Call.setup, .heartbeat, .teardown] {
      let reply = HTTPOutcome.response(HTTPResponse(status: 200, body: Secret(body)))
      let failed = failure(ReplyDecoder.ssm(reply, call, hiding: nothing))
      #expect(failed?.status == .protocolError && failed?.mayHaveTakenEffect == true)
    }
  }

  @Test(arguments: [
    "<html>", "\n<!DOCTYPE html>", "  <HTML lang=de>", "<!-- portal --><html>", "<?xml version='1.0'?><!DOCTYPE html>"
  ])
  func webPage_isNobodysAnswer(body: String) {
    for call in [SSMSession.Call.setup, .heartbeat, .teardown] {
      let failed = failure(ReplyDecoder.ssm(response(200, body), call, hiding: nothing))
      #expect(
        failed?.status == .protocolError && failed?.message == "the answer is a web page" && failed?.isTransient == true
      )
    }
  }

  @Test func markup_insideAnObject_isNoWebPage() {
    let body = #"{"message":"<html>","sessionToken":"t"}"#
    #expect(text(fields(setup(200, body))?.token) == "t")
    #expect(fields(ReplyDecoder.ssm(response(200, body), .teardown, hiding: nothing)) != nil)
  }

  @Test(arguments: [
    #"{"sessionToken":5}"#, #"{"sessionToken":["t"]}"#, #"{"sessionToken":"a\r\nX: y"}"#, "[]", "5", "\"text\""
  ])
  func heartbeat_answeredWithAnUnusableToken_isProtocolError(body: String) {
    let failed = failure(ReplyDecoder.ssm(response(200, body), .heartbeat, hiding: nothing))
    #expect(failed?.status == .protocolError && failed?.mayHaveTakenEffect == true)
  }

  @Test(arguments: [#"{"sessionToken":""}"#, #"{"sessionToken":null}"#, "{}", ""])
  func heartbeat_answeredWithoutAToken_isSuccess(body: String) {
    #expect(
      fields(ReplyDecoder.ssm(response(200, body), .heartbeat, hiding: nothing)).map {
        $0.token == nil
      } == true
    )
  }

  @Test func success_keepsItsHTTPStatus() {
    #expect(
      fields(setup(204, ""))?.httpStatus == 204 && fields(setup(202, #"{"sessionToken":"t"}"#))?.httpStatus == 202)
  }

  @Test(arguments: [false, true])
  func heartbeat_emptyBody_keepsTheToken(mayBeCut: Bool) {
    let empty = HTTPResponse(status: 200, body: secret(""), mayBeCut: mayBeCut)
    let read = fields(ReplyDecoder.ssm(.response(empty), .heartbeat, hiding: nothing))
    #expect(read != nil && read?.token == nil && read?.mayBeCut == mayBeCut)
  }

  @Test(
    arguments: [
      ("true", true), ("false", false), (#""true""#, true), (#""False""#, false), ("0", false), ("1", true),
      (#""0""#, false), ("null", nil), (#""maybe""#, nil), ("[]", nil)
    ] as [(String, Bool?)])
  func enforced_inAnyForm_isRead(value: String, expected: Bool?) {
    let read = fields(setup(200, "{\"sessionToken\":\"t\",\"sessionDrmEnforced\":\(value)}"))
    #expect(read != nil && read?.enforced == expected)
  }

  @Test func denial_withCode_isRefusedWithItsMessage() {
    let failed = failure(setup(400, #"{"errorCode":1007,"message":"too many\nstreams"}"#))
    #expect(
      failed?.status == .refused && failed?.serviceCode == 1007 && failed?.httpStatus == 400
        && failed?.message == "too many streams")
    #expect(failed?.mayHaveTakenEffect == false && failed?.isTransient == false)
  }

  @Test(arguments: [
    #"{"error":"denied"}"#, "", "<html>no</html>", #"{"errorCode":0}"#, #"{"errorCode":"x"}"#, #"{"errorCode":null}"#,
    "[]", "null"
  ])
  func denial_withoutCode_isHTTPError(body: String) {
    let failed = failure(setup(400, body))
    #expect(failed?.status == .http && failed?.serviceCode == 0 && failed?.httpStatus == 400)
  }

  @Test func denial_messageWithAToken_isRedacted() {
    let jwt = String(repeating: "eyJhbGciOi.", count: 12)
    let failed = failure(setup(400, "{\"errorCode\":1006,\"message\":\"bad \(jwt)\"}"))
    #expect(failed?.message == "bad [redacted]")
  }

  @Test(arguments: [
    #"{"errorCode":1007}"#, #"{"errorCode":"1007"}"#, #"{"code":1007}"#, #"{"code":"1007"}"#,
    #"{"error":{"errorCode":1007}}"#, #"{"error":{"code":"1007","message":"x"}}"#, #"{"errors":[{"code":1007}]}"#,
    #"{"errorResponse":{"code":"1007"}}"#, #"{"error_code":1007}"#, #"{"status":{"code":1007}}"#,
    #"{"result":{"errorCode":"1007"}}"#, "\u{FEFF}{\"errorCode\":1007}"
  ])
  func denial_withTheCodeUnderAnyName_isRefused(body: String) {
    #expect(failure(setup(400, body))?.serviceCode == 1007 && failure(setup(400, body))?.status == .refused)
  }

  @Test(arguments: [#"{"code":400}"#, #"{"code":"400"}"#, #"{"code":"SRM-0002"}"#, #"{"status":1007}"#])
  func denial_withAnHTTPStatusAsCode_isHTTPError(body: String) {
    #expect(failure(setup(400, body))?.status == .http)
  }

  @Test(arguments: [
    #"{"message":"too many"}"#, #"{"errorMessage":"too many"}"#, #"{"error":"too many"}"#,
    #"{"error":{"message":"too many"}}"#, #"{"error":"","detail":"too many"}"#,
    #"{"type":"https://a.example/b","title":"no","detail":"too many"}"#, #"{"type":"about:blank","title":"too many"}"#,
    #"{"error":"limit","error_description":"too many"}"#, #"{"errors":[{"detail":"too many"}]}"#,
    #"{"href":"too many"}"#, #"{"type":"too many"}"#
  ])
  func denial_wordsUnderAnyName_areTold(body: String) {
    #expect(failure(setup(400, body))?.message == "too many")
  }

  @Test(arguments: [301, 302, 307, 308] as [Int32])
  func redirect_isItsOwnFailure(status: Int32) {
    #expect(failure(setup(status, ""))?.status == .redirect)
    #expect(failure(setup(status, ""))?.isTransient == true)
  }

  @Test(arguments: [
    ("https://portal.example/login?session=abc#top", "the server redirects to https://portal.example/login"),
    ("/moved", "the server redirects to /moved"), (" ", ""), ("?next=1", ""),
    ("https://a.example/eyJhbGciOi0123456789abcdefghij", "the server redirects to https:[redacted]")
  ])
  func redirect_saysWhereWithoutSecrets(location: String, expected: String) {
    let reply = HTTPResponse(status: 307, body: secret(""), location: secret(location))
    #expect(failure(ReplyDecoder.ssm(.response(reply), .setup, hiding: nothing))?.message == expected)
  }

  @Test func setup_withoutATokenButWithWords_tellsTheWords() {
    let failed = failure(setup(200, #"{"status":"ERROR","error":"too many"}"#))
    #expect(failed?.status == .protocolError && failed?.message == "too many" && failed?.mayHaveTakenEffect == true)
  }

  @Test func retryAfter_isPassedOn() {
    #expect(
      failure(ReplyDecoder.ssm(response(503, "", retryAfter: 7000), .heartbeat, hiding: nothing))?
        .retryAfter
        == 7000)
  }

  @Test func transportFailure_isPassedOn() {
    #expect(
      failure(ReplyDecoder.ssm(.failure(WireFailure(.tls)), .heartbeat, hiding: nothing))?.status
        == .tls)
  }

  // MARK: Licences

  private func license(
    _ keySystem: KeySystem, _ body: String, status: Int32 = 200
  ) -> LicenseDecoding {
    ReplyDecoder.license(response(status, body), keySystem: keySystem, hiding: nothing)
  }
  private func license(
    _ keySystem: KeySystem, _ body: [UInt8], _ media: MediaType = .other
  ) -> LicenseDecoding {
    ReplyDecoder.license(
      .response(HTTPResponse(status: 200, body: Secret(body), media: media)), keySystem: keySystem, hiding: nothing)
  }

  private static let ckc: [UInt8] =
    [0, 0, 0, 1] + [UInt8](repeating: 0x41, count: 20) + [0, 0, 0, 8] + [UInt8](repeating: 0xC3, count: 8)
  private static let signedMessage: [UInt8] =
    [0x08, 0x02, 0x12, 0x04, 0x41, 0x42, 0x43, 0x44, 0x1A, 0x02, 0x45, 0x46, 0x20, 0xFF, 0x01, 0x2D, 1, 2, 3, 4]

  @Test(arguments: foreignBodies)
  func foreignBody_neverReachesTheCDM(body: [UInt8]) {
    for keySystem in KeySystem.allCases {
      let failed = failure(license(keySystem, body))
      #expect(failed?.status == .protocolError && failed?.mayHaveTakenEffect == true)
    }
  }

  @Test(arguments: [
    (KeySystem.fairPlay, ckc), (.fairPlay, ckc + [13, 10]), (.widevine, signedMessage)
  ])
  func octets_areTheLicence(keySystem: KeySystem, body: [UInt8]) {
    #expect(reply(license(keySystem, body))?.data.isEqual(to: Secret(body)) == true)
    #expect(reply(license(keySystem, body, .text))?.data.isEqual(to: Secret(body)) == true)
  }

  @Test func octets_ofAFormThatIsNotPublic_areTakenIfTheirTypeIsBinary() {
    for body in [noise, bytes("CKC1") + noise] {
      #expect(reply(license(.fairPlay, body))?.data.isEqual(to: Secret(body)) == true)
      #expect(failure(license(.fairPlay, body, .text))?.message == "the answer is text")
      #expect(failure(license(.fairPlay, body, .html))?.message == "the answer is a web page")
      #expect(failure(license(.fairPlay, body, .file))?.message == "the answer is a file")
      #expect(failure(license(.fairPlay, body, .utf16))?.message == "the answer is UTF-16 text")
    }
  }

  @Test func octets_ofAnyContent_areNotTakenForUTF16() {
    var dice = Dice(1)
    for _ in 0..<50_000 {
      let body = bytes("CKC1") + (0..<dice.between(28, 252)).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
      #expect(failure(license(.fairPlay, body)) == nil, "\(body)")
    }
  }

  @Test func octets_sentAsAWebPage_areTakenIfTheirFormIsKnown() {
    for media in [MediaType.html, .file] {
      #expect(reply(license(.fairPlay, Self.ckc, media)) != nil)
      #expect(reply(license(.widevine, Self.signedMessage, media)) != nil)
    }
  }

  @Test func octets_withLengthsThatDoNotFit_areNoLicence() {
    for body in [
      Self.ckc + [0], Array(Self.ckc.dropLast()), Array(Self.ckc.prefix(20)), Array(Self.signedMessage.dropLast())
    ] {
      for media in [MediaType.other, .text, .html] {
        #expect(failure(license(.fairPlay, body, media))?.message == "the licence is not whole")
      }
      let text = String(decoding: base64(body), as: UTF8.self)
      #expect(failure(license(.fairPlay, "{\"ckc\":\"\(text)\"}"))?.message == "the answer has no CKC")
      #expect(failure(license(.widevine, "{\"license\":[\"\(text)\"]}"))?.message == "the answer has no license")
    }
  }

  @Test(arguments: foreignBodies)
  func foreignBody_asBase64_neverReachesTheCDM(body: [UInt8]) {
    let text = String(decoding: base64(body), as: UTF8.self)
    #expect(failure(license(.fairPlay, "{\"CkcMessage\":\"\(text)\"}"))?.message == "the answer has no CKC")
    #expect(failure(license(.fairPlay, "<ckc>\(text)</ckc>"))?.message == "the answer has no CKC")
    for json in ["{\"license\":[\"\(text)\"]}", "{\"license\":\"\(text)\"}"] {
      #expect(failure(license(.widevine, json))?.message == "the answer has no license")
    }
  }

  @Test(arguments: [
    ("image/png", MediaType.file), ("Application/PDF", .file), ("application/zip; x=y", .file), ("video/mp4", .file),
    ("application/json; charset=UTF-16LE", .utf16), ("text/plain; charset=\"utf-16\"", .utf16), ("text/html", .html),
    ("image/svg+xml", .file), ("application/octet-stream", .other), ("text/plain; charset=utf-8", .text), ("", .other)
  ])
  func contentType_isRead(value: String, expected: MediaType) {
    #expect(withBytes(bytes(value)) { MediaType($0) } == expected)
  }

  @Test func textOfAnotherCharset_isKnownByItsContentType() {
    let latin = bytes("Zugang f") + [0xFC] + bytes("r Kunden gesperrt")
    let cyrillic: [UInt8] = [0xCD, 0xE5, 0xF2, 0x20, 0xE4, 0xEE, 0xF1, 0xF2, 0xF3, 0xEF, 0xE0]
    #expect(failure(license(.widevine, latin))?.message == "the answer is text")
    #expect(failure(license(.widevine, cyrillic, .text))?.message == "the answer is text")
    #expect(failure(license(.widevine, cyrillic, .html))?.message == "the answer is a web page")
  }

  @Test func fairPlay_everyFormOfKeyServers_isRead() {
    let text = String(decoding: base64(Self.ckc), as: UTF8.self)
    for body in [
      "<ckc>\(text)</ckc>", "{\"ckc\":\"\(text)\",\"sessionToken\":\"t\"}", "\u{FEFF}{\"License\":\"\(text)\"}", text
    ] {
      #expect(reply(license(.fairPlay, body))?.data.isEqual(to: Secret(Self.ckc)) == true)
    }
    #expect(
      self.text(
        reply(license(.fairPlay, "{\"ckc\":\"+/v7+/v7+/v7+/v7+/v7+/v7\",\"sessionToken\":\"t\"}"))?.fields.token) == "t"
    )
  }

  private func text(_ secret: Secret?) -> String { UsherEngineTests.text(secret) }

  @Test func mark_beforeTheText_isNotPassedOn() {
    let xml = "<soap:Envelope/>"
    #expect(text(reply(license(.playReady, "\u{FEFF}" + xml))?.data) == xml)
    let json = #"{"keys":[{"kty":"oct","kid":"a","k":"b"}]}"#
    #expect(text(reply(license(.clearKey, "\u{FEFF}" + json))?.data) == json)
  }

  private let soapFault =
    "<s:Envelope><s:Body><s:Fault><faultcode>s:Server</faultcode><faultstring>too many</faultstring><detail>"
    + "<StatusCode>0x8004c600</StatusCode></detail></s:Fault></s:Body></s:Envelope>"

  @Test func playReady_fault_tellsTheServersWords() {
    let refused = failure(license(.playReady, soapFault))
    #expect(refused?.status == .refused && refused?.message == "s:Server too many 0x8004c600")
    let failed = failure(license(.playReady, soapFault, status: 500))
    #expect(failed?.status == .http && failed?.httpStatus == 500 && failed?.message == "s:Server too many 0x8004c600")
  }
  private func reply(_ decoding: LicenseDecoding) -> LicenseReply? {
    if case .success(let reply) = decoding { return reply } else { return nil }
  }
  private func failure(_ decoding: LicenseDecoding) -> WireFailure? {
    if case .failure(let failure) = decoding { return failure } else { return nil }
  }

  @Test(arguments: ["-_v7-_v7-_v7-_v7-_v7-w==", "-_v7-_v7-_v7-_v7-_v7-w", "+/v7+/v7+/v7+/v7+/v7+w=="])
  func fairPlay_ckcInAnyBase64_isDecoded(ckc: String) {
    let read = reply(license(.fairPlay, "{\"CkcMessage\":\"\(ckc)\",\"sessionToken\":\"t\"}"))
    #expect(text(read?.fields.token) == "t")
    #expect(read?.data.isEqual(to: Secret([UInt8](repeating: 0xFB, count: 16))) == true)
  }

  @Test(arguments: [
    "{}", #"{"CkcMessage":""}"#, #"{"CkcMessage":"!!!"}"#, #"{"CkcMessage":5}"#, "{broken", "", "   ",
    "<!DOCTYPE html><html>", "\n<HTML>"
  ])
  func fairPlay_withoutCKC_isProtocolError(body: String) {
    #expect(failure(license(.fairPlay, body))?.status == .protocolError)
  }

  @Test func widevine_arrayOrString_isDecoded() {
    let message = String(decoding: base64(Self.signedMessage), as: UTF8.self)
    let first = reply(
      license(
        .widevine, #"{"status":"OK","errorCode":0,"license":["\#(message)","YmFy"],"sessionDrmEnforced":false}"#))
    #expect(first?.data.isEqual(to: Secret(Self.signedMessage)) == true && first?.fields.enforced == false)
    let renewal = reply(license(.widevine, #"{"sessionToken":"t2","license":"\#(message)"}"#))
    #expect(
      renewal?.data.isEqual(to: Secret(Self.signedMessage)) == true && text(renewal?.fields.token) == "t2"
        && renewal?.fields.enforced == nil)
  }

  @Test func widevine_errorInsideSuccess_isRefused() {
    let failed = failure(license(.widevine, #"{"errorCode":4000,"message":"no"}"#))
    #expect(failed?.status == .refused && failed?.serviceCode == 4000)
  }

  @Test(arguments: ["{}", #"{"license":[]}"#, #"{"license":[5]}"#, #"{"license":""}"#, "{broken", ""])
  func widevine_withoutLicense_isProtocolError(body: String) {
    #expect(failure(license(.widevine, body))?.status == .protocolError)
  }

  @Test func widevine_octets_passUnchanged() {
    let read = reply(license(.widevine, Self.signedMessage))
    #expect(read?.data.isEqual(to: Secret(Self.signedMessage)) == true && read?.fields.token == nil)
  }

  @Test func playReady_customData_bringsTheToken() {
    let xml =
      "<?xml version='1.0'?><s:Envelope><CustomData>{&quot;sessionToken&#x22;:&#34;t9&quot;}</CustomData></s:Envelope>"
    let read = reply(license(.playReady, xml))
    #expect(text(read?.data) == xml && text(read?.fields.token) == "t9")
  }

  @Test(arguments: [
    "<Envelope/>", "<s:Envelope><CustomData>not json</CustomData></s:Envelope>",
    "<s:Envelope><CustomData>[]</CustomData></s:Envelope>"
  ])
  func playReady_withoutToken_passesUnchanged(xml: String) {
    let read = reply(license(.playReady, xml))
    #expect(text(read?.data) == xml && read?.fields.token == nil)
  }

  @Test(arguments: ["{}", "text", "", "<html>proxy</html>", "<error>no</error>", "<soap/>"])
  func playReady_notXML_isProtocolError(body: String) {
    #expect(failure(license(.playReady, body))?.status == .protocolError)
  }

  @Test func clearKey_ofAThousandKeys_isRead() {
    let key = #"{"kty":"oct","kid":"AAAAAAAAAAAAAAAAAAAAAA","k":"AAAAAAAAAAAAAAAAAAAAAA"}"#
    let json = #"{"keys":["# + Array(repeating: key, count: 1000).joined(separator: ",") + "]}"
    #expect(text(reply(license(.clearKey, json))?.data) == json)
    let hostile = #"{"keys":["# + Array(repeating: "{}", count: 100_000).joined(separator: ",") + "]}"
    #expect(failure(license(.clearKey, hostile))?.status == .protocolError)
  }

  @Test func clearKey_keys_passUnchanged() {
    let json = #"{"keys":[{"kty":"oct","kid":"a","k":"b"}],"type":"temporary","sessionToken":"t3"}"#
    let read = reply(license(.clearKey, json))
    #expect(text(read?.data) == json && text(read?.fields.token) == "t3")
    for body in [
      #"{"keys":[]}"#, "{}", #"{"keys":5}"#, "[]", "x", #"{"keys":["k"]}"#, #"{"keys":[{"k":"b"},{"kid":"a"}]}"#
    ] {
      #expect(failure(license(.clearKey, body))?.status == .protocolError)
    }
  }

  @Test(arguments: KeySystem.allCases)
  func license_denied_isReadTheSameForEveryKeySystem(keySystem: KeySystem) {
    let failed = failure(license(keySystem, #"{"errorCode":4005,"message":"expired"}"#, status: 400))
    #expect(failed?.status == .refused && failed?.serviceCode == 4005 && failed?.message == "expired")
  }

  @Test func license_withAnUnusableSessionToken_isProtocolError() {
    #expect(
      failure(license(.fairPlay, #"{"CkcMessage":"+/v7+/v7+/v7+/v7+/v7+/v7","sessionToken":7}"#))?.status
        == .protocolError)
    #expect(failure(license(.clearKey, #"{"keys":[{"k":"b"}],"sessionToken":{}}"#))?.status == .protocolError)
    #expect(reply(license(.fairPlay, #"{"CkcMessage":"+/v7+/v7+/v7+/v7+/v7+/v7","sessionToken":null}"#)) != nil)
  }

  // MARK: Certificates

  private func certificate(_ body: [UInt8], status: Int32 = 200) -> CertificateDecoding {
    ReplyDecoder.certificate(HTTPResponse(status: status, body: Secret(body)), hiding: nothing)
  }
  private func failure(_ decoding: CertificateDecoding) -> WireFailure? {
    if case .failure(let failure) = decoding { return failure } else { return nil }
  }
  private func octets(_ decoding: CertificateDecoding) -> [UInt8]? {
    if case .success(let found) = decoding { return found.withBytes { Array($0) } } else { return nil }
  }

  @Test func certificate_ofAnyForm_isTaken() {
    let long = [0x30, 0x82, 0x01, 0x00] + [UInt8](repeating: 7, count: 256)
    for body in [[0x30, 0x03, 1, 2, 3], long, long + [0], long + long, noise, [0x0A, 0xFF, 0, 0x30] + noise]
      as [[UInt8]]
    {
      #expect(octets(certificate(body)) == body && octets(certificate(body, status: 202)) == body)
    }
    let text = String(decoding: base64(long), as: UTF8.self)
    for wrapped in [
      text, "\u{FEFF}\(text)\n", "{\"certificate\":\"\(text)\"}", "{\"CERT\":\"\(text)\"}",
      "Bag: 1\n-----BEGIN CERTIFICATE-----\n\(text)\n-----END CERTIFICATE-----\n"
    ] { #expect(octets(certificate(bytes(wrapped))) == long) }
    let widevine = String(decoding: base64(Self.signedMessage), as: UTF8.self)
    #expect(octets(certificate(bytes(widevine))) == Self.signedMessage)
  }

  /// DER begins with the byte 0x30, which is the character 0. The text before PEM may also begin with this character,
  /// for example the output of `openssl s_client -showcerts`. PEM may also be a part of DER, in a comment.
  @Test func certificate_asPEMAfterTextThatBeginsWith0_orAsDERWithPEMInside_isTaken() {
    let inner: [UInt8] = [0x30, 0x03, 1, 2, 3]
    let pem = bytes("-----BEGIN CERTIFICATE-----\n\(String(decoding: base64(inner), as: UTF8.self))\n-----END")
    let zeroWhereDERWouldEnd = "0 s:CN = drm, O = Example, OU = D 01\n"
    for text in [" 0 s:CN = drm\n", "0 s:CN = drm\n", zeroWhereDERWouldEnd] {
      #expect(octets(certificate(bytes(text) + pem)) == inner)
    }
    let found =
      [0x30, 0xDB, 0xDB] + pem + bytes("\u{0}RTIFICATE-") + [0xDB, 0xFF, 0xFF, 0xFB, 0xFF, 0xFF] + bytes("2min")
    #expect(octets(certificate(found)) == inner)
    let der = [0x30, UInt8(pem.count)] + pem
    #expect(octets(certificate(der)) == der)
  }

  @Test(
    arguments: foreignBodies + [
      [], [0x20, 0x0A], [0x30, 0x82, 0x01, 0x00, 7], [0x30, 0x05, 1], [0x30, 0x83, 0xFF, 0xFF, 0xFF],
      [0x30, 0x80, 0, 0],
      [0x30, 0x01, 7, 0x30, 0x40] + noise,
      [0x30, 0x82, 0x01], [0x30, 0xFF, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0x30, 0x01, 1, 2, 3]
    ])
  func certificate_thatIsNone_isProtocolError(body: [UInt8]) {
    #expect(failure(certificate(body))?.status == .protocolError && failure(certificate(body))?.httpStatus == 200)
    #expect(failure(certificate(body, status: 503))?.status == .http)
  }

  @Test func certificate_inJSONWithAnErrorCode_isRefused() {
    #expect(failure(certificate(bytes(#"{"errorCode":4000}"#)))?.serviceCode == 4000)
  }

  @Test func randomBodies_neverTrap() {
    var dice = Dice(11)
    let pieces = [
      "{", "}", "[", "]", "\"", ":", ",", "sessionToken", "heartbeat", "CkcMessage", "license", "null", "1e999", "-",
      "\\u0000", "\u{0}", "<html", "<CustomData>", "Zm9v", " "
    ]
    for _ in 0..<20_000 {
      let body = (0..<Int(dice.upTo(14))).map { _ in dice.pick(pieces) }.joined()
      _ = setup(dice.pick([200, 400, 500]), body)
      _ = license(dice.pick(Array(KeySystem.allCases)), body)
    }
  }
}
