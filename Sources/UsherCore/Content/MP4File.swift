/// Finds out how an MP4 file is protected. This reader takes only small pieces of the file, and skips all boxes that
/// say nothing about protection. So the sizes that the boxes state change neither the number of reads nor the memory
/// that the reader needs.
package final class MP4File {
  /// A function of the caller: reads bytes of the file, beginning at `offset`, into `target`. It returns the number of
  /// bytes that it read; 0 at the end of the file; a negative number if reading failed.
  package typealias Read = (_ offset: UInt64, _ target: UnsafeMutableBufferPointer<UInt8>) -> Int

  package enum Fault: Error {
    /// The reading function failed.
    case unreadable
    /// This is no MP4 file, or a box is malformed.
    case malformed
    /// The file has more boxes, protected tracks or `pssh` data than allowed.
    case tooLarge
  }

  /// A box of the file.
  struct Part {
    let type: FourCC
    let start: UInt64
    let body: UInt64
    /// The offset of the first byte after the box; `openEnd` if the box extends to the end of the file.
    let end: UInt64
  }

  package static var windowSize: Int { 4096 }
  package static var mostBoxes: Int { 1 << 15 }
  /// The limit for all `pssh` boxes together. A box that is shorter than 1 KiB counts as 1 KiB.
  package static var mostPSSHBytes: Int { 1 << 18 }
  /// The largest number of fragments in which the reader looks for the first fragment of each protected track.
  package static var mostFragments: Int { 8 }
  private static var mostDepth: Int { 12 }
  private static var openEnd: UInt64 { UInt64.max }
  private static var mostOffset: UInt64 { UInt64(Int64.max) - 4096 }

  package private(set) var found = FileProtection()
  /// After a failure: the path of the box that is malformed, and what is wrong with it. Until then: the path of the box
  /// that the reader reads now.
  package private(set) var message = TextLine()

  private let read: Read
  private let window: UnsafeMutableBufferPointer<UInt8>
  /// The offset of the first byte in the window.
  private var windowStart: UInt64 = 0
  private var windowCount = 0
  /// How many boxes enclose the box that the reader reads now.
  private var depth = 0
  private var boxCount = 0
  private var psshBytes = 0
  private var isFragmented = false
  /// The track of the `trak` or `traf` box that the reader reads now; nil outside such a box, or if the track is not
  /// protected.
  private var track: FileProtection.Track?
  private var trackID: UInt32 = 0
  /// The scheme in the `sinf` box that the reader reads now, and whether this box has a `tenc` box.
  private var scheme: UInt32?
  private var hasTenc = false

  package init(_ read: @escaping Read) {
    self.read = read
    window = .allocate(capacity: MP4File.windowSize)
  }

  deinit { window.deallocate() }

  /// Reads the `moov` box and, if the file is fragmented, the first fragment of each protected track.
  package func scan() throws(Fault) {
    var fragments: UInt64 = 0
    var hasMovie = false
    let file = Part(type: .moov, start: 0, body: 0, end: MP4File.openEnd)
    var at: UInt64 = 0
    while let box = try next(at, in: file) {
      if at == 0 && !box.type.isPrintable { throw fail("this is no MP4 file") }
      let isMovie = box.type == .moov && !hasMovie
      if isMovie || box.type == .moof {
        if !isMovie { fragments &+= 1 }
        enter(box.type, fragments)
        if !isMovie && !hasMovie {
          throw fail("a fragment without a moov box before it; the file needs its initialisation segment")
        }
        try children(box, from: 0)
        message.cut(to: 0)
        hasMovie = true
        if isComplete(fragments) { return addKeyIDs() }
      }
      at = box.end
    }
    if !hasMovie { throw fail("the file has no moov box; it is no MP4 file, or its end is missing") }
    addKeyIDs()
  }

  private func addKeyIDs() {
    if !found.keyIDs.isEmpty { return }
    for box in found.pssh {
      for id in box.keyIDs { found.keyIDs.appendOnce(id) }
    }
  }

  private func isComplete(_ fragments: UInt64) -> Bool {
    !isFragmented || fragments >= UInt64(MP4File.mostFragments) || !found.tracks.contains { !$0.hasFragment }
  }

  // MARK: Boxes

  /// Appends the type of a box to the path in `message`.
  /// - Parameters:
  ///   - number: which box of this type it is; 0: the path shows no number.
  @inline(never)
  private func enter(_ type: FourCC, _ number: UInt64 = 0) {
    if message.count > 0 { message.add("/") }
    type.write(to: &message)
    if number == 0 { return }
    message.add("[")
    message.add(number)
    message.add("]")
  }

  /// Visits the boxes inside a box.
  /// - Parameters:
  ///   - offset: the number of bytes between the header of the outer box and its first inner box.
  private func children(_ box: Part, from offset: UInt64) throws(Fault) {
    if depth > MP4File.mostDepth { throw fail("boxes are nested too deeply") }
    depth &+= 1
    let path = message.count
    var systems: UInt64 = 0
    var others: UInt64 = 0
    var at = box.body &+ offset
    while let inner = try next(at, in: box) {
      var number: UInt64 = 0
      if inner.type == .pssh {
        systems &+= 1
        number = systems
      } else if inner.type == .trak || inner.type == .traf {
        others &+= 1
        number = others
      }
      enter(inner.type, number)
      try visit(inner)
      message.cut(to: path)
      at = inner.end
    }
    depth &-= 1
  }

  private func visit(_ box: Part) throws(Fault) {
    switch box.type {
    case .trak, .traf:
      (track, trackID) = (nil, 0)
      try children(box, from: 0)
      track?.id = trackID
      track = nil
    case .mdia, .minf, .stbl, .schi: try children(box, from: 0)
    case .mvex: isFragmented = true
    case .stsd: try children(box, from: 8)
    case .encv: try entry(box, 78)
    case .enca: try entry(box, 28, 44, 64)  // QuickTime: sound descriptions of version 1 and 2 are longer
    case .enct, .encs, .encm, .encu: try entry(box, 8)
    case .sinf: try protection(box)
    case .schm: scheme = UInt32(truncatingIfNeeded: try number(box.body &+ 4, 4, in: box))
    case .tenc: try trackEncryption(box)
    case .tkhd: trackID = try readID(box, at: try number(box.body, 1, in: box) == 0 ? 12 : 20)
    case .tfhd:
      trackID = try readID(box, at: 4)
      track = found.tracks.first { $0.id == trackID }
      track?.hasFragment = true
    case .sgpd: try sampleGroups(box)
    case .pssh: try keySystem(box)
    default: break
    }
  }

  private func readID(_ box: Part, at offset: UInt64) throws(Fault) -> UInt32 {
    UInt32(truncatingIfNeeded: try number(box.body &+ offset, 4, in: box))
  }

  /// Reads an encrypted sample entry. The offset of the boxes inside a sample entry depends on the format. So the
  /// function tries the offsets `first`, `second` and `third`, in this order, and reads the boxes from the first offset
  /// at which it finds a `sinf` box. If `second` is 0, it tries only `first`.
  private func entry(_ box: Part, _ first: UInt64, _ second: UInt64 = 0, _ third: UInt64 = 0) throws(Fault) {
    var offset = first
    if second > 0, try !hasSinf(box, at: box.body &+ offset) {
      offset = try hasSinf(box, at: box.body &+ second) ? second : third
    }
    if try hasSinf(box, at: box.body &+ offset) {
      try children(box, from: offset)
    } else if box.type == .encv || box.type == .enca {
      throw fail("an encrypted track without a sinf box")
    }
  }

  @inline(never)
  private func hasSinf(_ box: Part, at start: UInt64) throws(Fault) -> Bool {
    var at = start
    while at < box.end, let inner = try header(at), isInside(inner, box) {
      try countBox()
      if inner.type == .sinf { return true }
      at = inner.end
    }
    return false
  }

  private func protection(_ box: Part) throws(Fault) {
    (scheme, hasTenc) = (nil, false)
    let present = track ?? FileProtection.Track()
    if track == nil {
      if found.tracks.count >= TrackEncryption.mostTracks { throw fail("more than 256 protected tracks", .tooLarge) }
      found.tracks.append(present)
      track = present
    }
    try children(box, from: 0)
    if !hasTenc, let scheme, FourCC(value: scheme).isCommonEncryption { throw fail("no tenc box") }
    if present.scheme == nil { present.scheme = scheme }
  }

  private func trackEncryption(_ box: Part) throws(Fault) {
    // The content of the longest tenc box has 41 bytes: 24 fixed bytes, one byte with the length of the constant IV,
    // and a constant IV of 16 bytes.
    let bytes = try bytes(box.body, Int(clamping: min(box.end &- box.body, 41)))
    guard let tenc = TrackEncryption(Box(type: .tenc, whole: bytes, payload: bytes), scheme: nil) else {
      if bytes.count < 24 { throw fail("the box ends before the end of the key id") }
      throw fail("an IV must have 8 or 16 bytes")
    }
    hasTenc = true
    if track?.encryption == nil { track?.encryption = tenc }
    if tenc.isProtected { add(tenc.defaultKeyID) }
  }

  @inline(never)
  private func add(_ id: UUIDBytes) {
    track?.keyIDs.appendOnce(id)
    found.keyIDs.appendOnce(id)
  }

  /// Reads the key ids of the sample groups of type `seig`: keys that replace the default key for groups of samples.
  private func sampleGroups(_ box: Part) throws(Fault) {
    var at = box.body
    func next(_ count: Int) throws(Fault) -> UInt64 {
      defer { at &+= UInt64(count) }
      return try number(at, count, in: box)
    }
    let version = try next(4) >> 24
    guard try next(4) == UInt64(FourCC.seig.value), track != nil else { return }
    let fixed = version >= 1 ? try next(4) : 0
    if version >= 2 { _ = try next(4) }
    for _ in 0..<(try next(4)) {
      try countBox()
      var size = version >= 1 && fixed == 0 ? try next(4) : fixed
      let end = at
      let flags = try next(4)  // reserved, pattern, whether it is protected, IV size
      let id = UUIDBytes(high: try next(8), low: try next(8))
      if version == 0 { size = flags & 0xFFFF == 0x100 ? 21 &+ (try next(1)) : 20 }
      if size < 20 { throw fail("a group description of type seig with less than 20 bytes") }
      if flags & 0xFF00 != 0 { add(id) }
      at = end &+ size
    }
  }

  private func keySystem(_ box: Part) throws(Fault) {
    if try number(box.body, 1, in: box) > 1 { return }  // a box of a later version of the standard
    let size = box.end &- box.start
    if max(size, 1024) > UInt64(MP4File.mostPSSHBytes &- psshBytes) {
      throw fail("the pssh boxes are too many, or longer than 256 KiB in all", .tooLarge)
    }
    psshBytes &+= max(Int(size), 1024)
    var whole: [UInt8] = []
    while whole.count < Int(size) {
      let piece = try bytes(box.start &+ UInt64(whole.count), min(Int(size) &- whole.count, MP4File.windowSize))
      if piece.isEmpty { throw fail("the file ends inside this box") }
      whole.append(contentsOf: piece)
    }
    let read = whole.withUnsafeBufferPointer { Box.first(of: $0).flatMap { PSSH($0) } }
    guard let read else { throw fail("the lengths in this box contradict its size") }
    if !found.pssh.contains(read) { found.pssh.append(read) }
  }

  // MARK: Bytes

  /// Returns the box at an offset; nil if the outer box or the file ends there.
  private func next(_ at: UInt64, in outer: Part) throws(Fault) -> Part? {
    if outer.end != MP4File.openEnd && (outer.end < at || outer.end &- at < 8) { return nil }
    try countBox()
    guard let box = try header(at) else {
      if outer.end == MP4File.openEnd { return nil }
      throw fail("the file ends inside this box")
    }
    if box.end < box.body {
      enter(box.type)
      throw fail("a box cannot have this size")
    }
    if box.end == MP4File.openEnd && outer.end != box.end {
      return Part(type: box.type, start: box.start, body: box.body, end: outer.end)
    }
    if !isInside(box, outer) {
      enter(box.type)
      throw fail("the box is longer than the box around it")
    }
    return box
  }

  private func isInside(_ box: Part, _ outer: Part) -> Bool { box.end >= box.body && box.end <= outer.end }

  @inline(never)
  private func countBox() throws(Fault) {
    boxCount &+= 1
    if boxCount > MP4File.mostBoxes { throw fail("the file has more than 32768 boxes before its key ids", .tooLarge) }
  }

  /// Reads the header of a box. If the size in the header is impossible, the end of the box is 0. The function does not
  /// check whether the box fits into the outer box. Returns nil at the end of the file.
  private func header(_ at: UInt64) throws(Fault) -> Part? {
    guard let header = BoxHeader.read(try bytes(at, 16)) else { return nil }
    let body = at &+ UInt64(header.count)
    var end = MP4File.openEnd
    if let size = header.size {
      let (sum, isOver) = at.addingReportingOverflow(size)
      end = isOver || sum > MP4File.mostOffset || sum < body ? 0 : sum
    }
    return Part(type: header.type, start: at, body: body, end: end)
  }

  /// Reads a big-endian number inside a box.
  @inline(never)
  private func number(_ at: UInt64, _ count: Int, in box: Part) throws(Fault) -> UInt64 {
    if at > box.end || box.end &- at < UInt64(count) { throw fail("the box is too short for its content") }
    var reader = ByteReader(try bytes(at, count))
    guard let number = reader.number(count) else { throw fail("the file ends inside this box") }
    return number
  }

  /// Returns `count` bytes of the file; if the file ends earlier, fewer. The bytes are valid until the next call.
  @inline(never)
  private func bytes(_ at: UInt64, _ count: Int) throws(Fault) -> UnsafeBufferPointer<UInt8> {
    if at > MP4File.mostOffset { return UnsafeBufferPointer(start: nil, count: 0) }
    if at < windowStart || at &- windowStart > UInt64(windowCount)
      || windowCount &- Int(at &- windowStart) < count
    {
      try fill(at, count)
    }
    let skipped = Int(at &- windowStart)
    return UnsafeBufferPointer(
      rebasing: UnsafeBufferPointer(window)[skipped..<(skipped &+ min(count, windowCount &- skipped))])
  }

  /// Reads at least `count` bytes into the window; if the file ends earlier, fewer.
  private func fill(_ at: UInt64, _ count: Int) throws(Fault) {
    (windowStart, windowCount) = (at, 0)
    while windowCount < count {
      let room = UnsafeMutableBufferPointer(rebasing: window[windowCount...])
      let got = read(at &+ UInt64(windowCount), room)
      if got < 0 || got > room.count {
        windowCount = 0
        throw fail("the file could not be read at byte ", .unreadable, at)
      }
      if got == 0 { return }
      windowCount &+= got
    }
  }

  /// Adds `text`, which says what is wrong, to the path in `message`. Returns the error that the caller throws.
  @inline(never)
  private func fail(_ text: StaticString, _ fault: Fault = .malformed, _ number: UInt64? = nil) -> Fault {
    if message.count > 0 { message.add(": ") }
    message.add(text)
    if let number { message.add(number) }
    return fault
  }
}
