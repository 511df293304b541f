/// Finds the URL of a licence token or of an entitlement server inside an `skd:` URL.
package enum TokenURL {
  package static var mostBytes: Int { 8192 }
  package static var https: [UInt8] { [0x68, 0x74, 0x74, 0x70, 0x73] }

  /// Returns the URL that an `skd:` URL contains; nil if it contains none. From `skd://host…` and `skd:host/…` the
  /// result is the same URL with the scheme `target`; from `skd:https://…` it is the text after `skd:`. The result
  /// keeps the port, the path and the query, but not the fragment. The caller must check the host against the
  /// allow-list.
  package static func url(
    in text: UnsafeBufferPointer<UInt8>, scheme: [UInt8] = AssetID.fairPlayScheme, target: [UInt8] = https
  ) -> [UInt8]? {
    let start = AssetID.start(in: text, scheme: scheme)
    guard start > 0, text.count <= mostBytes else { return nil }
    let rest = text[start..<(text[start...].firstIndex(of: 0x23) ?? text.endIndex)]
    let inner: StaticString = "https://"
    if inner.withUTF8Buffer({ equalIgnoringCase(rest.prefix($0.count), $0) }) {
      return rest.count > 8 ? Array(rest) : nil
    }
    guard let first = rest.first, first != 0x2F, first != 0x3F else { return nil }
    if text[start - 1] != 0x2F {
      // If no two slashes follow the scheme, the text is an address only if it has a path; otherwise it is a content
      // identifier.
      guard let slash = rest.firstIndex(of: 0x2F), rest[slash - 1] != 0x3A else { return nil }
    }
    return target + [0x3A, 0x2F, 0x2F] + rest
  }

  /// Returns the percent-decoded value of the first `name=` in the query: `cid` of an entitlement URL,
  /// `ExpressPlayToken` of a token URL.
  package static func queryValue(_ name: StaticString, in url: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    let visible = url[..<(url.firstIndex(of: 0x23) ?? url.endIndex)]
    guard url.count <= AssetID.mostBytes, let mark = visible.firstIndex(of: 0x3F) else { return nil }
    let count = name.utf8CodeUnitCount
    for pair in visible[(mark + 1)...].split(separator: 0x26)
    where pair.count > count && pair[pair.startIndex + count] == 0x3D {
      if name.withUTF8Buffer({ pair.prefix(count).elementsEqual($0) }) {
        return PercentCoding.decode(pair.dropFirst(count + 1))
      }
    }
    return nil
  }
}
