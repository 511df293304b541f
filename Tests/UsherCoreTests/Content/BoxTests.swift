import Testing

@testable import UsherCore

func bytes(hex: String) -> [UInt8] {
  let digits = hex.utf8.compactMap { hexValue($0) }
  return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

func number(_ value: Int, _ count: Int = 4) -> [UInt8] {
  (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
}

func box(_ type: String, _ parts: [UInt8]...) -> [UInt8] {
  let payload = parts.flatMap { $0 }
  return number(8 + payload.count) + bytes(type) + payload
}

private let widevine = bytes(hex: "edef8ba9 79d6 4ace a3c8 27dcd51d21ed")
private let playReady = bytes(hex: "9a04f079 9840 4286 ab92 e65be0885f95")
private let clearKey = bytes(hex: "1077efec c0b2 4d02 ace3 3c1e52e2fb4b")
private let first = bytes(hex: "0fedcba9876543210123456789abcdef")
private let second = bytes(hex: "00112233445566778899aabbccddeeff")
private func id(_ bytes: [UInt8]) -> UUIDBytes? { UUIDBytes(bytes) }

private func pssh(_ system: [UInt8], ids: [[UInt8]] = [], _ data: [UInt8] = []) -> [UInt8] {
  let list = ids.isEmpty ? [] : number(ids.count) + ids.flatMap { $0 }
  return box("pssh", [ids.isEmpty ? 0 : 1, 0, 0, 0], system, list, number(data.count), data)
}

@Suite struct PSSHTests {
  private func all(_ bytes: [UInt8]) -> [PSSH] { withBytes(bytes) { PSSH.all(in: $0) } }

  @Test func box_ofVersion0_isRead() {
    let whole = pssh(clearKey, [1, 2, 3])
    let found = all(whole)
    #expect(
      found.count == 1 && found.first?.keySystem == .clearKey && found.first?.version == 0
        && found.first?.data == [1, 2, 3])
    #expect(found.first?.box == whole && found.first?.keyIDs == [] && found.first?.contentIdentifier == nil)
  }

  @Test func box_ofVersion1_listsItsKeys() {
    let found = all(pssh(clearKey, ids: [first, second]))
    #expect(
      found.first?.version == 1 && found.first?.keyIDs == [id(first), id(second)].compactMap { $0 }
        && found.first?.data == [])
  }

  @Test func boxes_inARow_areAllRead() {
    let moov = box("moov", box("trak", pssh(clearKey)), pssh(clearKey))
    let row = pssh(widevine) + box("free", [0, 0]) + pssh(playReady) + moov + box("moof", pssh(second)) + [0, 0, 0]
    #expect(all(row).map { $0.keySystem } == [.widevine, .playReady, .clearKey, nil])
  }

  @Test func box_withLargeOrOpenSize_isRead() {
    let payload = [UInt8](repeating: 0, count: 4) + clearKey + number(0)
    #expect(all(number(1) + bytes("pssh") + number(16 + payload.count, 8) + payload).count == 1)
    #expect(all(number(0) + bytes("pssh") + payload).count == 1)
  }

  @Test func box_thatLies_isLeftOut() {
    let body = [0, 0, 0, 0] + clearKey
    for broken in [
      [], [0], number(8) + bytes("pssh"), box("pssh", body), box("pssh", body, number(1)),
      box("pssh", body, number(0xFFFF_FFFF)),
      box("pssh", [2, 0, 0, 0] + clearKey, number(0)),
      box("pssh", [1, 0, 0, 0] + clearKey, number(0xFFFF_FFFF), first, number(0)),
      box("pssh", [1, 0, 0, 0] + clearKey, number(2), first, number(0)),
      box("pssh", [0, 0, 0, 0], Array(clearKey.dropLast())),
      number(7) + bytes("pssh") + body + number(0), number(1) + bytes("pssh") + number(15, 8) + body + number(0),
      number(1) + bytes("pssh") + [UInt8](repeating: 0xFF, count: 8) + body + number(0),
      number(0x7FFF_FFFF) + bytes("pssh") + body + number(0), number(1) + bytes("pssh") + [0, 0, 0]
    ] as [[UInt8]] { #expect(all(broken).isEmpty) }
    #expect(all(box("pssh", body) + pssh(clearKey)).count == 1, "what follows a broken one is read")
  }

  @Test func base64_ofManifests_isRead() {
    var text = [UInt8](repeating: 0, count: Base64.encodedCount(pssh(widevine).count, padded: true))
    withBytes(pssh(widevine)) { from in text.withUnsafeMutableBufferPointer { Base64.encode(from, into: $0) } }
    #expect(withBytes(bytes("\n ") + text) { PSSH.all(inBase64: $0) }.first?.keySystem == .widevine)
    #expect(withBytes("no!") { PSSH.all(inBase64: $0) }.isEmpty && withBytes("AAAA") { PSSH.all(inBase64: $0) }.isEmpty)
  }

  @Test func boxes_byTheThousand_areBounded() {
    #expect(all((0..<2000).flatMap { _ in pssh(clearKey) }).count == PSSH.mostBoxes)
    #expect(all((0..<125_000).flatMap { _ in box("free") }).isEmpty)
  }

  @Test func keys_byTheThousand_areBounded() {
    let many = (0..<2000).map { [UInt8](repeating: 0, count: 12) + number($0) }
    #expect(
      all(pssh(clearKey, ids: many)).isEmpty
        && all(pssh(clearKey, ids: Array(many.prefix(1024)))).first?.keyIDs.count == 1024)
    #expect(all(pssh(widevine, many.flatMap { [0x12, 16] + $0 })).first?.keyIDs.count == 1024)
  }

  @Test func widevineData_isRead() {
    let data: [UInt8] =
      [0x08, 0x01, 0x12, 16] + first + [0x12, 16] + second + [0x1A, 4] + bytes("prov") + [0x22, 7] + bytes("movie-1")
      + [0x2A, 2] + bytes("HD")
      + [0x32, 1] + bytes("p")
      + [0x38, 0xFF, 0xFF, 0x03, 0x48, 0xE3, 0xDC, 0x95, 0x9B, 0x06, 0x49] + [UInt8](repeating: 1, count: 8) + [
        0x4D, 1, 1, 1, 1
      ]
    let found = all(pssh(widevine, data)).first
    #expect(found?.contentIdentifier == bytes("movie-1") && found?.keyIDs == [id(first), id(second)].compactMap { $0 })
    #expect(
      found?.widevine.provider == bytes("prov") && found?.widevine.policy == bytes("p")
        && found?.widevine.protectionScheme == 0x6365_6E63)
  }

  @Test func widevineData_broken_isReadAsFarAsItGoes() {
    let good: [UInt8] = [0x22, 1, 0x61]
    for tail in [
      [0x12], [0x12, 16], [0x12, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], [0x08], [0x0B], [0x0F],
      [UInt8](repeating: 0xFF, count: 20), [0x09, 1], [0x0D, 1], [0x12, 3, 1, 2, 3]
    ] as [[UInt8]] {
      let found = withBytes(good + tail) { WidevineData($0) }
      #expect(found.contentID == bytes("a") && found.keyIDs.isEmpty)
    }
    #expect(all(pssh(widevine)).first?.contentIdentifier == nil)
  }
}

