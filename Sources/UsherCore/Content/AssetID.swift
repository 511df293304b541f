/// Finds the content identifier in an `skd:` URL, or in an asset id (the URL without its scheme). The library does not
/// use a URL parser here, because a parser would change the letter case of the host and split base64 at its slashes.
package struct AssetID: Equatable, Sendable {
  package enum Refusal: Error, Equatable, Sendable {
    /// The URL has no text between its scheme and its query or fragment.
    case empty
    case tooLong
  }

  package static var mostBytes: Int { 65_536 }
  package static var fairPlayScheme: [UInt8] { [0x73, 0x6B, 0x64] }

  /// The part of the URL after the scheme, up to the first `?` or `#`, percent-decoded. If this part ends with a slash,
  /// the slash is removed before decoding.
  package let text: [UInt8]
  /// The bytes that `text` encodes in base64; nil if `text` is not base64. Some packagers write a JSON object in base64
  /// into the URL. With the rule `ContentIdentifier.decodedJSON`, this object is the content identifier of a FairPlay
  /// payload.
  package let decoded: [UInt8]?

  package init(_ url: UnsafeBufferPointer<UInt8>, scheme: [UInt8] = fairPlayScheme) throws(Refusal) {
    guard url.count <= AssetID.mostBytes else { throw .tooLong }
    var rest = url[AssetID.start(in: url, scheme: scheme)...]
    rest = rest[..<(rest.firstIndex { $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex)]
    if rest.last == 0x2F { rest = rest.dropLast() }
    text = PercentCoding.decode(rest)
    guard !text.isEmpty else { throw .empty }
    decoded = AssetID.base64(text)
  }

  /// Returns the first index after `scheme:` or `scheme://`; 0 if the URL has another scheme.
  static func start(in url: UnsafeBufferPointer<UInt8>, scheme: [UInt8]) -> Int {
    guard !scheme.isEmpty, url.count > scheme.count, url[scheme.count] == 0x3A,
      equalIgnoringCase(url[..<scheme.count], scheme)
    else { return 0 }
    let after = scheme.count + 1
    guard url.count - after >= 2, url[after] == 0x2F, url[after + 1] == 0x2F else { return after }
    return after + 2
  }

  static func base64(_ text: [UInt8]) -> [UInt8]? {
    guard let bytes = text.withUnsafeBufferPointer({ Base64.decode($0) }), bytes.count > 0 else { return nil }
    return bytes.withBytes { Array($0) }
  }
}
