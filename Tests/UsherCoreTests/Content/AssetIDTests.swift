import Testing

@testable import UsherCore

@Suite struct AssetIDTests {
  private func asset(_ url: String, scheme: String = "skd") -> AssetID? {
    withBytes(url) { try? AssetID($0, scheme: bytes(scheme)) }
  }

  @Test(arguments: [
    ("skd://movie-1", "movie-1"), ("SKD://movie-1", "movie-1"), ("sKd:movie-1", "movie-1"), ("movie-1", "movie-1"),
    ("skd://movie-1/", "movie-1"),
    ("skd://a/b//", "a/b/"), ("skd:///a", "/a"), ("skd:/a", "/a"), ("skd://a?b#c", "a"), ("skd://a#b?c", "a"),
    ("skd://a/?b/", "a"),
    ("skd://a%20b%2Fc%2f/", "a b/c/"), ("skd://%zz%4", "%zz%4"), ("skd://UPPER.Case", "UPPER.Case"),
    ("skdx://a", "skdx://a"), ("sk://a", "sk://a"),
    ("skd", "skd"), ("http://h/p", "http://h/p"), ("skd://skd://a", "skd://a"), ("skd://a%3Fb%23c", "a?b#c"),
    ("skd:skd:a", "skd:a"), ("skd://a+b", "a+b")
  ])
  func url_isCutAndDecoded(url: String, expected: String) {
    #expect(asset(url)?.text == bytes(expected))
  }

  private func refusal(_ url: [UInt8]) -> AssetID.Refusal? {
    withBytes(url) { url in
      do throws(AssetID.Refusal) { _ = try AssetID(url) } catch { return error }
      return nil
    }
  }

  @Test(arguments: ["", "skd:", "skd://", "skd:///", "skd://?a", "skd://#a", "skd:///?a", "?", "#", "/"])
  func url_namingNothing_isRefused(url: String) {
    #expect(refusal(bytes(url)) == .empty)
  }

  @Test func url_tooLong_isRefused() {
    #expect(refusal([UInt8](repeating: 0x61, count: AssetID.mostBytes)) == nil)
    #expect(refusal([UInt8](repeating: 0x61, count: AssetID.mostBytes + 1)) == .tooLong)
    #expect(refusal(bytes("skd://a?") + [UInt8](repeating: 0x61, count: 1_000_000)) == .tooLong)
  }

  @Test(arguments: ["{\"ContentId\":\"a\"}", "{\"ContentId\":\"ab\"}", "{\"ContentId\":\"a\",\"IV\":\"??>>\"}"])
  func base64_inEveryVariant_isDecoded(json: String) {
    for alphabet in [Base64.Alphabet.standard, .url] {
      for padded in [true, false] {
        var text = [UInt8](repeating: 0, count: Base64.encodedCount(json.utf8.count, padded: padded))
        withBytes(json) { from in
          text.withUnsafeMutableBufferPointer { Base64.encode(from, into: $0, alphabet: alphabet, padded: padded) }
        }
        let plain = String(decoding: text, as: UTF8.self)
        let coded = plain.replacing("/", with: "%2F").replacing("=", with: "%3d").replacing("+", with: "%2B")
        for url in ["skd://\(plain)", "skd:\(plain)", "skd://\(plain)/", "skd://\(plain)?x=1", plain, "Skd://\(coded)"]
        {
          #expect(asset(url)?.decoded == bytes(json), "\(url)")
        }
      }
    }
  }

  @Test func text_thatIsNoBase64_hasNothingDecoded() {
    for url in ["skd://movie_1!", "skd://a", "skd://====", "skd://a.b"] {
      #expect(asset(url) != nil && asset(url)?.decoded == nil)
    }
  }

  @Test func scheme_ofTheHost_isUsedInstead() {
    #expect(asset("fairplay://x", scheme: "FAIRPLAY")?.text == bytes("x"))
    #expect(asset("skd://x", scheme: "fairplay")?.text == bytes("skd://x"))
    #expect(asset("skd://x", scheme: "")?.text == bytes("skd://x"))
  }

  @Test func hostileURL_neverTraps() {
    var dice = Dice(12)
    for _ in 0..<20_000 {
      let url = hostile(
        &dice,
        [
          "skd", ":", "//", "/", "?", "#", "%", "%4", "%41", "%00", "=", "e30", "eyJhIjoxfQ==", "-_", ";", "@", "[",
          "]", "ä"
        ])
      let found = withBytes(url) { try? AssetID($0) }
      #expect((found == nil) == (refusal(url) != nil))
      if let found {
        #expect(!found.text.isEmpty && found.text.count <= url.count && (found.decoded?.count ?? 0) <= found.text.count)
      }
    }
  }
}
