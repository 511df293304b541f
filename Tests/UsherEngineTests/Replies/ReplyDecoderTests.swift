import Testing

@testable import UsherCore
@testable import UsherEngine

private var nothing: ReplySecrets { .these(HiddenSecrets()) }

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

  @Test(arguments: ["", "  \r\n", "OK", "{}", #"{"sessionToken":"late"}"#, #"{"sessionToken":7}"#, "[]"])
  func teardown_anyBodyWithSuccess_isFine(body: String) {
    for status in [200, 204] as [Int32] {
      #expect(fields(ReplyDecoder.ssm(response(status, body), .teardown, hiding: nothing)) != nil)
    }
  }

  @Test(arguments: ["<html>", "\n<!DOCTYPE html>", "  <HTML lang=de>"])
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

  @Test func heartbeat_emptyBody_keepsTheToken() {
    let read = fields(ReplyDecoder.ssm(response(200, ""), .heartbeat, hiding: nothing))
    #expect(read != nil && read?.token == nil)
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

  @Test(arguments: [301, 302, 307, 308] as [Int32])
  func redirect_isItsOwnFailure(status: Int32) {
    #expect(failure(setup(status, ""))?.status == .redirect)
    #expect(failure(setup(status, ""))?.isTransient == true)
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
    _ keySystem: KeySystem, _ body: String, status: Int32 = 200, raw: Bool = false
  ) -> LicenseDecoding {
    ReplyDecoder.license(
      response(status, body), keySystem: keySystem, isRaw: raw, hiding: nothing)
  }
  private func reply(_ decoding: LicenseDecoding) -> LicenseReply? {
    if case .success(let reply) = decoding { return reply } else { return nil }
  }
  private func failure(_ decoding: LicenseDecoding) -> WireFailure? {
    if case .failure(let failure) = decoding { return failure } else { return nil }
  }

  @Test(arguments: [("Zm9vYg==", "foob"), ("Zm9vYg", "foob"), ("-_-_", "\u{FB}")])
  func fairPlay_ckcInAnyBase64_isDecoded(ckc: String, expected: String) {
    let read = reply(license(.fairPlay, "{\"CkcMessage\":\"\(ckc)\",\"sessionToken\":\"t\"}"))
    #expect(text(read?.fields.token) == "t")
    if expected == "foob" { #expect(text(read?.data) == "foob") } else { #expect(read?.data.count == 3) }
  }

  @Test func fairPlay_octets_areTheCKC() {
    #expect(text(reply(license(.fairPlay, "\u{1}binary ckc"))?.data) == "\u{1}binary ckc")
  }

  @Test(arguments: [
    "{}", #"{"CkcMessage":""}"#, #"{"CkcMessage":"!!!"}"#, #"{"CkcMessage":5}"#, "{broken", "", "   ",
    "<!DOCTYPE html><html>", "\n<HTML>"
  ])
  func fairPlay_withoutCKC_isProtocolError(body: String) {
    #expect(failure(license(.fairPlay, body))?.status == .protocolError)
  }

  @Test func widevine_arrayOrString_isDecoded() {
    let first = reply(
      license(.widevine, #"{"status":"OK","errorCode":0,"license":["Zm9v","YmFy"],"sessionDrmEnforced":false}"#))
    #expect(text(first?.data) == "foo" && first?.fields.enforced == false)
    let renewal = reply(license(.widevine, #"{"sessionToken":"t2","license":"YmFy"}"#))
    #expect(text(renewal?.data) == "bar" && text(renewal?.fields.token) == "t2" && renewal?.fields.enforced == nil)
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
    let read = reply(license(.widevine, "{\"license\":\"not read\"}", raw: true))
    #expect(text(read?.data) == "{\"license\":\"not read\"}" && read?.fields.token == nil)
  }

  @Test func playReady_customData_bringsTheToken() {
    let xml =
      "<?xml version='1.0'?><soap><pr:CustomData>{&quot;sessionToken&quot;:&quot;t9&quot;}</pr:CustomData></soap>"
    let read = reply(license(.playReady, xml))
    #expect(text(read?.data) == xml && text(read?.fields.token) == "t9")
  }

  @Test(arguments: [
    "<soap/>", "<soap><CustomData>not json</CustomData></soap>", "<soap><CustomData>[]</CustomData></soap>"
  ])
  func playReady_withoutToken_passesUnchanged(xml: String) {
    let read = reply(license(.playReady, xml))
    #expect(text(read?.data) == xml && read?.fields.token == nil)
  }

  @Test(arguments: ["{}", "text", "", "<html>proxy</html>"])
  func playReady_notXML_isProtocolError(body: String) {
    #expect(failure(license(.playReady, body))?.status == .protocolError)
  }

  @Test func clearKey_keys_passUnchanged() {
    let json = #"{"keys":[{"kty":"oct","kid":"a","k":"b"}],"type":"temporary","sessionToken":"t3"}"#
    let read = reply(license(.clearKey, json))
    #expect(text(read?.data) == json && text(read?.fields.token) == "t3")
    for body in [#"{"keys":[]}"#, "{}", #"{"keys":5}"#, "[]", "x"] {
      #expect(failure(license(.clearKey, body))?.status == .protocolError)
    }
  }

  @Test(arguments: KeySystem.allCases)
  func license_denied_isReadTheSameForEveryKeySystem(keySystem: KeySystem) {
    let failed = failure(license(keySystem, #"{"errorCode":4005,"message":"expired"}"#, status: 400))
    #expect(failed?.status == .refused && failed?.serviceCode == 4005 && failed?.message == "expired")
  }

  @Test func license_withAnUnusableSessionToken_isProtocolError() {
    #expect(failure(license(.fairPlay, #"{"CkcMessage":"Zm9v","sessionToken":7}"#))?.status == .protocolError)
    #expect(failure(license(.clearKey, #"{"keys":[{}],"sessionToken":{}}"#))?.status == .protocolError)
    #expect(reply(license(.fairPlay, #"{"CkcMessage":"Zm9v","sessionToken":null}"#)) != nil)
  }

  // MARK: Certificates

  private func certificate(_ bytes: [UInt8], status: Int32 = 200) -> WireFailure? {
    ReplyDecoder.notACertificate(
      HTTPResponse(status: status, body: Secret(bytes), retryAfter: nil), hiding: nothing)
  }

  @Test func certificate_ofAnyForm_isTaken() {
    let long = [0x30, 0x82, 0x01, 0x00] + [UInt8](repeating: 7, count: 256)
    for body in [
      [0x30, 0x03, 1, 2, 3], long, long + [0], Array("{\"certificate\":\"Zm9v\"}".utf8),
      Array("-----BEGIN CERTIFICATE-----".utf8), [0x0A, 1]
    ] as [[UInt8]] {
      #expect(certificate(body) == nil && certificate(body, status: 202) == nil)
    }
  }

  @Test func certificate_thatIsNone_isProtocolError() {
    let page = Array("<html>sign in</html>".utf8)
    for body in [[], [0x20, 0x0A], page, [0x30, 0x82, 0x01, 0x00, 7], [0x30, 0x05, 1], [0x30, 0x83, 0xFF, 0xFF, 0xFF]]
      as [[UInt8]]
    {
      #expect(certificate(body)?.status == .protocolError && certificate(body)?.httpStatus == 200)
    }
    #expect(certificate(page, status: 503)?.status == .http)
    for short in [[0x30], [0x30, 0x80], [0x30, 0x82, 0x01], [0x30, 0xFF, 1, 2, 3, 4, 5, 6, 7, 8, 9]] as [[UInt8]] {
      #expect(certificate(short) == nil)
    }
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
      _ = license(dice.pick(Array(KeySystem.allCases)), body, raw: dice.one(in: 4))
    }
  }
}