@Suite struct PlayReadyHeaderTests {
  private func utf16(_ text: String) -> [UInt8] {
    text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
  }
  private func little(_ value: Int, _ count: Int) -> [UInt8] { Array(number(value, count).reversed()) }
  private func object(_ xml: [UInt8], before: [UInt8] = [], records: Int = 1) -> [UInt8] {
    let record = before + little(1, 2) + little(xml.count, 2) + xml
    return little(6 + record.count, 4) + little(records, 2) + record
  }
  private func read(_ bytes: [UInt8]) -> PlayReadyHeader? { withBytes(bytes) { PlayReadyHeader($0) } }
  /// The base64 of 0fedcba9-8765-4321-0123-456789abcdef in the byte order of a GUID.
  private let kid = "qcvtD2WHIUMBI0VniavN7w=="

  @Test func keyID_ofEveryVersion_isFound() {
    for xml in [
      "<WRMHEADER version='4.0.0.0'><DATA><KID>\(kid)</KID><LA_URL>https://h/?a=1&amp;b=2</LA_URL></DATA></WRMHEADER>",
      "<WRMHEADER version=\"4.1.0.0\"><DATA><LA_URL>\n https://h/?a=1&amp;b=2 </LA_URL><PROTECTINFO>"
        + "<KID ALGID=\"AESCTR\" CHECKSUM=\"x=\" VALUE=\"\(kid)\"></KID></PROTECTINFO></DATA></WRMHEADER>",
      "<WRMHEADER><DATA><PROTECTINFO><KIDS><KID VALUE='\(kid)'/><KID VALUE='\(kid)'/></KIDS></PROTECTINFO>"
        + "<LA_URL><![CDATA[https://h/?a=1&b=2]]></LA_URL></DATA></WRMHEADER>"
    ] {
      for wrapped in [
        object(utf16(xml)), object(utf16(xml), before: little(3, 2) + little(2, 2) + [0, 0], records: 2), utf16(xml),
        [0xFF, 0xFE] + utf16(xml)
      ] {
        #expect(
          read(wrapped)?.keyIDs == [id(first)].compactMap { $0 }
            && read(wrapped)?.licenseURL == bytes("https://h/?a=1&b=2")
            && read(wrapped)?.xml == bytes(xml))
      }
      let found = withBytes(pssh(playReady, object(utf16(xml)))) { PSSH.all(in: $0) }.first
      #expect(found?.keyIDs == [id(first)].compactMap { $0 } && found?.contentIdentifier == nil)
    }
  }

  @Test func header_thatIsNone_isNone() {
    for broken in [
      [], [0x3C], [0x3C, 0, 0x3C], object([]), little(6, 4) + little(0xFFFF, 2), object(utf16("no xml")),
      little(10, 4) + little(1, 2) + little(1, 2) + little(0xFFFF, 2)
    ] as [[UInt8]] {
      #expect(read(broken)?.keyIDs ?? [] == [])
    }
    #expect(read(object(utf16("<KID>x</KID><KID>AAAA</KID><KID VALUE='!'/><KID/><LA_URL/>")))?.keyIDs == [])
    #expect(read(object([0x3C, 0x00, 0x00, 0xD8, 0x41, 0x00])) != nil, "a lone surrogate")
  }

  @Test func hostileHeader_neverTraps() {
    var dice = Dice(91)
    for _ in 0..<5000 {
      let pieces = [
        "<KID>", "</KID>", kid, "<KID VALUE='", "'", ">", "/>", "<LA_URL>", "<!--", "-->", "&amp;", "\u{0}", "😀"
      ]
      let xml = utf16((0..<Int(dice.upTo(8))).map { _ in dice.pick(pieces) }.joined())
      var made = dice.one(in: 2) ? object(xml) : xml
      if !made.isEmpty && dice.one(in: 2) {
        made[Int(dice.upTo(UInt64(made.count - 1)))] = UInt8(truncatingIfNeeded: dice.next())
      }
      if let header = read(made) { #expect(header.keyIDs.count <= 8) }
    }
  }
}

