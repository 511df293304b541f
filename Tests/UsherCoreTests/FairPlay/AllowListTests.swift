import Testing

@testable import UsherCore

@Suite struct AllowListTests {
  private func list(_ patterns: [String]) -> AllowList {
    var list = AllowList()
    for pattern in patterns { #expect(withBytes(pattern) { list.add($0) }, "\(pattern)") }
    return list
  }

  /// The reason why the list refuses the URL; nil: the list allows the URL.
  private func refusal(_ list: AllowList, _ url: [UInt8]) -> AllowList.Refusal? {
    withBytes(url) { url in
      do throws(AllowList.Refusal) { _ = try list.check(url) } catch { return error }
      return nil
    }
  }
  private func refusal(_ list: AllowList, _ url: String) -> AllowList.Refusal? { refusal(list, bytes(url)) }

  @Test(arguments: [
    "https://keys.example.com", "https://keys.example.com/", "https://keys.example.com/a?b@c:d",
    "https://keys.example.com?x", "HTTPS://KEYS.Example.COM/",
    "https://keys.example.com:443/",
    "https://keys.example.com./", "http://keys.example.com/", "http://keys.example.com:80/",
    "https://a.tenant.example.org/",
    "https://a.b.tenant.example.org:443", "https://fp.example.net:80/rights/?T=x",
    "https://any.example.net:8443/", "https://any.example.net:1", "https://10.0.0.1/", "https://[2001:DB8::1]/",
    "https://xn--bcher-kva.example/",
    "https://a_b.tenant.example.org/",
    "https://keys.example.com/a/../b//c", "https://keys.example.com/https://other.example/"
  ])
  func url_ofAListedHost_isAllowed(url: String) {
    let hosts = list([
      "Keys.Example.com", "*.tenant.example.org", "fp.example.net:80", "any.example.net:*", "10.0.0.1", "[2001:db8::1]",
      "xn--bcher-kva.example"
    ])
    #expect(refusal(hosts, url) == nil)
  }

  @Test(arguments: [
    "https://other.example.com/", "https://example.com/", "https://keys.example.com.evil.example/",
    "https://xkeys.example.com/",
    "https://tenant.example.org/", "https://xtenant.example.org/",
    "https://keys.example.com:8443/", "http://keys.example.com:443/", "https://keys.example.com:80/",
    "https://fp.example.net/",
    "https://fp.example.net:443/", "https://10.0.0.2/", "https://[2001:db8::2]/",
    "https://[2001:db8:0::1]/", "https://xn--a.tenant.example.org/", "https://a.xn--b.tenant.example.org/",
    "https://localhost/", "https://127.0.0.1/",
    "https://[::1]/", "https://tenant.example.org."
  ])
  func url_ofAnotherHost_isNotListed(url: String) {
    let hosts = list(["keys.example.com", "*.tenant.example.org", "fp.example.net:80", "10.0.0.1", "[2001:db8::1]"])
    #expect(refusal(hosts, url) == .notListed)
  }

  @Test(arguments: [
    ("", AllowList.Refusal.notURL), ("keys.example.com", .notURL), ("//keys.example.com/", .notURL),
    ("https:keys.example.com", .notURL),
    ("https:/keys.example.com", .notURL),
    ("https:///keys.example.com/", .badHost), ("https://", .badHost), ("https:///", .badHost), ("https://?x", .badHost),
    ("ftp://keys.example.com/", .notURL),
    ("skd://keys.example.com/", .notURL),
    ("file:///etc/passwd", .notURL), (" https://keys.example.com/", .notURL), ("https://keys.example.com/ ", .notURL),
    ("https://keys.example.com/\n", .notURL), ("https://keys.exam\tple.com/", .notURL),
    ("https://keys.example.com\r\nHost: x", .notURL), ("https://keys.example.com\u{0}.evil.example/", .notURL),
    ("https://evil.example\\@keys.example.com/", .notURL),
    ("https://keys.example.com\\.evil.example/", .notURL), ("https://keys.example.com/\\x", .notURL),
    ("https://keys.example.com/#x", .notURL),
    ("https://keys.example.com#@evil.example/", .notURL),
    ("https://bücher.example/", .notURL), ("https://keys。example.com/", .notURL),
    ("https://user@keys.example.com/", .userInfo),
    ("https://keys.example.com@evil.example/", .userInfo),
    ("https://keys.example.com:443@evil.example/", .userInfo), ("https://@keys.example.com/", .userInfo),
    ("https://%6Beys.example.com/", .badHost),
    ("https://keys.example.com%2f.evil.example/", .badHost),
    ("https://keys.example.com%00/", .badHost), ("https://keys.example.com../", .badHost),
    ("https://keys..example.com/", .badHost),
    ("https://.keys.example.com/", .badHost), ("https://./", .badHost),
    ("https://-keys.example.com/", .badHost), ("https://keys-.example.com/", .badHost),
    ("https://keys.example.com;x/", .badHost),
    ("https://keys.example.com,x/", .badHost), ("https://*.example.com/", .badHost),
    ("https://keys.example.com:/", .badPort), ("https://keys.example.com:0/", .badPort),
    ("https://keys.example.com:0443/", .badPort),
    ("https://keys.example.com:65536/", .badPort),
    ("https://keys.example.com:99999999999/", .badPort), ("https://keys.example.com:+443/", .badPort),
    ("https://keys.example.com:443:443/", .badPort),
    ("https://keys.example.com:x/", .badPort),
    ("https://2130706433/", .badHost), ("https://0x7f.1/", .badHost), ("https://0x7f000001/", .badHost),
    ("https://017700000001/", .badHost),
    ("https://127.1/", .badHost), ("https://127.0.0.1./", .badHost),
    ("https://127.0.0.01/", .badHost), ("https://127.0.0.256/", .badHost), ("https://1.2.3.4.5/", .badHost),
    ("https://keys.example.com.1/", .badHost),
    ("https://a.0x/", .badHost), ("https://0X7F.1/", .badHost),
    ("https://[::1/", .badHost), ("https://[]/", .badHost), ("https://[::1%25eth0]/", .badHost),
    ("https://[keys.example.com]/", .badHost),
    ("https://[::1]x/", .badPort), ("https://[::1].example.com/", .badPort),
    ("https://::1/", .badHost), ("https://]/", .badHost)
  ])
  func url_thatMayMislead_isRefused(url: String, expected: AllowList.Refusal) {
    let hosts = list(["keys.example.com", "*.example.com", "evil.example:*", "127.0.0.1", "[::1]"])
    #expect(refusal(hosts, url) == expected)
  }

  @Test(arguments: [
    "", "*", "*.", "*.com", "*.1.2", "*.10.0.0.1", "*.[::1]", "a.*.example.com", "*example.com", "**.example.com",
    "https://keys.example.com",
    "keys.example.com/", "keys.example.com:", "keys.example.com:0",
    "keys.example.com:65536", "keys.example.com:443x", "keys.example.com:**", "user@keys.example.com",
    "keys example.com", "bücher.example", "2130706433",
    "0x7f.1", "127.1", "[::1", "[::1]x", "%41.example.com",
    "keys..example.com", ".", "\u{0}"
  ])
  func pattern_thatIsNone_isRefused(pattern: String) {
    var list = AllowList()
    #expect(!withBytes(pattern) { list.add($0) } && list.isEmpty)
  }

  @Test func pattern_withDotOrPort_isNormalised() {
    #expect(refusal(list(["keys.example.com."]), "https://keys.example.com/") == nil)
    #expect(refusal(list(["*.example.com:8443"]), "https://a.example.com:8443/") == nil)
    #expect(refusal(list(["*.example.com:8443"]), "https://a.example.com/") == .notListed)
    #expect(refusal(list(["[::1]:8443"]), "https://[::1]:8443/") == nil)
    #expect(refusal(list(["*.xn--bcher-kva.example"]), "https://a.xn--bcher-kva.example/") == nil)
  }

  @Test func emptyList_allowsNothing() {
    #expect(refusal(AllowList(), "https://keys.example.com/") == .notListed)
  }

  @Test func target_isToldAsItWillBeAsked() throws {
    let found = withBytes("HTTPS://Keys.Example.com.:8443/x") { try? AllowList.target(of: $0) }
    #expect(found == AllowList.Target(isHTTPS: true, host: bytes("keys.example.com"), port: 8443))
  }

  @Test func longURLs_areRefusedOrRead() {
    let hosts = list(["keys.example.com"])
    #expect(refusal(hosts, bytes("https://keys.example.com/") + [UInt8](repeating: 0x61, count: 8000)) == nil)
    #expect(refusal(hosts, bytes("https://keys.example.com/") + [UInt8](repeating: 0x61, count: 1_000_000)) == .notURL)
    #expect(
      refusal(hosts, bytes("https://") + [UInt8](repeating: 0x61, count: 64) + bytes(".example.com/")) == .badHost)
    #expect(refusal(hosts, bytes("https://") + bytes(String(repeating: "a.", count: 127)) + bytes("/")) == .notListed)
    #expect(refusal(hosts, bytes("https://") + bytes(String(repeating: "a.", count: 128)) + bytes("/")) == .badHost)
    var long = AllowList()
    #expect(!withBytes([UInt8](repeating: 0x61, count: 1_000_000)) { long.add($0) })
  }

  @Test func hostileURL_neverTrapsAndNeverLeavesTheList() {
    var dice = Dice(51)
    let hosts = list(["keys.example.com", "*.tenant.example.org", "127.0.0.1:*"])
    let pieces = [
      "https://", "http://", "keys.example.com", ".tenant.example.org", "evil.example", ":", "443", "@", "/", "?", "#",
      "\\", ".", "%2e", "[",
      "]", "::1", "127.0.0.1", "0x7f", "xn--", "\u{0}", "\n", " ", "ä"
    ]
    for _ in 0..<50_000 {
      let url = (dice.one(in: 3) ? [] : bytes("https://")) + hostile(&dice, pieces, upTo: 7)
      guard let target = withBytes(url, { try? hosts.check($0) }) else { continue }
      let host = String(decoding: target.host, as: UTF8.self)
      #expect(host == "keys.example.com" || host.hasSuffix(".tenant.example.org") || host == "127.0.0.1")
      #expect(!host.hasPrefix("xn--") && !host.contains(".xn--"))
    }
  }
}
