import Testing

@testable import UsherCore
@testable import UsherEngine

@Suite struct SEESReplyTests {
  private let id = "00112233-4455-4677-8899-aabbccddeeff"

  private func answer(
    _ body: [UInt8], hiding secrets: HiddenSecrets = HiddenSecrets()
  ) -> Result<String, SEESRequest.Refusal> {
    guard let messageID = UUIDBytes(text: bytes(id)),
      let request = try? SEESRequest(messageID: messageID, kind: .timeBased, contentID: bytes("m"))
    else { return .failure(.notJSON) }
    return withBytes(body) { body in
      do throws(SEESRequest.Refusal) {
        return .success(text(try request.tokenURL(in: body, hiding: ReplySecrets.these(secrets))))
      } catch {
        return .failure(error)
      }
    }
  }
  private func answer(
    _ body: String, hiding secrets: HiddenSecrets = HiddenSecrets()
  ) -> Result<String, SEESRequest.Refusal> {
    answer(bytes(body), hiding: secrets)
  }

  @Test func allowed_givesTheTokenURL() {
    for dress in [id, id.uppercased()] {
      #expect(
        answer(
          #"{"messageID":"\#(dress)","version":1,"isAllowed":true,"epTokenURL":"https://h:80/r?ExpressPlayToken=x"}"#)
          == .success("https://h:80/r?ExpressPlayToken=x"))
    }
    #expect(answer(#"{"messageID":"\#(id)","isAllowed":true,"epTokenURL":"x"}"#) == .success("x"))
  }

