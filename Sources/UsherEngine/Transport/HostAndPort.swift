internal import UsherCore

/// The name of a server, which the library must look up before the first connection, and the port.
package final class HostAndPort: Sendable {
  /// `host:port`, as in CURLOPT_RESOLVE.
  package let text: [UInt8]
  /// The host name, NUL-terminated.
  let host: [UInt8]

  private init(text: [UInt8], host: [UInt8]) {
    self.text = text
    self.host = host
  }

  /// Returns nil if no lookup is needed: the host is an address or this machine. Also returns nil if the name is not
  /// ASCII or ends with a dot: libcurl changes such a name first, so libcurl must look it up.
  package static func named(_ host: [UInt8], port: Int) -> HostAndPort? {
    guard let last = host.last, last != 0x2E, host[0] != 0x5B, host.allSatisfy({ $0 < 0x80 }),
      !host.contains(0x3A), !host.allSatisfy({ isDigit($0) || $0 == 0x2E })
    else { return nil }
    let local = Array("localhost".utf8)
    if host == local || host.suffix(local.count + 1) == ([0x2E] + local)[...] { return nil }
    return HostAndPort(text: host + [0x3A] + Array(String(port).utf8), host: host + [0])
  }

  static func == (left: HostAndPort, right: HostAndPort) -> Bool { left === right || left.text == right.text }
}
