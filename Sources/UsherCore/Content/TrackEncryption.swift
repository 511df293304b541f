/// How a track is encrypted: the values of its `tenc` box, and the scheme of the `schm` box next to it.
package struct TrackEncryption: Equatable, Sendable {
  package let isProtected: Bool
  /// 0: the track has a `constantIV`.
  package let ivSize: UInt8
  package let defaultKeyID: UUIDBytes
  package let constantIV: [UInt8]
  /// The number of encrypted blocks in a pattern, then of clear ones; a block has 16 bytes. Both are 0 if there is no
  /// pattern.
  package let cryptBlocks: UInt8
  package let skipBlocks: UInt8
  /// `cenc`, `cbcs` … as a number; nil if there is no `schm` box.
  package let scheme: UInt32?

  init?(_ tenc: Box, scheme: UInt32?) {
    guard tenc.type == .tenc else { return nil }
    var reader = ByteReader(tenc.payload)
    guard let version = reader.byte(), reader.take(4) != nil, let pattern = reader.byte(),
      let isProtected = reader.byte(), let ivSize = reader.byte(),
      let id = reader.take(16).flatMap({ UUIDBytes($0) }), ivSize == 0 || ivSize == 8 || ivSize == 16
    else { return nil }
    var iv: [UInt8] = []
    if isProtected == 1 && ivSize == 0 {
      guard let size = reader.byte(), size == 8 || size == 16, let bytes = reader.take(Int(size)) else { return nil }
      iv = Array(bytes)
    }
    self.isProtected = isProtected != 0
    self.ivSize = ivSize
    defaultKeyID = id
    constantIV = iv
    cryptBlocks = version == 0 ? 0 : pattern >> 4
    skipBlocks = version == 0 ? 0 : pattern & 15
    self.scheme = scheme
  }

  package static var mostTracks: Int { 256 }

  /// The tracks of an initialisation segment, of a part of one, or of a single `tenc` box; at most `mostTracks`.
  package static func all(in bytes: UnsafeBufferPointer<UInt8>) -> [TrackEncryption] {
    var found: [TrackEncryption] = []
    collect(bytes, scheme: nil, depth: 0, &found)
    return found
  }

  private static func collect(
    _ bytes: UnsafeBufferPointer<UInt8>, scheme: UInt32?, depth: Int, _ found: inout [TrackEncryption]
  ) {
    guard depth < 12 else { return }
    let schm = Box.child(.schm, of: bytes).flatMap { box in
      var reader = ByteReader(box.payload)
      return reader.take(4).flatMap { _ in reader.number(4) }.map { UInt32(truncatingIfNeeded: $0) }
    }
    Box.each(in: bytes) { box in
      if let one = TrackEncryption(box, scheme: schm ?? scheme) {
        found.append(one)
      } else if let inner = inside(box) {
        collect(inner, scheme: schm ?? scheme, depth: depth + 1, &found)
      }
      return found.count < mostTracks
    }
  }

  /// The boxes inside a container; nil for a box that cannot contain a `tenc`.
  private static func inside(_ box: Box) -> UnsafeBufferPointer<UInt8>? {
    switch box.type {
    case .moov, .trak, .mdia, .minf, .stbl, .sinf, .schi: return box.payload
    case .stsd: return dropping(8, box.payload)
    case .encv: return dropping(78, box.payload)
    case .enca: return entry(box, [28, 44, 64])  // QuickTime: sound descriptions of version 1 and 2 are longer
    case .enct, .encs, .encm, .encu: return entry(box, [8])
    default: return nil
    }
  }

  /// The boxes of a sample entry. They begin at one of `offsets`: the first at which a `sinf` box is among them.
  private static func entry(_ box: Box, _ offsets: [Int]) -> UnsafeBufferPointer<UInt8>? {
    for offset in offsets {
      if let inner = dropping(offset, box.payload), Box.child(.sinf, of: inner) != nil { return inner }
    }
    return nil
  }

  private static func dropping(_ count: Int, _ bytes: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8>? {
    bytes.count < count ? nil : UnsafeBufferPointer(rebasing: bytes[count...])
  }
}
