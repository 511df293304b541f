/// The hosts to which the library may send requests if the URL comes from content (`skd:` URL, playlist, manifest).
///
/// A pattern is `host`, `host:port` or `host:*`. The host of a pattern is a name, `*.` with a name after it, or an
/// address literal exactly as URLs write it. `*.name` matches every name below `name`, but not `name` itself. A pattern
/// without a port means the default port of the scheme. The list reads URLs more strictly than libcurl: it refuses any
/// text that libcurl could read as another host.
package struct AllowList: Sendable {
  package enum Refusal: Error, Equatable, Sendable {
    /// The text does not begin with `http://` or `https://`, has more than 8192 bytes, or has a byte that the list
    /// refuses: a blank, `\`, `#`, a control character, or a byte that is not ASCII.
    case notURL
    case userInfo
    /// The host is not a name: empty, too long, percent-encoded, or with a byte that names cannot have.
    case badHost
    case badPort
    case notListed
  }

  package struct Target: Equatable, Sendable {
    package let isHTTPS: Bool
    /// The host in lower case, without a final dot.
    package let host: [UInt8]
    package let port: UInt16
  }

  private struct Pattern: Sendable {
    let host: [UInt8]
    let isWildcard: Bool
    /// The port that the pattern allows; nil if it allows only the default port of the scheme.
    let port: UInt16?
    let isAnyPort: Bool
  }

  private var patterns: [Pattern] = []

  package init() {}

  package var isEmpty: Bool { patterns.isEmpty }

  /// Adds a pattern. Returns false if the text is not a valid pattern; `*` and `*.com` are not valid.
  package mutating func add(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    guard text.count <= 300 else { return false }
    let isWildcard = text.count > 2 && text[0] == 0x2A && text[1] == 0x2E
    let rest = text[(isWildcard ? 2 : 0)...]
    let hostEnd = HostName.end(rest)
    guard let host = HostName.parse(rest[..<hostEnd]), !isWildcard || (host.contains(0x2E) && !HostName.isAddress(host))
    else { return false }
    var port: UInt16?
    var isAnyPort = false
    if hostEnd < text.count {
      let portText = text[(hostEnd + 1)...]
      isAnyPort = portText.count == 1 && portText.first == 0x2A
      port = HostName.port(portText)
      guard text[hostEnd] == 0x3A, isAnyPort || port != nil else { return false }
    }
    patterns.append(Pattern(host: host, isWildcard: isWildcard, port: port, isAnyPort: isAnyPort))
    return true
  }

  package func check(_ url: UnsafeBufferPointer<UInt8>) throws(Refusal) -> Target {
    let target = try AllowList.target(of: url)
    for pattern in patterns where pattern.isAnyPort || target.port == pattern.port ?? (target.isHTTPS ? 443 : 80) {
      if pattern.isWildcard ? AllowList.isBelow(target.host, pattern.host) : target.host == pattern.host {
        return target
      }
    }
    throw .notListed
  }

  /// Returns whether `host` is a name below `parent`. Hosts with internationalised (punycode) labels below `parent` do
  /// not match: each needs a separate pattern.
  private static func isBelow(_ host: [UInt8], _ parent: [UInt8]) -> Bool {
    guard host.count > parent.count + 1, host[host.count - parent.count - 1] == 0x2E,
      host[(host.count - parent.count)...] == parent[...]
    else { return false }
    return !HostName.isAddress(host) && !HostName.hasPunycode(host[..<(host.count - parent.count - 1)])
  }

  package static func target(of url: UnsafeBufferPointer<UInt8>) throws(Refusal) -> Target {
    guard url.count <= 8192, url.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x5C && $0 != 0x23 }) else {
      throw .notURL
    }
    let isHTTPS: Bool
    let start: Int
    if starts(url, "https://") {
      (isHTTPS, start) = (true, 8)
    } else if starts(url, "http://") {
      (isHTTPS, start) = (false, 7)
    } else {
      throw .notURL
    }
    let rest = url[start...]
    let authority = rest[..<(rest.firstIndex { $0 == 0x2F || $0 == 0x3F } ?? rest.endIndex)]
    guard !authority.contains(0x40) else { throw .userInfo }
    let hostEnd = HostName.end(authority)
    guard let host = HostName.parse(authority[..<hostEnd]) else { throw .badHost }
    guard hostEnd < authority.endIndex else { return Target(isHTTPS: isHTTPS, host: host, port: isHTTPS ? 443 : 80) }
    guard authority[hostEnd] == 0x3A, let port = HostName.port(authority[(hostEnd + 1)...]) else { throw .badPort }
    return Target(isHTTPS: isHTTPS, host: host, port: port)
  }

  private static func starts(_ url: UnsafeBufferPointer<UInt8>, _ word: StaticString) -> Bool {
    word.withUTF8Buffer { equalIgnoringCase(url.prefix($0.count), $0) }
  }
}
