import Testing

@testable import UsherCore

private func plain(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

@Suite struct HLSKeyTests {
  private func all(_ playlist: [UInt8]) -> [HLSKey]? { withBytes(playlist) { try? HLSKey.all(in: $0) } }
  private func key(_ attributes: String) -> HLSKey? { all(bytes("#EXT-X-KEY:" + attributes))?.first }
  private func base64(_ plain: [UInt8]) -> String {
    var text = [UInt8](repeating: 0, count: Base64.encodedCount(plain.count, padded: true))
    withBytes(plain) { from in text.withUnsafeMutableBufferPointer { Base64.encode(from, into: $0) } }
    return String(decoding: text, as: UTF8.self)
  }

  @Test func fairPlayKey_isRead() {
    let found = key(
      #"METHOD=SAMPLE-AES,URI="skd://movie-1?x=a,b",KEYFORMAT="com.apple.streamingkeydelivery","#
        + #"KEYFORMATVERSIONS="1/2",IV=0x0F,KEYID=0x00112233445566778899AABBCCDDEEFF"#
    )
    #expect(found?.method == .sampleAES && found?.keySystem == .fairPlay && found?.isSession == false)
    #expect(
      plain(found?.assetURL()) == "skd://movie-1?x=a,b" && plain(found?.keyFormatVersions) == "1/2"
        && found?.initData == nil && found?.pssh == [])
    #expect(found?.iv == [UInt8](repeating: 0, count: 15) + [0x0F])
    #expect(
      (found?.keyID?.text).flatMap { plain($0) } == "00112233-4455-6677-8899-aabbccddeeff" && found?.keyIDs.count == 1)
    #expect(found?.assetURL(scheme: bytes("fps")) == nil)
  }

  @Test func widevineKey_carriesItsBox() {
    let id = bytes(hex: "0fedcba9876543210123456789abcdef")
    let pssh = KeySystem.widevine.uuid.map { PSSH.make($0, data: [0x12, 16] + id + [0x22, 1, 0x61]) } ?? []
    for kind in ["data:text/plain;base64,", "DATA:;BASE64,", "data:text/plain;charset=UTF-8;base64,"] {
      let found = key(
        #"METHOD=SAMPLE-AES-CTR,KEYFORMAT="urn:uuid:EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED","#
          + #"URI="\#(kind)\#(base64(pssh))""#
      )
      #expect(
        found?.method == .sampleAESCTR && found?.keySystem == .widevine && found?.initData == pssh
          && found?.assetURL() == nil)
      #expect(
        found?.pssh.first?.contentIdentifier == bytes("a") && found?.keyIDs.map { $0.bytes } == [id]
          && found?.playReady == nil)
    }
  }

  @Test func playReadyKey_carriesItsHeader() {
    let xml = "<WRMHEADER><KID>qcvtD2WHIUMBI0VniavN7w==</KID></WRMHEADER>"
    let header = xml.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
    let size = 10 + header.count
    let object: [UInt8] =
      [UInt8(size & 255), UInt8(size >> 8), 0, 0, 1, 0, 1, 0, UInt8(header.count & 255), UInt8(header.count >> 8)]
      + header
    let boxed = KeySystem.playReady.uuid.map { PSSH.make($0, data: object) } ?? []
    for carried in [object, boxed] {
      let found = key(
        #"METHOD=SAMPLE-AES,KEYFORMAT="com.microsoft.playready","#
          + #"URI="data:text/plain;charset=UTF-16;base64,\#(base64(carried))""#
      )
      #expect(
        found?.playReady?.keyIDs.map { $0.bytes } == [bytes(hex: "0fedcba9876543210123456789abcdef")]
          && found?.keyIDs.count == 1)
    }
  }

  @Test(arguments: [
    ("METHOD=NONE", HLSKey.Method.none), ("METHOD=AES-128,URI=\"k\"", .aes128), ("METHOD=SAMPLE-AES", .sampleAES),
    ("METHOD=SAMPLE-AES-CENC", .sampleAESCTR),
    ("METHOD=ISO-23001-7", .sampleAESCTR),
    ("METHOD=sample-aes", .other), ("URI=\"x\"", .other), ("", .other), ("METHOD=", .other),
    ("METHOD=AES-128,METHOD=NONE", .aes128),
    (" METHOD = AES-128 , X=1", .aes128), ("METHOD=\"AES-128\"", .aes128),
    ("METHOD,METHOD=NONE", .none), (",,METHOD=NONE,,", .none)
  ])
  func method_isToldApart(attributes: String, expected: HLSKey.Method) {
    #expect(key(attributes)?.method == expected)
  }

  @Test(arguments: [
    (#"URI="a",KEYFORMAT="identity""#, KeySystem?.none), (#"URI="a""#, nil),
    (#"KEYFORMAT="org.w3.clearkey""#, .clearKey),
    (#"KEYFORMAT="COM.Apple.StreamingKeyDelivery""#, .fairPlay),
    (#"KEYFORMAT="urn:uuid:9a04f079-9840-4286-ab92-e65be0885f95""#, .playReady),
    (#"KEYFORMAT="1077efec-c0b2-4d02-ace3-3c1e52e2fb4b""#, .clearKey),
    (#"KEYFORMAT="com.widevine.alpha""#, .widevine),
    (#"KEYFORMAT="urn:uuid:00112233-4455-6677-8899-aabbccddeeff""#, nil), (#"KEYFORMAT="""#, nil)
  ])
  func keyFormat_namesTheKeySystem(attributes: String, expected: KeySystem?) {
    #expect(key(attributes)?.keySystem == expected)
  }

  @Test(arguments: ["0x", "0F", "x0F", "0xG", "0x000102030405060708090A0B0C0D0E0F10", "\"0x\"", "", "0x0F "])
  func iv_thatIsNone_isLeftOut(iv: String) {
    #expect(key("METHOD=AES-128,IV=\(iv)")?.iv == (iv == "0x0F " ? [UInt8](repeating: 0, count: 15) + [0x0F] : nil))
  }

  @Test func iv_inEveryLength_isANumber() {
    #expect(key("IV=0X000102030405060708090a0b0c0d0e0f")?.iv == (0..<16).map { UInt8($0) })
    #expect(key("IV=0x123")?.iv == [UInt8](repeating: 0, count: 14) + [0x01, 0x23])
  }

  @Test func playlist_givesAllOfThem() {
    let playlist =
      "\u{FEFF}#EXTM3U\r\n#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI=\"skd://s\"\r\n"
      + "#EXT-X-KEYS:METHOD=NONE\n #EXT-X-KEY:METHOD=NONE\n"
      + "#ext-x-key:METHOD=NONE\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n"
      + "a.ts\n#EXT-X-KEY:METHOD=NONE\n\n#EXT-X-KEY:"
    let found = all(bytes(playlist)) ?? []
    #expect(
      found.map { $0.method } == [.sampleAES, .aes128, .none, .other]
        && found.map { $0.isSession } == [true, false, false, false])
    #expect(
      plain(found.first?.uri) == "skd://s" && plain(found.last?.uri) == "" && plain(found.last?.keyFormat) == "identity"
    )
    #expect(all(bytes("\u{FEFF}#EXT-X-KEY:METHOD=NONE"))?.count == 1 && all([]) == [])
  }

  @Test(arguments: [
    (#"URI="a"#, "a"), (#"URI="a,METHOD=NONE"#, "a,METHOD=NONE"), (#"URI="a"b,X="c""#, "a"), ("URI=a b,X=c", "a b"),
    (#"X="URI=",URI="a""#, "a"), (#"URI="""#, ""), ("URI", ""), ("URI=", "")
  ])
  func quotes_missingOrOdd_areBorne(attributes: String, expected: String) {
    #expect(plain(key(attributes)?.uri) == expected)
  }

  @Test(arguments: ["data:", "data:text/plain", "dat:,x", "", "data:;base64,!"])
  func dataURI_thatIsNone_hasNothing(uri: String) {
    #expect(withBytes(uri) { DataURI.decode($0) } == nil)
  }

  @Test func dataURI_ofText_isDecoded() {
    #expect(
      plain(withBytes("data:,a%20b") { DataURI.decode($0) }) == "a b"
        && plain(withBytes("data:;base64,%59WJj") { DataURI.decode($0) }) == "abc"
        && plain(withBytes("data:,") { DataURI.decode($0) }) == "")
  }

  @Test func playlist_tooLong_isRefused() {
    let line = bytes("#EXT-X-KEY:METHOD=NONE\n")
    let most = (0..<HLSKey.mostBytes / line.count).flatMap { _ in line }
    #expect(all(most)?.count == HLSKey.mostBytes / line.count)
    #expect(
      all([UInt8](repeating: 0x0A, count: HLSKey.mostBytes))?.count == 0
        && all([UInt8](repeating: 0x0A, count: HLSKey.mostBytes + 1)) == nil)
    #expect(all(bytes("#EXT-X-KEY:") + [UInt8](repeating: 0x2C, count: 1_000_000))?.count == 1)
    #expect(all(bytes("#EXT-X-KEY:URI=\"") + [UInt8](repeating: 0x61, count: 1_000_000))?.first?.uri.count == 1_000_000)
  }
}

@Suite struct HLSRewriteTests {
  private func rewrite(_ playlist: String, _ replacement: (HLSKey) -> String?) -> Result<String, HLSKey.Failure> {
    withBytes(playlist) { playlist in
      do throws(HLSKey.Failure) {
        return .success(
          String(
            decoding: try HLSRewrite.rewrite(playlist) { key in replacement(key).map { bytes($0) } }, as: UTF8.self))
      } catch { return .failure(error) }
    }
  }

  @Test func assets_getOtherURIs_theRestStays() {
    let before =
      "#EXTM3U\r\n#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI=\"skd://a\",KEYFORMAT=\"x\"\r\n"
      + "#EXTINF:4,\r\na.ts\r\n#EXT-X-KEY:METHOD=SAMPLE-AES, URI = \"SKD://b?c,d\" ,IV=0x1\nb.ts\n"
      + "#EXT-X-KEY:METHOD=AES-128,URI=\"https://k\"\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI=skd://c\n"
      + "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://keep\"\n\u{0}ä no newline"
    let after = before.replacing("skd://a\"", with: "http://127.0.0.1/0\"").replacing(
      "SKD://b?c,d", with: "http://127.0.0.1/1"
    )
    .replacing("URI=skd://c", with: "URI=\"http://127.0.0.1/2\"")
    var asked: [String] = []
    let made = rewrite(before) { key in
      asked.append(String(decoding: key.uri, as: UTF8.self))
      return asked.last == "skd://keep" ? nil : "http://127.0.0.1/\(asked.count - 1)"
    }
    #expect(made == .success(after))
    #expect(asked == ["skd://a", "SKD://b?c,d", "skd://c", "skd://keep"])
  }

  @Test func secondURI_ofALine_stays() {
    #expect(
      rewrite("#EXT-X-KEY:URI=\"skd://a\",URI=\"skd://b\"") { _ in "x" }
        == .success("#EXT-X-KEY:URI=\"x\",URI=\"skd://b\""))
  }

  @Test(arguments: ["", "a\"b", "a\nb", "a\rb", "a b", "a\u{0}"])
  func replacement_thatWouldBreakTheLine_isRefused(replacement: String) {
    #expect(rewrite("#EXT-X-KEY:URI=\"skd://a\"") { _ in replacement } == .failure(.badReplacement))
  }

  @Test func playlist_tooLong_isRefused() {
    #expect(rewrite(String(repeating: "\n", count: HLSKey.mostBytes + 1)) { _ in nil } == .failure(.tooLong))
  }

  @Test func hostilePlaylist_comesBackAsItWas() {
    var dice = Dice(101)
    let pieces = [
      "#EXT-X-KEY:", "#EXT-X-SESSION-KEY:", "URI=", "\"", "skd://a", ",", "METHOD=SAMPLE-AES", "\n", "\r\n", "=", " ",
      "IV=0x", "KEYID=",
      "KEYFORMAT=", "\u{0}", "\u{FEFF}", "data:;base64,", "AAAA"
    ]
    for _ in 0..<8000 {
      let playlist = hostile(&dice, pieces)
      let same = withBytes(playlist) { try? HLSRewrite.rewrite($0) { _ in nil } }
      #expect(same == playlist)
      let own = withBytes(playlist) { playlist in try? HLSRewrite.rewrite(playlist) { key in key.uri } }
      let keys = withBytes(playlist) { try? HLSKey.all(in: $0) } ?? []
      for key in keys { #expect(key.uri.count <= playlist.count && key.pssh.isEmpty && key.keyIDs.count <= 1) }
      if let own, let again = withBytes(own, { try? HLSKey.all(in: $0) }) {
        #expect(again == keys, "only quotes may be added")
      }
    }
  }
}
