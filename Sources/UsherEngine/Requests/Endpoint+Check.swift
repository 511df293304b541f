internal import CCurl
package import UsherCore

extension Endpoint {
  /// Accepts an absolute https URL with a host, and an http URL of a loopback host. If `insecure` is true, an http URL
  /// may have any host. Returns nil for every other text, and throws if libcurl gets no memory. (This is no failable
  /// initialiser, because in Embedded Swift a failable initialiser that fails leaks its object.)
  package static func checked(_ text: URLText, insecure: Bool) throws(UsherError) -> Endpoint? {
    let url = text.bytes + [0]
    guard url.count <= 8193 else { return nil }
    var https: Int32 = 0
    var port: Int32 = 0
    var host = [CChar](repeating: 0, count: 256)
    var parsed: OpaquePointer?
    let result = url.withUnsafeBytes {
      curl_shim_split_url($0.baseAddress?.assumingMemoryBound(to: CChar.self), &https, &host, &port, &parsed)
    }
    var unused: OpaquePointer? = parsed
    defer { curl_url_cleanup(unused) }
    if result == -2 { throw UsherError(.system) }
    guard result == 0 else { return nil }
    let name = host.prefix { $0 != 0 }.map { lowercased(UInt8(bitPattern: $0)) }
    let isLoopback = https == 0 && isLoopback(name)
    guard !name.isEmpty, https != 0 || insecure || isLoopback else { return nil }
    let number = [UInt8(truncatingIfNeeded: port >> 8), UInt8(truncatingIfNeeded: port)]
    unused = nil
    return Endpoint(
      url: url, origin: [https != 0 ? 0x73 : 0x70] + name + [0x3A] + number, isLoopback: isLoopback,
      name: isLoopback ? nil : HostAndPort.named(name, port: Int(port)), parsed: parsed)
  }

  private static func isLoopback(_ host: [UInt8]) -> Bool {
    if host == Array("localhost".utf8) || host == Array("[::1]".utf8) || host == Array("::1".utf8) { return true }
    let parts = host.split(separator: 0x2E, omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == Array("127".utf8)[...] && parts.allSatisfy(isOctet)
  }

  private static func isOctet(_ part: ArraySlice<UInt8>) -> Bool {
    guard !part.isEmpty, part.count <= 3, part.allSatisfy(isDigit) else { return false }
    return part.reduce(0) { $0 * 10 + Int($1 & 15) } <= 255
  }
}
