/// Where a licence reply has its session fields: the paths of JSON members, and a header.
package struct SessionFieldNames {
  /// Where the JSON has the session token, the period and the mode. Each is a path: the names of members, outermost
  /// first. Each name ends in NUL.
  package var token: [[UInt8]] = [Array("sessionToken".utf8) + [0]]
  package var period: [[UInt8]] = [Array("heartbeat".utf8) + [0]]
  package var enforced: [[UInt8]] = [Array("sessionDrmEnforced".utf8) + [0]]
  /// The name of the reply header that has the token if the body has none; NUL-terminated.
  package var header: [UInt8]?
  package init() {}

  /// Reads "a.b.c" as a path; nil if a name is empty or has a NUL, or if there are more than 16 names.
  package static func path(_ text: [UInt8]) -> [[UInt8]]? {
    let parts = text.split(separator: 0x2E, omittingEmptySubsequences: false)
    guard !parts.isEmpty, parts.count <= 16, parts.allSatisfy({ !$0.isEmpty && !$0.contains(0) }) else { return nil }
    return parts.map { Array($0) + [0] }
  }
}
