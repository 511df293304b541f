import Testing

@testable import UsherCore

private let first = bytes(hex: "0fedcba9876543210123456789abcdef")
private let second = bytes(hex: "00112233445566778899aabbccddeeff")
private let third = bytes(hex: "a0b1c2d3e4f5061728394a5b6c7d8e01")
private let clearKey = bytes(hex: "1077efec c0b2 4d02 ace3 3c1e52e2fb4b")
private func ids(_ bytes: [UInt8]...) -> [UUIDBytes] { bytes.compactMap { UUIDBytes($0) } }
private func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

private func tenc(_ id: [UInt8], ivSize: UInt8 = 8, more: [UInt8] = []) -> [UInt8] {
  box("tenc", [1, 0, 0, 0, 0, 0x19, 1, ivSize], id, more)
}
private func sinf(_ tenc: [UInt8], scheme: String = "cenc") -> [UInt8] {
  box("sinf", box("frma", bytes("avc1")), box("schm", zeros(4) + bytes(scheme) + number(0x10000)), box("schi", tenc))
}
private func video(_ sinf: [UInt8]) -> [UInt8] { box("encv", zeros(78), box("avcC", zeros(30)), sinf) }
private func trak(_ id: Int, _ entries: [UInt8]...) -> [UInt8] {
  let stsd = box("stsd", zeros(4) + number(entries.count), entries.flatMap { $0 })
  let minf = box("minf", box("vmhd", zeros(12)), box("stbl", stsd, box("stsz", zeros(12))))
  return box("trak", box("tkhd", zeros(12) + number(id), zeros(68)), box("mdia", box("mdhd", zeros(24)), minf))
}
private func pssh(_ ids: [[UInt8]] = [], data: [UInt8] = []) -> [UInt8] {
  UUIDBytes(clearKey).map { PSSH.make($0, keyIDs: ids.compactMap { UUIDBytes($0) }, data: data) } ?? []
}
private func seig(_ id: [UInt8], version: UInt8 = 1, count: Int = 1, length: Int = 20) -> [UInt8] {
  let head = [version, 0, 0, 0] + bytes("seig") + (version == 0 ? [] : number(length)) + (version > 1 ? number(0) : [])
  return box("sgpd", head + number(count), (0..<count).flatMap { _ in [0, 0, 1, 8] + id })
}
private func moof(_ id: Int, _ more: [UInt8]...) -> [UInt8] {
  box("moof", box("mfhd", zeros(8)), box("traf", box("tfhd", zeros(4) + number(id)), more.flatMap { $0 }))
}
private let ftyp = box("ftyp", bytes("isom") + zeros(4))
private let movie = box("moov", box("mvhd", zeros(100)), trak(1, video(sinf(tenc(first)))))

/// A file in memory. This object counts the reads, and the bytes that the reads return.
private final class Disk {
  /// Parts of the file, each with the offset at which it begins. All other bytes up to `end` are 0.
  var pieces: [(at: UInt64, bytes: [UInt8])] = []
  var end: UInt64 = 0
  /// How many bytes one read returns at most.
  var most = Int.max
  var failsAt = UInt64.max
  private(set) var reads = 0
  private(set) var total = 0

  init(_ bytes: [UInt8] = []) { append(bytes) }

  func append(_ bytes: [UInt8], size: Int? = nil) {
    pieces.append((end, bytes))
    end += UInt64(size ?? bytes.count)
  }

  func read(_ offset: UInt64, _ target: UnsafeMutableBufferPointer<UInt8>) -> Int {
    reads += 1
    if offset >= failsAt { return -1 }
    guard offset < end else { return 0 }
    let count = min(target.count, most, Int(min(end - offset, UInt64(Int.max))))
    total += count
    for index in 0..<count { target[index] = 0 }
    for piece in pieces where piece.at < offset + UInt64(count) && piece.at + UInt64(piece.bytes.count) > offset {
      let from = max(piece.at, offset)
      let end = min(piece.at + UInt64(piece.bytes.count), offset + UInt64(count))
      for at in from..<end { target[Int(at - offset)] = piece.bytes[Int(at - piece.at)] }
    }
    return count
  }
}

