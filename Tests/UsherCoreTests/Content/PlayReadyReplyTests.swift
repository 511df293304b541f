import Testing

@testable import UsherCore

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
