/// How a track is encrypted: the values of its `tenc` box, and the scheme of the `schm` box next to it.
package struct TrackEncryption: Equatable, Sendable {
  package let isProtected: Bool
  /// The size of each sample's initialisation vector in bytes; 0 if all samples use `constantIV`.
  package let ivSize: UInt8
  package let defaultKeyID: UUIDBytes
  package let constantIV: [UInt8]
  /// In pattern encryption, `cryptBlocks` encrypted blocks and then `skipBlocks` clear blocks repeat; a block has 16
  /// bytes. Both numbers are 0 if the track has no pattern.
  package let cryptBlocks: UInt8
  package let skipBlocks: UInt8
  /// The encryption scheme (`cenc`, `cbcs` …) as a number; nil if the file has no `schm` box.
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

  /// Reads how each track is encrypted, for at most `mostTracks` tracks. The bytes are an initialisation segment, a
  /// part of an initialisation segment, or a single `tenc` box.
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

  /// Returns the bytes of the boxes inside a container; nil for a box that cannot contain a `tenc`.
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

  /// Returns the boxes in a sample entry. Formats have these boxes at different offsets, so the function tries each of
  /// `offsets` and takes the first one at which it finds a `sinf` box.
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