@Suite struct MP4FileTests {
  private func scan(_ disk: Disk) -> (found: FileProtection, fault: MP4File.Fault?, message: String) {
    let file = MP4File { disk.read($0, $1) }
    do throws(MP4File.Fault) {
      try file.scan()
      return (file.found, nil, file.message.text())
    } catch { return (file.found, error, file.message.text()) }
  }
  private func found(_ parts: [UInt8]...) -> FileProtection {
    let result = scan(Disk(parts.flatMap { $0 }))
    #expect(result.fault == nil, "\(result.message)")
    return result.found
  }
  private func refused(_ bytes: [UInt8], _ message: String) {
    let result = scan(Disk(bytes))
    #expect(result.fault == .malformed)
    #expect(result.message == message)
  }
  private let entryPath = "moov/trak[1]/mdia/minf/stbl/stsd/encv"

  @Test func movie_atTheBeginOrEnd_givesTracksAndBoxes() {
    let boxes = [pssh([first], data: [1]), pssh([second])]
    let moov = box(
      "moov", box("mvhd", zeros(100)), trak(7, video(sinf(tenc(first), scheme: "cbcs"))), boxes[0], trak(8),
      trak(9, box("enca", zeros(28), sinf(tenc(second)))), boxes[1], boxes[0])
    for file in [found(ftyp, moov, box("mdat", zeros(9000))), found(ftyp, box("mdat", zeros(9000)), moov)] {
      #expect(file.tracks.map { $0.id } == [7, 9] && file.tracks.map { $0.keyIDs } == [ids(first), ids(second)])
      #expect(file.tracks.map { $0.scheme } == [0x6362_6373, 0x6365_6E63])
      #expect(file.tracks.first?.encryption?.cryptBlocks == 1 && file.tracks.first?.encryption?.skipBlocks == 9)
      #expect(file.pssh.map { $0.box } == boxes && file.keyIDs == ids(first, second))
    }
  }

  @Test func file_withoutEncryption_hasNoKeyIDs() {
    let file = found(ftyp, box("moov", trak(1, box("avc1", zeros(78)))))
    #expect(file.tracks.isEmpty && file.pssh.isEmpty && file.keyIDs.isEmpty)
  }

  @Test func keyIDs_ofAFileWithoutTenc_areThoseOfItsBoxes() {
    #expect(found(ftyp, box("moov", trak(1), pssh([second]))).keyIDs == ids(second))
  }

  @Test func soundEntries_ofQuickTime_areRead() {
    for size in [28, 44, 64] {
      let moov = box("moov", trak(1, box("enca", zeros(size), box("esds", zeros(20)), sinf(tenc(third)))))
      #expect(found(moov).keyIDs == ids(third))
    }
  }

  @Test func textEntry_withAnotherForm_isSkipped() {
    let moov = box("moov", trak(1, box("enct", bytes("a namespace without a box"))), trak(2, video(sinf(tenc(first)))))
    #expect(found(moov).keyIDs == ids(first))
  }

  @Test func fragment_addsItsBoxesAndGroups() {
    let moov = box("moov", trak(1, video(sinf(tenc(first)))), box("mvex", zeros(8)), pssh([first]))
    for version in 0...2 as ClosedRange<UInt8> {
      let groups = seig(second, version: version)
      let file = found(ftyp, moov, box("sidx"), moof(1, groups) + box("mdat", zeros(5000)), moof(1, seig(third)))
      #expect(file.keyIDs == ids(first, second) && file.pssh.count == 1)
    }
    let withBox = box("moof", pssh([second]), box("traf", box("tfhd", zeros(4) + number(1))))
    #expect(found(ftyp, moov, withBox).pssh.map { $0.keyIDs } == [ids(first), ids(second)])
  }

