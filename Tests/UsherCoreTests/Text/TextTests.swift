import Testing

@testable import UsherCore

@Suite struct URLTextTests {
  private func url(_ text: String) -> URLText? { URLText(Array(text.utf8)) }
  private func text(_ url: URLText?) -> String { url.map { String(decoding: $0.bytes, as: UTF8.self) } ?? "-" }

  @Test(arguments: ["", "http://a b/", "http://a/#x", "http://a/\n", "http://a/\u{7F}", "http://a/\u{0}", " http://a"])
  func url_withWhatDoesNotBelong_isRefused(given: String) {
    #expect(url(given) == nil)
  }

  @Test func version_autoRule_isAddedOnlyWhereItIsMissing() {
    let cases = [
      ("https://h/T/ssm", "https://h/T/ssm/v1"), ("https://h/T/ssm/", "https://h/T/ssm/v1"),
      ("https://h/T/ssm///", "https://h/T/ssm/v1"),
      ("https://h/T/ssm/v1", "https://h/T/ssm/v1"), ("https://h/T/ssm/v1/", "https://h/T/ssm/v1"),
      ("https://h/T/ssm/v2", "https://h/T/ssm/v2"),
      ("https://h/T/ssm/v12", "https://h/T/ssm/v12"), ("https://h/T/v", "https://h/T/v/v1"),
      ("https://h/T/v1x", "https://h/T/v1x/v1"),
      ("https://h/T/ssm?key=1", "https://h/T/ssm/v1?key=1"),
      ("https://h/T/ssm/v1/?key=/x/", "https://h/T/ssm/v1?key=/x/")
    ]
    for (given, expected) in cases { #expect(text(url(given)?.versioned(Array("v1".utf8), .auto)) == expected) }
  }

  @Test func version_otherRules_areFollowedLiterally() {
    #expect(text(url("https://h/ssm/v1")?.versioned(Array("v3".utf8), .always)) == "https://h/ssm/v1/v3")
    #expect(text(url("https://h/ssm/")?.versioned(Array("v1".utf8), .never)) == "https://h/ssm")
  }

  @Test func joining_keepsTheQueryBehindThePath() {
    #expect(text(url("https://h/ssm/v1/?a=b")?.joining("sessions/setup")) == "https://h/ssm/v1/sessions/setup?a=b")
  }

  @Test func adding_mergesIntoTheQuery() {
    #expect(text(url("https://h/l")?.adding("renew=true")) == "https://h/l?renew=true")
    #expect(text(url("https://h/l?")?.adding("renew=true")) == "https://h/l?renew=true")
    #expect(text(url("https://h/l?a=b?c")?.adding("renew=true")) == "https://h/l?a=b?c&renew=true")
  }
}

@Suite struct KeySystemTests {
  @Test(arguments: KeySystem.allCases)
  func identifier_inAnyDress_isRecognised(keySystem: KeySystem) {
    let plain = string(keySystem.identifier)
    for dress in [plain, plain.uppercased(), "urn:uuid:" + plain, "URN:UUID:" + plain.uppercased(), "Urn:Uuid:" + plain]
    {
      #expect(withBytes(dress) { KeySystem($0) } == keySystem)
    }
  }

  @Test(arguments: [
    "", "urn:uuid:", "urn:uuid", "edef8ba9-79d6-4ace-a3c8-27dcd51d21e", "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed ",
    "com.widevine.alpha", "urn:uuid:urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"
  ])
  func identifier_unknown_isNone(given: String) {
    #expect(withBytes(given) { KeySystem($0) } == nil)
  }
}

@Suite struct PlayReadyReplyTests {
  private func found(_ xml: String) -> String? { withBytes(xml) { PlayReadyReply($0).customData }.map { text($0) } }

  @Test(arguments: [
    ("<a><CustomData>{\"sessionToken\":\"t\"}</CustomData></a>", "{\"sessionToken\":\"t\"}"),
    ("<s:E xmlns:s='x'><pr:CustomData a='b'>x</pr:CustomData></s:E>", "x"),
    ("<CustomData\n a=\"1\">x</CustomData>", "x"),
    ("<CustomData>{&quot;a&quot;:&apos;&amp;&lt;&gt;&#34;&#39;}</CustomData>", "{\"a\":'&<>\"'}"),
    ("<CustomData>&amp;quot;</CustomData>", "&quot;"),
    ("<CustomData>&nbsp; & &</CustomData>", "&nbsp; & &"),
    ("<CustomData><![CDATA[{\"a\":\"<&amp;\"}]]></CustomData>", "{\"a\":\"<&amp;\"}"),
    ("<CustomData></CustomData>", ""),
    ("<MyCustomData>no</MyCustomData><CustomDataX>no</CustomDataX><CustomData>yes</CustomData>", "yes"),
    ("<CustomData>first</CustomData><CustomData>second</CustomData>", "first"),
    ("<CustomData>{&#x22;a&#x22;:&#34;b&#X22;}</CustomData>", "{\"a\":\"b\"}"),
    ("<CustomData>{<!-- a note -->\"a\":<![CDATA[\"&\"]]>}</CustomData>", "{\"a\":\"&\"}"),
    ("<!-- <CustomData>no</CustomData> --><CustomData>yes</CustomData>", "yes")
  ])
  func element_isFoundAndResolved(xml: String, expected: String) {
    #expect(found(xml) == expected)
  }

  @Test(arguments: [
    "", "<", "no xml", "<a/>", "<CustomData", "<CustomData>", "<CustomData/>", "<CustomData>x",
    "</CustomData>", "<CustomData>x<"
  ])
  func element_missingOrBroken_isNone(xml: String) {
    #expect(found(xml) == nil)
  }

