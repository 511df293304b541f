/// A four-letter code in an ISO BMFF (MP4) file: the type of a box, such as `moov`, or the name of an encryption
/// scheme, such as `cenc`.
struct FourCC: Equatable, Sendable {
  let value: UInt32

  static var moov: FourCC { FourCC(value: 0x6D6F_6F76) }
  static var moof: FourCC { FourCC(value: 0x6D6F_6F66) }
  static var trak: FourCC { FourCC(value: 0x7472_616B) }
  static var mdia: FourCC { FourCC(value: 0x6D64_6961) }
  static var minf: FourCC { FourCC(value: 0x6D69_6E66) }
  static var stbl: FourCC { FourCC(value: 0x7374_626C) }
  static var stsd: FourCC { FourCC(value: 0x7374_7364) }
  static var sinf: FourCC { FourCC(value: 0x7369_6E66) }
  static var schi: FourCC { FourCC(value: 0x7363_6869) }
  static var schm: FourCC { FourCC(value: 0x7363_686D) }
  static var tenc: FourCC { FourCC(value: 0x7465_6E63) }
  static var pssh: FourCC { FourCC(value: 0x7073_7368) }
  static var mvex: FourCC { FourCC(value: 0x6D76_6578) }
  static var traf: FourCC { FourCC(value: 0x7472_6166) }
  static var tfhd: FourCC { FourCC(value: 0x7466_6864) }
  static var tkhd: FourCC { FourCC(value: 0x746B_6864) }
  static var sgpd: FourCC { FourCC(value: 0x7367_7064) }
  static var seig: FourCC { FourCC(value: 0x7365_6967) }
  static var encv: FourCC { FourCC(value: 0x656E_6376) }
  static var enca: FourCC { FourCC(value: 0x656E_6361) }
  static var enct: FourCC { FourCC(value: 0x656E_6374) }
  static var encs: FourCC { FourCC(value: 0x656E_6373) }
  static var encm: FourCC { FourCC(value: 0x656E_636D) }
  static var encu: FourCC { FourCC(value: 0x656E_6375) }

  /// Whether each of the four bytes is a printable ASCII character other than "?".
  var isPrintable: Bool { letter(24) != 0x3F && letter(16) != 0x3F && letter(8) != 0x3F && letter(0) != 0x3F }

  /// Whether this is a scheme of ISO/IEC 23001-7: `cenc`, `cbc1`, `cens` or `cbcs`. A track with such a scheme needs a
  /// `tenc` box.
  var isCommonEncryption: Bool {
    switch value {
    case 0x6365_6E63, 0x6362_6331, 0x6365_6E73, 0x6362_6373: return true
    default: return false
    }
  }

  /// Adds the four letters.
  @inline(never)
  func write(to line: inout TextLine) {
    for shift in [24, 16, 8, 0] as [UInt32] { line.add(letter(shift)) }
  }

  /// Returns the byte that begins at bit `shift` of `value`; "?" if that byte is not a printable ASCII character.
  @inline(never)
  private func letter(_ shift: UInt32) -> UInt8 {
    let letter = UInt8(truncatingIfNeeded: value >> shift)
    return letter >= 0x20 && letter < 0x7F ? letter : 0x3F
  }
}

/// The header of a box of an ISO BMFF file.
struct BoxHeader {
  let type: FourCC
  /// The size that the header states: the number of bytes of the whole box, with its header. nil: the box extends to
  /// the end of the file.
  let size: UInt64?
  /// The number of bytes of the header.
  let count: Int

  /// Returns nil if the bytes do not contain the complete header. This function does not check the size.
  @inline(never)
  static func read(_ bytes: UnsafeBufferPointer<UInt8>) -> BoxHeader? {
    var reader = ByteReader(bytes)
    guard let short = reader.number(4), let type = reader.number(4) else { return nil }
    var size: UInt64? = short
    if short == 1 {
      guard let long = reader.number(8) else { return nil }
      size = long
    } else if short == 0 {
      size = nil
    }
    return BoxHeader(type: FourCC(value: UInt32(truncatingIfNeeded: type)), size: size, count: reader.at)
  }
}

/// One box of an ISO BMFF file. It points into the bytes of the file and copies nothing.
struct Box {
  let type: FourCC
  /// The complete box, including its header.
  let whole: UnsafeBufferPointer<UInt8>
  let payload: UnsafeBufferPointer<UInt8>

  /// Calls `visit` for each box in `bytes`, in order. Stops at a box that is longer than the rest of the bytes, or when
  /// `visit` returns false.
  static func each(in bytes: UnsafeBufferPointer<UInt8>, _ visit: (Box) -> Bool) {
    var rest = bytes
    while let box = Box.first(of: rest), visit(box) { rest = UnsafeBufferPointer(rebasing: rest[box.whole.count...]) }
  }

  static func first(of bytes: UnsafeBufferPointer<UInt8>) -> Box? {
    guard let header = BoxHeader.read(bytes) else { return nil }
    let size = header.size ?? UInt64(bytes.count)
    guard size >= UInt64(header.count), size <= UInt64(bytes.count) else { return nil }
    let end = Int(size)
    return Box(
      type: header.type, whole: UnsafeBufferPointer(rebasing: bytes[..<end]),
      payload: UnsafeBufferPointer(rebasing: bytes[header.count..<end]))
  }

  static func child(_ type: FourCC, of bytes: UnsafeBufferPointer<UInt8>) -> Box? {
    var found: Box?
    each(in: bytes) { box in
      if box.type == type { found = box }
      return found == nil
    }
    return found
  }
}