  @Test func groups_withEntriesOfSeveralLengths_areRead() {
    let entries = number(20) + [0, 0, 1, 8] + second + number(37) + [0, 0, 1, 0] + third + [16] + zeros(16)
    let clear = number(20) + [0, 0, 0, 0] + zeros(16)
    let groups = box("sgpd", [1, 0, 0, 0] + bytes("seig") + number(0) + number(3), entries, clear)
    let moov = box("moov", trak(1, video(sinf(tenc(first)))), box("mvex"))
    #expect(found(moov, moof(1, box("sgpd", zeros(4) + bytes("roll")), groups)).keyIDs == ids(first, second, third))
    let old = box(
      "sgpd", zeros(4) + bytes("seig") + number(2), [0, 0, 1, 0] + second + [8] + zeros(8), [0, 0, 1, 8] + third)
    #expect(found(moov, moof(1, old)).keyIDs == ids(first, second, third))
  }

  @Test func fragments_areReadUntilEachProtectedTrackHasOne() {
    let moov = box(
      "moov", trak(1, video(sinf(tenc(first)))), trak(2, video(sinf(tenc(second)))), trak(3), box("mvex"))
    let one = found(moov, moof(1), box("mdat"), moof(2, seig(third)), moof(1, seig(clearKey)))
    #expect(one.keyIDs == ids(first, second, third))
    let many = (0..<MP4File.mostFragments).flatMap { _ in moof(1) }
    #expect(found(moov, many, moof(2, seig(third))).keyIDs == ids(first, second))
  }

  @Test func sizes_of64BitsAndOpenEnd_areRead() {
    let disk = Disk(ftyp)
    disk.append(number(1) + bytes("mdat") + number(6 << 40, 8), size: 6 << 40)
    disk.append(number(0) + bytes("moov") + Array(movie[8...]))
    disk.most = 7
    #expect(scan(disk).found.keyIDs == ids(first))
    let inner = number(1) + bytes("trak") + number(8 + trak(1, video(sinf(tenc(first)))).count, 8)
    #expect(found(box("moov", inner, Array(trak(1, video(sinf(tenc(first))))[8...]))).keyIDs == ids(first))
  }

  @Test func hugeMovie_takesFewReads() {
    let disk = Disk(ftyp)
    let entry = trak(1, video(sinf(tenc(first))))
    disk.append(number(208 + 200_000_000 + entry.count) + bytes("moov"))
    disk.append(number(200_000_200) + bytes("free"), size: 200_000_200)
    disk.append(entry)
    let result = scan(disk)
    #expect(result.found.keyIDs == ids(first) && disk.reads <= 6 && disk.total <= 6 * MP4File.windowSize)
  }

