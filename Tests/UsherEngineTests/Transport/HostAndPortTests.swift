import TestSupport
import Testing

@testable import UsherCore
@testable import UsherEngine

/// Tests which host names the library itself looks up. For these names the library gives the addresses to libcurl. All
/// other names libcurl looks up itself.
@Suite struct HostAndPortTests {
  private func name(_ url: String) -> String? {
    let endpoint = URLText(Array(url.utf8)).flatMap { try? Endpoint.checked($0, insecure: true) }
    return (endpoint?.name).map { String(decoding: $0.text, as: UTF8.self) }
  }

  @Test(arguments: [
    ("https://head-end.example/a", "head-end.example:443"), ("http://Head-End.example/a", "head-end.example:80"),
    ("https://head-end.example:8443/", "head-end.example:8443"), ("https://a1.example?b", "a1.example:443"),
    ("https://1.2.3.4.example/", "1.2.3.4.example:443")
  ])
  func hostName_isLookedUp(url: String, expected: String) { #expect(name(url) == expected) }

  /// The library leaves these hosts to libcurl. Addresses and `localhost` need no lookup. The last two names need a
  /// lookup, but libcurl changes their spelling before it looks them up.
  @Test(arguments: [
    "https://192.0.2.1/", "https://[2001:db8::1]/", "http://localhost:8080/", "https://localhost/",
    "https://headend.localhost/", "https://head-end.example./", "https://k\u{F6}ln.example/"
  ])
  func otherHost_isLeftToLibcurl(url: String) { #expect(name(url) == nil) }
}
