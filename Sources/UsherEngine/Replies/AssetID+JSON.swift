package import UsherCore

/// The content that an asset id describes.
package struct Asset: Equatable, Sendable {
  package let id: AssetID
  /// The key of the token map: `ContentId` if the packager wrote JSON, otherwise the text of the asset id.
  package let contentID: [UInt8]
  package let keyID: UUIDBytes?
  /// The initialisation vector, 16 bytes; nil if the asset id has none.
  package let iv: [UInt8]?
  /// Whether the decoded asset id is a JSON object.
  package let isJSON: Bool
  /// The content identifier of a FairPlay payload: the decoded JSON, or the text if the asset id is not JSON.
  package var contentIdentifier: [UInt8] { isJSON ? id.decoded ?? id.text : id.text }
}

extension AssetID {
  package func read() -> Asset {
    guard let root = decoded?.withUnsafeBufferPointer({ JSONDocument.parse($0) })?.root, root.isObject else {
      return Asset(id: self, contentID: text, keyID: nil, iv: nil, isJSON: false)
    }
    let contentID = root.member("ContentId")?.withString { Array($0) } ?? []
    let keyID = root.member("KeyId")?.withString { UUIDBytes(text: $0) } ?? nil
    let iv =
      root.member("IV")?.withString { text in
        Base64.decode(text).flatMap { $0.count == 16 ? $0.withBytes { Array($0) } : nil }
      } ?? nil
    return Asset(id: self, contentID: contentID.isEmpty ? text : contentID, keyID: keyID, iv: iv, isJSON: true)
  }
}

extension ContentIdentifier {
  package func bytes(
    of url: UnsafeBufferPointer<UInt8>, scheme: [UInt8] = AssetID.fairPlayScheme
  ) throws(AssetID.Refusal) -> [UInt8] {
    try bytes(of: url, scheme: scheme, isJSONObject: isJSONObject)
  }
}
