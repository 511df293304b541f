/// A rule that says which part of an `skd:` URL is the content identifier of a FairPlay payload. Packagers differ, so
/// the host chooses the rule.
package enum ContentIdentifier: UInt8, Sendable, CaseIterable {
  /// The text between the scheme and the query or fragment, percent-decoded (`AssetID.text`). If this text is base64 of
  /// a JSON object: that JSON object.
  case decodedJSON
  /// The same text as for `decodedJSON`. If this text is base64: the decoded bytes.
  case decodedBase64
  /// The text after the scheme, up to the first `/`, `?` or `#`, without user and port, percent-decoded.
  case hostOnly
  /// Everything after the scheme, with the query, unchanged.
  case everythingAfterScheme
  /// Everything after the last semicolon, unchanged; the whole URL if it has no semicolon.
  case afterLastSemicolon
  case wholeURL

  /// Returns the content identifier by this rule.
  /// - Parameter isJSONObject: a function that returns whether the bytes decoded from base64 are a JSON object.
  package func bytes(
    of url: UnsafeBufferPointer<UInt8>, scheme: [UInt8] = AssetID.fairPlayScheme, isJSONObject: ([UInt8]) -> Bool
  ) throws(AssetID.Refusal) -> [UInt8] {
    guard url.count <= AssetID.mostBytes else { throw .tooLong }
    let found: [UInt8]
    switch self {
    case .decodedJSON:
      let asset = try AssetID(url, scheme: scheme)
      if let decoded = asset.decoded, isJSONObject(decoded) { return decoded }
      return asset.text
    case .decodedBase64:
      let asset = try AssetID(url, scheme: scheme)
      return asset.decoded ?? asset.text
    case .hostOnly: found = ContentIdentifier.host(url[AssetID.start(in: url, scheme: scheme)...])
    case .everythingAfterScheme: found = Array(url[AssetID.start(in: url, scheme: scheme)...])
    case .afterLastSemicolon: found = Array(url[(url.lastIndex(of: 0x3B).map { $0 + 1 } ?? 0)...])
    case .wholeURL: found = Array(url)
    }
    guard !found.isEmpty else { throw .empty }
    return found
  }

  private static func host(_ rest: Slice<UnsafeBufferPointer<UInt8>>) -> [UInt8] {
    var host = rest[..<(rest.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex)]
    if let at = host.lastIndex(of: 0x40) { host = host[(at + 1)...] }
    if let colon = host.lastIndex(of: 0x3A), host[(colon + 1)...].allSatisfy(isDigit) { host = host[..<colon] }
    return PercentCoding.decode(host)
  }
}
