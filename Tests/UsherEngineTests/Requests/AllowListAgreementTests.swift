import Testing

@testable import UsherCore
@testable import UsherEngine

/// The host that the allow-list reads from a URL must be the host to which libcurl connects.
@Suite struct AllowListAgreementTests {
  private func listed(_ url: String) -> AllowList.Target? { withBytes(bytes(url)) { try? AllowList.target(of: $0) } }

  private func asked(_ url: String) -> [UInt8]? {
    URLText(bytes(url)).flatMap { try? Endpoint.checked($0, insecure: true) }?.origin
  }

  private func origin(_ target: AllowList.Target, dot: Bool = false) -> [UInt8] {
    [target.isHTTPS ? 0x73 : 0x70] + target.host + (dot ? [0x2E] : []) + [
      0x3A, UInt8(target.port >> 8), UInt8(target.port & 255)
    ]
  }

  @Test(arguments: [
    "https://keys.example.com/a?b", "https://keys.example.com", "http://keys.example.com?x=/",
    "HTTPS://KEYS.example.com:8443/",
    "https://keys.example.com.:8443/", "https://10.0.0.1/", "http://127.0.0.1:8080/x",
    "https://xn--bcher-kva.example/", "https://a_b.example.com/", "https://[::1]:8443/", "https://[2001:db8::1]/",
    "https://keys.example.com/@x:1/"
  ])
  func url_thatIsRead_hasTheSameOrigin(url: String) {
    guard let target = listed(url) else {
      Issue.record("refused")
      return
    }
    let asked = asked(url)
    #expect(asked == origin(target) || asked == origin(target, dot: true))
  }

  /// These URLs look harmless. But for some of them libcurl connects to 127.0.0.1 or evil.example, and it refuses the
  /// others.
  @Test(arguments: [
    "https://2130706433/", "https://0x7f.1/", "https://0x7f000001/", "https://017700000001/", "https://127.1/",
    "https://keys.example.com@evil.example/",
    "https://%31%32%37.0.0.1/", "https:keys.example.com/",
    "https:/evil.example/", "https:///evil.example/", "https://keys.example.com:@evil.example/",
    "https://evil.example\\@keys.example.com/",
    "https://[::1%25lo]/", "https://127.0.0.1./"
  ])
  func url_thatMisleads_isRefused(url: String) {
    #expect(listed(url) == nil)
  }

  @Test func randomURLs_thatAreRead_haveTheSameOrigin() {
    var dice = Dice(61)
    let pieces = [
      "keys", "example", "com", ".", ".", "-", "_", "1", "0x7f", "127.0.0.1", "255", "xn--bcher-kva", ":", ":443",
      ":80", ":8443", "/", "?", "@", "%41",
      "[::1]", "[2001:db8::1]", "A", "//", ";", "!", "$", "~", "*", "'"
    ]
    var (agreed, read) = (0, 0)
    for _ in 0..<60_000 {
      let url =
        dice.pick(["https://", "http://", "HTTPS://"])
        + (0..<Int(1 + dice.upTo(7))).map { _ in dice.pick(pieces) }.joined()
      guard let target = listed(url) else { continue }
      read += 1
      guard let asked = asked(url) else { continue }
      #expect(asked == origin(target) || asked == origin(target, dot: true), "\(url)")
      agreed += 1
    }
    #expect(read > 1000 && agreed > 1000, "too few were read to mean anything: \(read), \(agreed)")
  }
}