@Suite struct TrackEncryptionTests {
  private func all(_ bytes: [UInt8]) -> [TrackEncryption] { withBytes(bytes) { TrackEncryption.all(in: $0) } }
  private func tenc(
    _ version: UInt8, pattern: UInt8 = 0, isProtected: UInt8 = 1, ivSize: UInt8, _ rest: [UInt8] = []
  ) -> [UInt8] {
    box("tenc", [version, 0, 0, 0, 0, pattern, isProtected, ivSize], first, rest)
  }
  private func sinf(_ scheme: String, _ tenc: [UInt8]) -> [UInt8] {
    box(
      "sinf", box("frma", bytes("avc1")), box("schm", [0, 0, 0, 0], bytes(scheme), number(0x10000)), box("schi", tenc))
  }
  private func moov(_ entries: [UInt8]) -> [UInt8] {
    box(
      "moov", box("mvhd", [0]),
      box("trak", box("mdia", box("minf", box("stbl", box("stsd", number(0), number(1), entries))))))
  }

  @Test func box_alone_isRead() {
    let found = all(tenc(0, ivSize: 8)).first
    #expect(
      found?.isProtected == true && found?.ivSize == 8 && found?.defaultKeyID == id(first) && found?.constantIV == []
        && found?.scheme == nil)
    #expect(found?.cryptBlocks == 0 && found?.skipBlocks == 0)
  }

  @Test func box_withPattern_hasItInVersion1Only() {
    let iv = [UInt8](repeating: 7, count: 16)
    let found = all(tenc(1, pattern: 0x19, ivSize: 0, [16] + iv)).first
    #expect(found?.cryptBlocks == 1 && found?.skipBlocks == 9 && found?.constantIV == iv && found?.ivSize == 0)
    #expect(all(tenc(0, pattern: 0x19, ivSize: 8)).first?.cryptBlocks == 0)
    #expect(all(tenc(0, isProtected: 0, ivSize: 0)).first?.isProtected == false)
  }

  @Test func box_thatLies_isLeftOut() {
    for broken in [
      [], box("tenc"), box("tenc", [0, 0, 0, 0, 0, 0, 1, 8], Array(first.dropLast())), tenc(0, ivSize: 7),
      tenc(1, ivSize: 0), tenc(1, ivSize: 0, [16]),
      tenc(1, ivSize: 0, [16] + [UInt8](repeating: 0, count: 15)),
      tenc(1, ivSize: 0, [255]), tenc(1, ivSize: 0, [0]), Array(tenc(0, ivSize: 8).dropLast())
    ] as [[UInt8]] { #expect(all(broken).isEmpty) }
  }

  @Test func entries_ofEveryKind_areSearched() {
    let video = box("encv", [UInt8](repeating: 0, count: 78), box("avcC", [1, 2, 3]), sinf("cbcs", tenc(0, ivSize: 8)))
    let audio = box("enca", [UInt8](repeating: 0, count: 28), box("esds", [1]), sinf("cenc", tenc(0, ivSize: 8)))
    let older = [44, 64].flatMap { box("enca", [UInt8](repeating: 0, count: $0), sinf("cenc", tenc(0, ivSize: 8))) }
    let text = box("enct", [UInt8](repeating: 0, count: 8), sinf("cens", tenc(0, ivSize: 8)))
    let schemes = all(moov(video + audio + older + text)).map {
      $0.scheme.map { String(decoding: number(Int($0)), as: UTF8.self) } ?? ""
    }
    #expect(schemes == ["cbcs", "cenc", "cenc", "cenc", "cens"])
    #expect(all(video).count == 1 && all(sinf("cbcs", tenc(0, ivSize: 8))).first?.scheme == 0x6362_6373)
    #expect(
      all(moov(box("avc1", [UInt8](repeating: 0, count: 78), sinf("cbcs", tenc(0, ivSize: 8))))).isEmpty,
      "not encrypted")
    #expect(all(moov(box("encv", [0]) + box("enca", [0]) + box("encs"))).isEmpty)
  }

  @Test func nesting_isBounded() {
    var nested = tenc(0, ivSize: 8)
    for _ in 0..<11 { nested = box("schi", nested) }
    #expect(all(nested).count == 1)
    for _ in 0..<10_000 { nested = box("schi", nested.prefix(100_000) + []) }
    #expect(all(nested).isEmpty)
    #expect(all((0..<2000).flatMap { _ in tenc(0, ivSize: 8) }).count == TrackEncryption.mostTracks)
  }

  /// Reads the `moov` box of a clip (H.264 and AAC) that ffmpeg made and encrypted. Its key id is
  /// 0fedcba9876543210123456789abcdef.
  @Test func initialisationSegment_ofFFmpeg_isRead() {
    let segment = withBytes(Self.moov) { Base64.decode($0) }?.withBytes { Array($0) } ?? []
    let found = all(segment)
    #expect(
      found.count == 2
        && found.allSatisfy {
          $0.isProtected && $0.ivSize == 8 && $0.defaultKeyID == id(first) && $0.scheme == 0x6365_6E63
        })
  }

  @Test func hostileBoxes_neverTrap() {
    var dice = Dice(92)
    let track = box("encv", [UInt8](repeating: 0, count: 78), sinf("cbcs", tenc(1, ivSize: 0, [16] + second)))
    let good = moov(track) + pssh(widevine, ids: [first], [0x12, 16] + second)
    for _ in 0..<20_000 {
      var bad = good
      for _ in 0...dice.upTo(4) {
        let at = Int(dice.upTo(UInt64(bad.count - 1)))
        switch dice.upTo(3) {
        case 0: bad[at] = UInt8(truncatingIfNeeded: dice.next())
        case 1: bad[at] = dice.pick([0, 1, 0x7F, 0x80, 0xFF])
        case 2: bad = Array(bad.prefix(max(at, 1)))
        default: bad.insert(contentsOf: bad[at...].prefix(9), at: at)
        }
      }
      for one in all(bad) { #expect(one.constantIV.count <= 16) }
      for one in withBytes(bad, { PSSH.all(in: $0) }) {
        #expect(one.box.count <= bad.count && one.keyIDs.count <= bad.count / 16)
      }
    }
  }

  private static let moov = bytes(
    """
    AAAF1m1vb3YAAABsbXZoZAAAAAAAAAAAAAAAAAAAA+gAAAAAAAEAAAEAAAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAA
    QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIAAAJ0dHJhawAAAFx0a2hkAAAAAwAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAA
    AAAAAAABAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAQAAAAABAAAAAQAAAAAACEG1kaWEAAAAgbWRoZAAAAAAAAAAAAAAAAAAAKAAAAAAA
    VcQAAAAAAC1oZGxyAAAAAAAAAAB2aWRlAAAAAAAAAAAAAAAAVmlkZW9IYW5kbGVyAAAAAbttaW5mAAAAFHZtaGQAAAABAAAAAAAAAAAAAAAkZGlu
    ZgAAABxkcmVmAAAAAAAAAAEAAAAMdXJsIAAAAAEAAAF7c3RibAAAAPpzdHNkAAAAAAAAAAEAAADqZW5jdgAAAAAAAAABAAAAAAAAAAAAAAAAAAAA
    AABAAEAASAAAAEgAAAAAAAAAARVMYXZjNTkuMzcuMTAwIGxpYngyNjQAAAAAAAAAAAAAABj//wAAADRhdmNDAfQACv/hABdn9AAKkZsohNgIgAAA
    AwCAAAAKB4kSywEABmjr48RIRP/4+AAAAAAQcGFzcAAAAAEAAAABAAAAUHNpbmYAAAAMZnJtYWF2YzEAAAAUc2NobQAAAABjZW5jAAEAAAAAAChz
    Y2hpAAAAIHRlbmMAAAAAAAABCA/ty6mHZUMhASNFZ4mrze8AAAAQc3R0cwAAAAAAAAAAAAAAEHN0c2MAAAAAAAAAAAAAABRzdHN6AAAAAAAAAAAA
    AAAAAAAAEHN0Y28AAAAAAAAAAAAAABBzZW5jAAAAAgAAAAAAAAAUc2FpbwAAAAAAAAABAAAC5wAAABFzYWl6AAAAAAAAAAAAAAACRHRyYWsAAABc
    dGtoZAAAAAMAAAAAAAAAAAAAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAQEAAAAAAQAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAEAAAAAAAAAA
    AAAAAAAAAeBtZGlhAAAAIG1kaGQAAAAAAAAAAAAAAAAAAKxEAAAAAFXEAAAAAAAtaGRscgAAAAAAAAAAc291bgAAAAAAAAAAAAAAAFNvdW5kSGFu
    ZGxlcgAAAAGLbWluZgAAABBzbWhkAAAAAAAAAAAAAAAkZGluZgAAABxkcmVmAAAAAAAAAAEAAAAMdXJsIAAAAAEAAAFPc3RibAAAAM5zdHNkAAAA
    AAAAAAEAAAC+ZW5jYQAAAAAAAAABAAAAAAAAAAAAAgAQAAAAAKxEAAAAAAA2ZXNkcwAAAAADgICAJQACAASAgIAXQBUAAAAAAQ2IAAENiAWAgIAF
    EghW5QAGgICAAQIAAABQc2luZgAAAAxmcm1hbXA0YQAAABRzY2htAAAAAGNlbmMAAQAAAAAAKHNjaGkAAAAgdGVuYwAAAAAAAAEID+3LqYdlQyEB
    I0VniavN7wAAABRidHJ0AAAAAAABDYgAAQ2IAAAAEHN0dHMAAAAAAAAAAAAAABBzdHNjAAAAAAAAAAAAAAAUc3RzegAAAAAAAAAAAAAAAAAAABBz
    dGNvAAAAAAAAAAAAAAAQc2VuYwAAAAAAAAAAAAAAFHNhaW8AAAAAAAAAAQAABSsAAAARc2FpegAAAAAIAAAAAAAAAEhtdmV4AAAAIHRyZXgAAAAA
    AAAAAQAAAAEAAAAAAAAAAAAAAAAAAAAgdHJleAAAAAAAAAACAAAAAQAAAAAAAAAAAAAAAAAAAGJ1ZHRhAAAAWm1ldGEAAAAAAAAAIWhkbHIAAAAA
    AAAAAG1kaXJhcHBsAAAAAAAAAAAAAAAALWlsc3QAAAAlqXRvbwAAAB1kYXRhAAAAAQAAAABMYXZmNTkuMjcuMTAw
    """)
}
