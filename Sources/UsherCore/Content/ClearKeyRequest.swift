/// The licence request of W3C Clear Key.
package enum ClearKeyRequest {
  /// Returns `{"kids":["…"],"type":"temporary"}`.
  /// - Parameters:
  ///   - ids: the key ids, 16 bytes each.
  package static func make(_ ids: UnsafeBufferPointer<UInt8>) -> [UInt8] {
    var text = [UInt8](repeating: 0, count: Base64.encodedCount(16, padded: false))
    var made = TextLine()
    made.add("{\"kids\":[")
    for start in stride(from: 0, through: ids.count - 16, by: 16) {
      text.withUnsafeMutableBufferPointer {
        Base64.encode(UnsafeBufferPointer(rebasing: ids[start..<(start + 16)]), into: $0, alphabet: .url, padded: false)
      }
      made.add(start == 0 ? "\"" : ",\"")
      for byte in text { made.add(byte) }
      made.add("\"")
    }
    made.add("],\"type\":\"temporary\"}")
    return made.bytes
  }
}