  @Test func denied_saysWhy() {
    #expect(
      answer(
        #"{"messageID":"\#(id)","version":1,"isAllowed":false,"epTokenURL":"","#
          + #""error":-7,"errorText":"not\nyours tok"}"#,
        hiding: HiddenSecrets([secret("tok")]))
        == .failure(.denied(code: -7, message: "not yours [redacted]")))
    for allowed in ["null", "1", "\"true\"", "[]"] {
      #expect(
        answer(#"{"messageID":"\#(id)","isAllowed":\#(allowed),"epTokenURL":"x"}"#)
          == .failure(.denied(code: 0, message: "")))
    }
    #expect(answer(#"{"messageID":"\#(id)","epTokenURL":"x"}"#) == .failure(.denied(code: 0, message: "")))
  }

  @Test(arguments: [
    "\"11112233-4455-4677-8899-aabbccddeeff\"", "\"\"", "5", "\"00112233-4455-4677-8899-aabbccddeeff \""
  ])
  func answer_toAnotherMessage_isNone(messageID: String) {
    #expect(
      answer(#"{"messageID":\#(messageID),"version":1,"isAllowed":true,"epTokenURL":"x"}"#) == .failure(.otherMessage))
  }

  @Test(arguments: [#""messageID":null,"#, ""])
  func reply_withoutAMessageID_isRead(messageID: String) {
    #expect(answer("{\(messageID)\"isAllowed\":true,\"epTokenURL\":\"x\"}") == .success("x"))
    #expect(answer("{\(messageID)\"isAllowed\":false}") == .failure(.denied(code: 0, message: "")))
  }

  @Test(arguments: [
    "https://h/r?ExpressPlayToken=x", "https://h/r?ExpressPlayToken=x\r\n",
    "# rights\r\n\r\n https://h/r?ExpressPlayToken=x \n",
    "https://h/r?ExpressPlayToken=x\nhttps://other/"
  ])
  func uriList_theFirstURICounts(body: String) {
    #expect(answer(body) == .success("https://h/r?ExpressPlayToken=x"))
  }

  @Test(arguments: [
    "", "# https://h/", "ftp://h/", "https://", "https://a b/", "<p>https://h/</p>", "token=1", "\n\n",
    "https://h/\u{e9}"
  ])
  func textWithoutAURI_isRefused(body: String) {
    #expect(answer(body) == .failure(.notJSON))
  }

  @Test(arguments: ["2", "99999999999999999999999", "\"1\"", "null", "[]"])
  func answer_ofALaterVersion_isNone(version: String) {
    let expected: Result<String, SEESRequest.Refusal> = version == "null" ? .success("x") : .failure(.otherVersion)
    #expect(answer(#"{"messageID":"\#(id)","version":\#(version),"isAllowed":true,"epTokenURL":"x"}"#) == expected)
  }

  @Test(arguments: ["\"\"", "null", "5", "\"a b\"", "\"a\\r\\nb\"", "\"\\u0000\"", "\"ä\""])
  func tokenURL_thatIsNone_isRefused(url: String) {
    #expect(answer(#"{"messageID":"\#(id)","isAllowed":true,"epTokenURL":\#(url)}"#) == .failure(.noTokenURL))
  }

  @Test func tokenURL_tooLong_isRefused() {
    #expect(
      answer(#"{"messageID":"\#(id)","isAllowed":true,"epTokenURL":"\#(String(repeating: "a", count: 8193))"}"#)
        == .failure(.noTokenURL))
  }

  @Test(arguments: ["", "<html>", "[]", "5", "{", "{} x", "null"])
  func body_thatIsNoObject_isRefused(body: String) {
    #expect(answer(body) == .failure(.notJSON))
  }

  @Test func hostileBody_neverTraps() {
    var dice = Dice(81)
    let pieces = [
      "{", "}", "\"messageID\"", ":", "\"\(id)\"", ",", "\"isAllowed\"", "true", "\"epTokenURL\"", "\"x\"", "[", "]",
      "\u{0}", "1e999", "-"
    ]
    for _ in 0..<10_000 {
      let body =
        bytes((0..<Int(dice.upTo(14))).map { _ in dice.pick(pieces) }.joined())
        + (dice.one(in: 4) ? [UInt8(truncatingIfNeeded: dice.next())] : [])
      _ = answer(body)
      _ = withBytes(body) { ExpressPlayError.read($0, hiding: ReplySecrets.these(HiddenSecrets())) }
    }
    #expect(answer([UInt8](repeating: 0x5B, count: 1_000_000)) == .failure(.notJSON))
  }
}

@Suite struct ExpressPlayReplyTests {
  private func read(_ body: String) -> ExpressPlayError {
    withBytes(bytes(body)) { ExpressPlayError.read($0, hiding: ReplySecrets.these(HiddenSecrets([secret("tok")]))) }
  }

  @Test(
    arguments: [
      (#"{"errorCode":-2002,"errorMessage":"expired"}"#, -2002, "expired"),
      (#"{"code":-2018,"message":"bad tok"}"#, -2018, "bad [redacted]"),
      (#"{"error":-6004}"#, -6004, "the CKC could not be made"),
      (#"{"errorCode":"-2019"}"#, -2019, "the account has no tokens left"),
      (#"{"ErrorCode":-4010,"Message":"a\nb"}"#, -4010, "a b"),
      (#"{"error":"denied"}"#, 0, "denied"),
      (#"{"error":{"code":-2003,"message":"address"}}"#, -2003, "address"),
      (#"[{"code":-2003,"message":"address"}]"#, -2003, "address"),
      (#"{"error":"-2002"}"#, -2002, "the token has expired"),
      (#"{"code":-2002.0}"#, -2002, "the token has expired"), (#"{"code":-2002.5,"message":"m"}"#, 0, "m"),
      (#"{"code":1e300,"message":"m"}"#, 0, "m"),
      (#"{"code":null,"error":-2002}"#, -2002, "the token has expired"),
      (#"{"message":""}"#, 0, ""), ("{}", 0, ""), ("[]", 0, ""), ("5", 0, ""), ("", 0, ""), ("null", 0, ""),
      ("<html><body>-2002</body></html>", -2002, "the token has expired"),
      ("Error -6004: no CKC", -6004, "the CKC could not be made"), ("-4010", -4010, "the token is invalid"),
      ("<p>-1999, then -2003</p>", -2003, "the token is not valid for this address"),
      ("1999-2002", 0, ""), ("a-2002", 0, ""), ("-2002a", 0, ""), ("-20021", 0, ""), ("--2002", 0, ""),
      ("-2002-01", 0, ""), ("-200", 0, ""), ("-", 0, ""), ("-9999", 0, ""),
      (#"{"error":[]}"#, 0, "")
    ] as [(String, Int64, String)])
  func body_inWhateverLayout_isRead(body: String, code: Int64, message: String) {
    #expect(read(body) == ExpressPlayError(code: code, message: message))
  }
}
