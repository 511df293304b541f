import Testing

@testable import UsherCore

@Suite struct ContentProtectionTests {
  private func all(_ xml: [UInt8]) -> [ContentProtection]? { withBytes(xml) { try? ContentProtection.all(in: $0) } }
  private func all(_ xml: String) -> [ContentProtection] { all(bytes(xml)) ?? [] }
  private func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
  private func base64(_ plain: [UInt8]) -> String {
    var text = [UInt8](repeating: 0, count: Base64.encodedCount(plain.count, padded: true))
    withBytes(plain) { from in text.withUnsafeMutableBufferPointer { Base64.encode(from, into: $0) } }
    return String(decoding: text, as: UTF8.self)
  }
  private func pssh(_ keySystem: KeySystem, _ data: [UInt8] = []) -> [UInt8] {
    keySystem.uuid.map { PSSH.make($0, data: data) } ?? []
  }
  private let kid = UUIDBytes(text: bytes("0fedcba9-8765-4321-0123-456789abcdef"))
  private var header: [UInt8] {
    let xml = "<WRMHEADER><DATA><KID>qcvtD2WHIUMBI0VniavN7w==</KID><LA_URL>https://pr</LA_URL></DATA></WRMHEADER>".utf16
      .flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
    return [
      UInt8(truncatingIfNeeded: xml.count + 10), 0, 0, 0, 1, 0, 1, 0, UInt8(truncatingIfNeeded: xml.count),
      UInt8(truncatingIfNeeded: xml.count >> 8)
    ] + xml
  }

