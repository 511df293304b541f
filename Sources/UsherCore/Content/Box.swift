/// A four-letter code of ISO BMFF.
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

  /// Whether the type of a box can have these letters.
  var isPrintable: Bool {
    var line = TextLine()
    write(to: &line)
    return !line.bytes.contains(0x3F)
  }

  /// Whether this is a scheme of ISO/IEC 23001-7: `cenc`, `cbc1`, `cens` or `cbcs`. They need a `tenc` box.
  var isCommonEncryption: Bool {
    switch value {
    case 0x6365_6E63, 0x6362_6331, 0x6365_6E73, 0x6362_6373: return true
    default: return false
    }
  }

  /// Adds the four letters; "?" stands for a byte that is no letter of ASCII.
  @inline(never)
  func write(to line: inout TextLine) {
    for shift in [24, 16, 8, 0] as [UInt32] {
      let letter = UInt8(truncatingIfNeeded: value >> shift)
      line.add(letter >= 0x20 && letter < 0x7F ? letter : 0x3F)
    }
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
    var reader = ByteReader(bytes)
    guard let short = reader.number(4), let type = reader.number(4) else { return nil }
    var size = short
    if short == 1 {
      guard let long = reader.number(8) else { return nil }
      size = long
    } else if short == 0 {
      size = UInt64(bytes.count)
    }
    guard size >= UInt64(reader.at), size <= UInt64(bytes.count) else { return nil }
    let end = Int(size)
    return Box(
      type: FourCC(value: UInt32(truncatingIfNeeded: type)), whole: UnsafeBufferPointer(rebasing: bytes[..<end]),
      payload: UnsafeBufferPointer(rebasing: bytes[reader.at..<end]))
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