  @Test func tenc_thatLies_isRefusedWithItsPath() {
    func movie(_ tenc: [UInt8]) -> [UInt8] { ftyp + box("moov", trak(1, video(sinf(tenc)))) }
    let path = entryPath + "/sinf/schi/tenc: "
    refused(movie(tenc(first, ivSize: 7)), path + "an IV must have 8 or 16 bytes")
    refused(movie(tenc(first, ivSize: 0)), path + "an IV must have 8 or 16 bytes")
    refused(movie(tenc(first, ivSize: 0, more: [9] + zeros(9))), path + "an IV must have 8 or 16 bytes")
    refused(movie(box("tenc", zeros(23))), path + "the box ends before the end of the key id")
    refused(movie([]), entryPath + "/sinf: no tenc box")
    refused(box("moov", trak(1, video([]))), entryPath + ": an encrypted track without a sinf box")
    refused(
      movie(number(99) + bytes("tenc") + zeros(24)), path + "the box is longer than the box around it")
    #expect(found(movie(tenc(first, ivSize: 0, more: [8] + zeros(8)))).tracks.first?.encryption?.constantIV.count == 8)
    #expect(
      found(box("moov", trak(1, video(sinf([], scheme: "adkm"))))).tracks.map { $0.scheme } == [0x6164_6B6D],
      "another scheme has no tenc box")
  }

  @Test func boxes_thatLie_areRefusedWithTheirPath() {
    refused(
      ftyp + box("moov", trak(1), box("trak", number(7) + bytes("mdia"))),
      "moov/trak[2]/mdia: a box cannot have this size")
    refused(number(1) + bytes("moov") + number(8, 8), "moov: a box cannot have this size")
    refused(number(1) + bytes("moov") + [UInt8](repeating: 0xFF, count: 8), "moov: a box cannot have this size")
    refused(number(1) + bytes("m\u{1}ov") + number(-20, 8), "m?ov: a box cannot have this size")
    refused(
      ftyp + Array(box("moov", trak(1), zeros(2000)).prefix(40)), "moov/trak[1]: the file ends inside this box")
    refused(
      box("moov", pssh(), Array(pssh().dropLast(4)) + number(1)),
      "moov/pssh[2]: the lengths in this box contradict its size")
    refused(
      number(5000) + bytes("moov") + number(4900) + bytes("pssh") + zeros(30),
      "moov/pssh[1]: the file ends inside this box")
    let moov = box("moov", trak(1, video(sinf(tenc(first)))), box("mvex"))
    refused(
      moov + moof(1, seig(first, length: 19)),
      "moof[1]/traf[1]/sgpd: a group description of type seig with less than 20 bytes")
    refused(
      moov + moof(1, seig(first, count: 2).dropLast(20) + []),
      "moof[1]/traf[1]/sgpd: the box is longer than the box around it")
    let short = box("sgpd", [1, 0, 0, 0] + bytes("seig") + number(20) + number(0xFFFF_FFFF), [0, 0, 1, 8] + first)
    refused(moov + moof(1, short), "moof[1]/traf[1]/sgpd: the box is too short for its content")
    let nested = (0..<40).reduce(trak(1)) { inner, _ in box("schi", inner) }
    #expect(scan(Disk(box("moov", nested))).message.hasSuffix("schi: boxes are nested too deeply"))
  }

  @Test func otherFiles_areRefused() {
    refused([], "the file has no moov box; it is no MP4 file, or its end is missing")
    refused(ftyp + number(90_000) + bytes("mdat"), "the file has no moov box; it is no MP4 file, or its end is missing")
    refused(bytes(hex: "1A45DFA3A3428681014286810142F7810142F281"), "this is no MP4 file")
    refused(
      ftyp + moof(1), "moof[1]: a fragment without a moov box before it; the file needs its initialisation segment")
    #expect(found(box("moov", box("pssh", [2, 0, 0, 0], zeros(20)))).pssh.isEmpty, "a pssh box of a later version")
  }

  @Test func reader_thatFails_isReported() {
    let disk = Disk(ftyp + box("mdat", zeros(9000)) + movie)
    disk.failsAt = 9000
    let result = scan(disk)
    #expect(result.fault == .unreadable && result.message == "the file could not be read at byte 9024")
    let liar = MP4File { _, target in target.count + 1 }
    #expect(throws: MP4File.Fault.unreadable) { try liar.scan() }
  }

  @Test func boxes_byTheThousand_areBounded() {
    let disk = Disk(ftyp)
    for _ in 0..<40 { disk.append((0..<1000).flatMap { _ in box("free") }) }
    disk.append(movie)
    #expect(scan(disk).message == "the file has more than 32768 boxes before its key ids")
    let inside = Disk(
      box("moov", trak(1, box("encv", zeros(78), (0..<40_000).flatMap { _ in box("free") }, sinf(tenc(first))))))
    #expect(scan(inside).fault == .tooLarge)
    let groups = seig(first, version: 1, count: 40_000)
    let moov = box("moov", trak(1, video(sinf(tenc(first)))), box("mvex"))
    #expect(scan(Disk(moov + moof(1, groups))).fault == .tooLarge)
    #expect(scan(Disk(box("moov", (0..<300).flatMap { pssh(data: number($0)) }))).fault == .tooLarge)
    #expect(scan(Disk(box("moov", pssh(data: zeros(300_000))))).fault == .tooLarge)
    #expect(found(box("moov", pssh(data: zeros(200_000)))).pssh.first?.data.count == 200_000)
    #expect(scan(Disk(box("moov", (1...300).flatMap { trak($0, video(sinf(tenc(first)))) }))).fault == .tooLarge)
  }
}