  @Test func manifest_givesEveryElement() {
    let found = all(
      """
      <?xml version="1.0"?>
      <!-- <ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011"/> -->
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" xmlns:cenc="urn:mpeg:cenc:2013" xmlns:mspr="urn:microsoft:playready">\
      <Period>
       <AdaptationSet>
        <ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cbcs" \
      cenc:default_KID="0FEDCBA9-8765-4321-0123-456789ABCDEF"/>
        <ContentProtection schemeIdUri="urn:uuid:EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED">
         <cenc:pssh>
          \(base64(pssh(.widevine, [0x22, 1, 0x61])))
         </cenc:pssh><dashif:Laurl> https://wv/?a=1&amp;b=2 </dashif:Laurl>
        </ContentProtection>
        <ContentProtection schemeIdUri="urn:uuid:9a04f079-9840-4286-ab92-e65be0885f95" value="MSPR 2.0">\
      <mspr:pro>\(base64(header))</mspr:pro><ms:laurl licenseUrl="https://ms"/></ContentProtection>
       </AdaptationSet>
       <AdaptationSet><Representation>\
      <ContentProtection schemeIdUri="urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b">\
      <clearkey:Laurl Lic_type="EME-1.0">https://ck</clearkey:Laurl></ContentProtection>\
      </Representation></AdaptationSet>
      </Period></MPD>
      """)
    #expect(
      found.map { $0.keySystem } == [nil, .widevine, .playReady, .clearKey]
        && found.map { $0.isCommon } == [true, false, false, false])
    guard found.count == 4 else { return }
    #expect(
      found[0].defaultKeyIDs == [kid].compactMap { $0 } && text(found[0].value) == "cbcs" && found[0].systemID == nil
        && text(found[0].schemeID) == "urn:mpeg:dash:mp4protection:2011")
    #expect(
      found[1].pssh.first?.contentIdentifier == bytes("a") && text(found[1].licenseURL) == "https://wv/?a=1&b=2"
        && found[1].playReady == nil)
    #expect(
      found[2].playReady?.keyIDs == [kid].compactMap { $0 } && found[2].keyIDs == [kid].compactMap { $0 }
        && text(found[2].licenseURL) == "https://ms")
    #expect(text(found[2].playReady?.licenseURL) == "https://pr" && text(found[3].licenseURL) == "https://ck")
    #expect(Set(found[0...2].map { $0.group }).count == 1 && found[3].group != found[0].group)
  }

  @Test(arguments: [
    "URN:MPEG:DASH:MP4PROTECTION:2011", "urn:mpeg:dash:mp4protection:2011"
  ])
  func common_inAnyCase_isTold(scheme: String) {
    let found = all(
      "<ContentProtection schemeIdUri='\(scheme)' default_KID=' 0fedcba9876543210123456789abcdef  x\n"
        + "0fedcba9-8765-4321-0123-456789abcdef 00112233-4455-6677-8899-aabbccddeeff'/>"
    ).first
    #expect(found?.isCommon == true && found?.defaultKeyIDs.count == 2 && found?.defaultKeyIDs.first == kid)
  }

  @Test func box_inCDATAOrPieces_isRead() {
    let text = base64(pssh(.widevine))
    let (first, second) = (text.prefix(20), text.dropFirst(20))
    for inner in [
      "<![CDATA[\(text)]]>", "\(first)<!-- -->\(second)", "\(first)\n\t\(second)", "\(first)<![CDATA[\(second)]]>",
      "&#x41;\(text.dropFirst())"
    ] {
      #expect(
        all("<ContentProtection schemeIdUri='x'><pssh>\(inner)</pssh></ContentProtection>").first?.pssh.count == 1)
    }
  }

  @Test func elements_thatAreOdd_areBorne() {
    #expect(all("<ContentProtection/>").count == 1 && all("<ContentProtection/>").first?.keySystem == nil)
    #expect(
      all(
        "<x:ContentProtection schemeIdUri='urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b'>"
          + "<pssh>!</pssh><pro>!</pro><pro>AAAA</pro><laurl/><laurl> </laurl></x:ContentProtection>"
      ).first?.keySystem == .clearKey)
    #expect(
      all("<ContentProtection value='a'><laurl>https://a").first.map { self.text($0.licenseURL) } == "https://a",
      "cut off")
    #expect(
      all("<ContentProtection value='a'><ContentProtection value='b'/><laurl>u</laurl></ContentProtection>").map {
        self.text($0.value)
      } == ["a", "b"])
    #expect(
      all("<ContentProtection><laurl>a</laurl><laurl>b</laurl></ContentProtection>").first.map {
        self.text($0.licenseURL)
      } == "a")
    #expect(all("<pssh>\(base64(pssh(.widevine)))</pssh><laurl>a</laurl>").isEmpty)
    #expect(all("</a></a></a><ContentProtection/>").first?.group == 0)
    #expect(all("").isEmpty && all("no xml").isEmpty && all("<ContentProtectionX/><contentProtectio/>").isEmpty)
  }

  @Test func entities_ofADoctype_areNotExpanded() {
    let xml =
      "<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;&b;\">]>"
      + "<ContentProtection><laurl>&c;</laurl></ContentProtection>"
    #expect(all(xml).first.map { text($0.licenseURL) } == "&c;")
  }

  @Test func manifest_tooLong_isRefused() {
    #expect(
      all([UInt8](repeating: 0x20, count: ContentProtection.mostBytes))?.count == 0
        && all([UInt8](repeating: 0x20, count: ContentProtection.mostBytes + 1)) == nil)
    #expect(all(String(repeating: "<ContentProtection/>", count: 50_000)).count == ContentProtection.mostElements)
    #expect(all(String(repeating: "<a>", count: 340_000)).isEmpty)
    #expect(
      all("<ContentProtection><laurl>" + String(repeating: "a", count: 1_000_000)).first?.licenseURL.count == 1_000_000)
  }

  @Test func hostileManifest_neverTraps() {
    var dice = Dice(121)
    let pieces = [
      "<ContentProtection", "</ContentProtection>", " schemeIdUri='", "urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed",
      "urn:mpeg:dash:mp4protection:2011",
      "'", ">", "/>", "<cenc:pssh>", "</cenc:pssh>", "<mspr:pro>", "<laurl ",
      "licenseUrl=\"", "\"", base64(pssh(.widevine)), base64(header), " cenc:default_KID='",
      "0fedcba9876543210123456789abcdef", "<!--", "-->", "<![CDATA[",
      "]]>", "&amp;", "&"
    ]
    for _ in 0..<8000 {
      let xml = hostile(&dice, pieces)
      for one in all(xml) ?? [] { #expect(one.licenseURL.count <= xml.count && one.keyIDs.count <= xml.count / 16) }
    }
  }
}
