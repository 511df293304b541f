/// Reads host names and address literals.
enum HostName {
  /// Returns the index at which the host ends: after the `]` of a literal in brackets, otherwise at the first colon. If
  /// there is no such byte, returns the end of the text.
  static func end(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Int {
    if text.first == 0x5B { return text.firstIndex(of: 0x5D).map { $0 + 1 } ?? text.endIndex }
    return text.firstIndex(of: 0x3A) ?? text.endIndex
  }

  /// Returns the host in lower case and without a final dot; nil unless it is an ASCII host name, a dotted quad or an
  /// IPv6 literal in brackets.
  static func parse(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> [UInt8]? {
    guard !text.isEmpty, text.count <= 254 else { return nil }
    var host = text.map(lowercased)
    if host[0] == 0x5B { return isIPv6Literal(host) ? host : nil }
    if host.last == 0x2E {
      host.removeLast()
      guard !isAddress(host) else { return nil }
    }
    guard host.count <= 253, labels(host).allSatisfy(isLabel) else { return nil }
    return isAddress(host) && !isDottedQuad(host) ? nil : host
  }

  /// Reads a port: 1 to 65535 in decimal, without leading zeros.
  static func port(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> UInt16? {
    guard let first = text.first, first != 0x30, text.count <= 5, text.allSatisfy(isDigit) else { return nil }
    return UInt16(exactly: text.reduce(UInt32(0)) { $0 * 10 + UInt32($1 & 15) })
  }

  /// Returns whether a resolver would read the host as an address: it is in brackets, or its last label is a number
  /// (`10`, `0x7f.1`, `127.1`).
  static func isAddress(_ host: [UInt8]) -> Bool {
    if host.first == 0x5B { return true }
    guard let last = labels(host).last, !last.isEmpty else { return false }
    if last.allSatisfy(isDigit) { return true }
    return last.count >= 2 && last.first == 0x30 && last.dropFirst().first == 0x78
      && last.dropFirst(2).allSatisfy { hexValue($0) != nil }
  }

  static func hasPunycode(_ host: ArraySlice<UInt8>) -> Bool {
    host.split(separator: 0x2E).contains { $0.count >= 4 && $0.starts(with: [0x78, 0x6E, 0x2D, 0x2D] as [UInt8]) }
  }

  private static func labels(_ host: [UInt8]) -> [ArraySlice<UInt8>] {
    host.split(separator: 0x2E, omittingEmptySubsequences: false)
  }

  private static func isLabel(_ label: ArraySlice<UInt8>) -> Bool {
    guard let first = label.first, let last = label.last, label.count <= 63, first != 0x2D, last != 0x2D else {
      return false
    }
    return label.allSatisfy { ($0 >= 0x61 && $0 <= 0x7A) || isDigit($0) || $0 == 0x2D || $0 == 0x5F }
  }

  private static func isDottedQuad(_ host: [UInt8]) -> Bool {
    let parts = labels(host)
    return parts.count == 4
      && parts.allSatisfy { part in
        guard !part.isEmpty, part.count <= 3, part.allSatisfy(isDigit), part.count == 1 || part.first != 0x30 else {
          return false
        }
        return part.reduce(0) { $0 * 10 + Int($1 & 15) } <= 255
      }
  }

  /// Returns whether the text is hex digits, colons and dots in brackets. libcurl checks whether it is really an
  /// address.
  private static func isIPv6Literal(_ host: [UInt8]) -> Bool {
    guard host.count >= 4, host.last == 0x5D else { return false }
    let inner = host.dropFirst().dropLast()
    return inner.contains(0x3A) && inner.allSatisfy { hexValue($0) != nil || $0 == 0x3A || $0 == 0x2E }
  }
}
