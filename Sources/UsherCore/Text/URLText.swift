/// A URL as text: joins paths and adds to queries without changing the rest. libcurl decides whether the text is a
/// valid URL.
package struct URLText: Equatable, Sendable {
  package enum VersionRule: Sendable { case auto, always, never }

  /// The URL without its query.
  package private(set) var base: [UInt8]
  private var query: [UInt8]

  /// Fails if the text is empty or has a fragment, spaces or control characters.
  package init?(_ text: [UInt8]) {
    guard !text.isEmpty, !text.contains(where: { $0 <= 0x20 || $0 == 0x7F || $0 == 0x23 }) else { return nil }
    let end = text.firstIndex(of: 0x3F) ?? text.count
    base = Array(text[..<end])
    query = Array(text[end...].dropFirst())
  }

  package var bytes: [UInt8] { query.isEmpty ? base : base + [0x3F] + query }

  /// Returns the URL with `path` appended before its query.
  package func joining(_ path: StaticString) -> URLText {
    var joined = trimmed()
    joined.base.append(0x2F)
    path.withUTF8Buffer { joined.base.append(contentsOf: $0) }
    return joined
  }

  /// Returns the URL with `name=value` added to its query.
  package func adding(_ pair: StaticString) -> URLText {
    var copy = self
    if !copy.query.isEmpty { copy.query.append(0x26) }
    pair.withUTF8Buffer { copy.query.append(contentsOf: $0) }
    return copy
  }

  /// Returns the URL without slashes at the end of its path, and with `version` as an additional last segment of the
  /// path. `never` adds no version; `auto` adds it only if the path does not already end in a version.
  package func versioned(_ version: [UInt8], _ rule: VersionRule) -> URLText {
    var copy = trimmed()
    if rule == .always || (rule == .auto && !copy.endsInVersion) {
      copy.base.append(0x2F)
      copy.base += version
    }
    return copy
  }

  private func trimmed() -> URLText {
    var copy = self
    while copy.base.last == 0x2F { copy.base.removeLast() }
    return copy
  }

  /// Whether the last segment is `v` followed by digits.
  private var endsInVersion: Bool {
    let segment = base.split(separator: 0x2F).last ?? []
    guard let first = segment.first, first == 0x76 || first == 0x56, segment.count > 1 else { return false }
    return segment.dropFirst().allSatisfy(isDigit)
  }
}
