/// Replaces key URIs in HLS playlists, for demuxers that refuse URIs with the scheme `skd:`.
package enum HLSRewrite {
  /// Replaces the key URIs that have this scheme, and leaves all other bytes of the playlist unchanged.
  /// - Parameters:
  ///   - scheme: the scheme of the URIs to replace.
  ///   - replacement: returns the new URI of a key. `rewrite` calls this closure once for each line with such a key
  ///     URI; if the closure returns nil, the line stays unchanged.
  package static func rewrite(
    _ playlist: UnsafeBufferPointer<UInt8>, scheme: [UInt8] = AssetID.fairPlayScheme, replacement: (HLSKey) -> [UInt8]?
  ) throws(HLSKey.Failure) -> [UInt8] {
    guard playlist.count <= HLSKey.mostBytes else { throw .tooLong }
    var made: [UInt8] = []
    made.reserveCapacity(playlist.count)
    var copied = 0
    var lines = HLSKeyLines(playlist)
    while let line = lines.next() {
      let key = HLSKey(playlist, line)
      guard key.assetURL(scheme: scheme) != nil, let uri = uri(playlist, line), let other = replacement(key) else {
        continue
      }
      guard !other.isEmpty, other.allSatisfy({ $0 > 0x20 && $0 != 0x22 && $0 != 0x7F }) else { throw .badReplacement }
      made += playlist[copied..<uri.value.lowerBound]
      made += uri.isQuoted ? other : [0x22] + other + [0x22]
      copied = uri.value.upperBound
    }
    return made + playlist[copied...]
  }

  /// Returns the first `URI` attribute of a line.
  private static func uri(_ playlist: UnsafeBufferPointer<UInt8>, _ line: HLSKeyLines.Line) -> HLSAttributes.Attribute?
  {
    var attributes = HLSAttributes(playlist, in: line.attributes)
    while let attribute = attributes.next() {
      if playlist[attribute.name].elementsEqual([0x55, 0x52, 0x49] as [UInt8]) { return attribute }
    }
    return nil
  }
}
