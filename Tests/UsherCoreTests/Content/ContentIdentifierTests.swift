import Testing

@testable import UsherCore

@Suite struct ContentIdentifierTests {
  private func found(_ variant: ContentIdentifier, _ url: String, isJSON: Bool = true) -> String? {
    withBytes(url) { try? variant.bytes(of: $0) { _ in isJSON } }.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test(arguments: [
    (ContentIdentifier.hostOnly, "skd://Host.Example/a?b", "Host.Example"), (.hostOnly, "skd://h:443/a", "h"),
    (.hostOnly, "skd://u:p@h:1", "h"),
    (.hostOnly, "skd://h%2Di?x", "h-i"), (.hostOnly, "skd://[::1]:80/x", "[::1]"), (.hostOnly, "skd:h#x", "h"),
    (.hostOnly, "h/x", "h"),
    (.hostOnly, "skd://h:x", "h:x"), (.everythingAfterScheme, "skd://a%20b/?c#d", "a%20b/?c#d"),
    (.everythingAfterScheme, "SKD:a", "a"),
    (.afterLastSemicolon, "skd://h/;a;b", "b"), (.afterLastSemicolon, "skd://h/a", "skd://h/a"),
    (.wholeURL, "skd://h/?a#b", "skd://h/?a#b"),
    (.decodedBase64, "skd://YWJj?x=/", "abc"), (.decodedBase64, "skd://a.b?x", "a.b"),
    (.decodedJSON, "skd://e30/", "{}")
  ])
  func variant_takesItsPart(variant: ContentIdentifier, url: String, expected: String) {
    #expect(found(variant, url) == expected)
  }

  @Test func decodedJSON_whereItIsNone_isTheText() {
    #expect(found(.decodedJSON, "skd://movie123?x", isJSON: false) == "movie123")
  }

  @Test(arguments: [
    (ContentIdentifier.hostOnly, "skd:///a"), (.hostOnly, "skd://@"), (.everythingAfterScheme, "skd://"),
    (.afterLastSemicolon, "skd://a;"), (.wholeURL, ""),
    (.decodedBase64, "skd://?"), (.decodedJSON, "")
  ])
  func variant_thatFindsNothing_isRefused(variant: ContentIdentifier, url: String) {
    #expect(found(variant, url) == nil)
  }

  @Test func hostileURL_neverTraps() {
    var dice = Dice(13)
    for _ in 0..<5000 {
      let url = hostile(&dice, ["skd:", "//", "/", "?", "#", "%", "%41", "@", ":", ":8", "[", "]", ";", "YWJj"])
      for variant in ContentIdentifier.allCases {
        if let part = withBytes(url, { try? variant.bytes(of: $0) { _ in true } }) {
          #expect(!part.isEmpty && part.count <= url.count)
        }
      }
    }
    let long = [UInt8](repeating: 0x3B, count: 1_000_000)
    for variant in ContentIdentifier.allCases {
      #expect(withBytes(long) { try? variant.bytes(of: $0) { _ in true } } == nil)
    }
  }
}