  @Test func hostileText_neverTraps() {
    var dice = Dice(5)
    let pieces = [
      "<", ">", "/", "CustomData", "<CustomData>", "</", "<![CDATA[", "]]>", "&", "&amp;", "&#", ":", "\"", "a",
      "\u{0}", "ä"
    ]
    for _ in 0..<20_000 {
      let xml = (0..<Int(dice.upTo(12))).map { _ in dice.pick(pieces) }.joined()
      if let result = withBytes(xml, { PlayReadyReply($0).customData }) { #expect(result.count <= xml.utf8.count) }
    }
  }

  private func kind(_ xml: String) -> PlayReadyReply.Kind { withBytes(xml) { PlayReadyReply($0).kind } }

  @Test(arguments: [
    "<soap:Envelope><soap:Body/></soap:Envelope>", "<?xml version='1.0'?>\n<!-- a --><s:Envelope/>",
    "<AcquireLicenseResponse/>", "<r><LicenseResponse/></r>", "<a><b><License>x</License></b></a>"
  ])
  func licence_isRecognised(xml: String) {
    #expect(kind(xml) == .license)
  }

  @Test(arguments: [
    "<html><body>Envelope</body></html>", "<error><message>no licence</message></error>", "<r><Envelope/></r>", "",
    "{}",
    "<!-- <Envelope/> -->", "<s:Envelope><s:Body><License>x</License>", "<s:Envelope"
  ])
  func otherMarkup_isNoLicence(xml: String) {
    #expect(kind(xml) == .other)
  }

  @Test(arguments: [
    "<s:Envelope><s:Body><s:Fault><faultcode>s:Server</faultcode><faultstring>Too many &amp; late</faultstring>"
      + "<detail><Exception><StatusCode>0x8004c600</StatusCode></Exception></detail></s:Fault></s:Body></s:Envelope>",
    "<e:Envelope><e:Body><e:Fault><e:Code><e:Value>e:Receiver</e:Value></e:Code><e:Reason>"
      + "<e:Text xml:lang='en'>Too many &amp; late</e:Text></e:Reason><e:Detail><StatusCode>0x8004c600</StatusCode>"
      + "</e:Detail></e:Fault></e:Body></e:Envelope>"
  ])
  func fault_givesItsCodeReasonAndStatusCode(xml: String) {
    let read = withBytes(xml) { PlayReadyReply($0) }
    let code = xml.hasPrefix("<s:") ? "s:Server" : "e:Receiver"
    #expect(read.kind == .fault && text(read.faultWords) == "\(code) Too many & late 0x8004c600")
  }
}

@Suite struct ServerMessageTests {
  private func safe(_ text: String) -> String { withBytes(text) { HiddenSecrets().cleaned($0) } }

  @Test func message_plain_staysAsItIs() {
    #expect(
      safe("Maximum number of active sessions exceeded (3/3)") == "Maximum number of active sessions exceeded (3/3)")
    #expect(safe("Größe überschritten") == "Größe überschritten")
  }

  @Test(arguments: [
    "\u{85}", "\u{9B}", "\u{202E}", "\u{2066}", "\u{2028}", "\u{200B}", "\u{FEFF}", "\u{E0041}", "\u{34F}",
    "\u{600}", "\u{6DD}", "\u{70F}", "\u{890}", "\u{8E2}", "\u{1160}", "\u{17B4}", "\u{180B}", "\u{180F}",
    "\u{2065}", "\u{2800}", "\u{3164}", "\u{FE0F}", "\u{FFA0}", "\u{FFF8}", "\u{110BD}", "\u{110CD}", "\u{13430}",
    "\u{1BCA0}", "\u{1D173}", "\u{1D400}", "\u{24D0}", "\u{2071}"
  ])
  func message_withInvisibleCharacters_losesThem(character: String) {
    #expect(safe("a\(character)b") == "a b")
  }

  @Test func message_withControlCharacters_becomesOneLine() {
    #expect(safe("a\r\nb\u{0}c\u{1B}[31m\u{7F}") == "a  b c [31m ")
  }

  @Test func message_withAToken_losesIt() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9." + String(repeating: "abcDEF123-_", count: 9) + ".sig_nature-1"
    #expect(safe("bad token \(jwt)!") == "bad token [redacted]!")
    #expect(safe(String(repeating: "A", count: 41)) == "[redacted]")
    #expect(safe(String(repeating: "A", count: 40)) == String(repeating: "A", count: 40))
  }

  @Test func message_long_isCut() {
    #expect(safe(String(repeating: "word ", count: 1000)).utf8.count <= 560)
  }

  @Test func message_randomBytes_isAlwaysPrintableText() {
    var dice = Dice(6)
    for _ in 0..<3000 {
      let bytes = (0..<Int(dice.upTo(700))).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
      let line = withBytes(bytes) { HiddenSecrets().cleaned($0) }
      #expect(!line.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F })
    }
  }

  @Test func message_thatIsNoUTF8_isAtMost512Bytes() {
    for byte in [0x80, 0xC3, 0xE3, 0xFF] as [UInt8] {
      let line = withBytes([UInt8](repeating: byte, count: 600)) { HiddenSecrets().cleaned($0) }
      #expect(line == String(repeating: "\u{FFFD}", count: 170))
    }
    #expect(safe("a" + String(repeating: "ü ", count: 300)) == "a" + String(repeating: "ü ", count: 170) + "")
    #expect(safe(String(repeating: ". ", count: 255) + "." + String(repeating: "a", count: 41)).utf8.count == 510)
  }
}
