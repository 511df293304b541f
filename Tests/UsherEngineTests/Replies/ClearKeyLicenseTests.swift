import Testing

@testable import UsherCore
@testable import UsherEngine

@Suite struct ClearKeyLicenseTests {
  /// Reads a licence. Returns one text for each key: the last byte of the key id, the last byte of the key, and the
  /// sizes of both. If the reader refuses the licence, returns the text of the fault.
  private func read(_ text: String) -> [String] {
    var found: [String] = []
    do throws(ClearKeyLicense.Fault) {
      try Array(text.utf8).withUnsafeBufferPointer { (text) throws(ClearKeyLicense.Fault) in
        try ClearKeyLicense.read(text) { id, key in found.append("\(id[15]) \(key[15]) \(id.count) \(key.count)") }
      }
      return found
    } catch { return [String(decoding: error.words, as: UTF8.self)] }
  }
  private let one = "\"kid\":\"AAAAAAAAAAAAAAAAAAAAAQ\",\"k\":\"AAAAAAAAAAAAAAAAAAAAAg\""

  @Test func licence_givesItsKeysInOrder() {
    let two = "{\"k\":\"AAAAAAAAAAAAAAAAAAAABA==\",\"alg\":\"A128KW\",\"kid\":\"AAAAAAAAAAAAAAAAAAAAAw\"}"
    let text =
      "{\"type\":\"temporary\",\"new\":{\"a\":[1]},\"keys\":[{\"kty\":\"oct\",\(one)},{\"kty\":\"RSA\"},\(two)]}"
    #expect(read(text) == ["1 2 16 16", "3 4 16 16"])
    #expect(read("\u{FEFF}" + text).count == 2)
  }

  @Test func licence_thatIsMalformed_isExplained() {
    let cases = [
      ("", "the licence is not JSON"), ("<html>", "the licence is not JSON"),
      ("[]", "the licence has no array \"keys\""),
      ("{\"keys\":{}}", "the licence has no array \"keys\""), ("{\"keys\":[]}", "the licence has no keys"),
      ("{\"keys\":[{\"kty\":\"RSA\"}]}", "the licence has no keys"), ("{\"keys\":[1]}", "keys[0]: not an object"),
      ("{\"keys\":[{\(one)},{\"kid\":1}]}", "keys[1].kid: missing, or no text"),
      ("{\"keys\":[{\"kid\":\"AAAAAAAAAAAAAAAAAAAAAQ\"}]}", "keys[0].k: missing, or no text"),
      ("{\"keys\":[{\"kid\":\"AA.A\",\"k\":\"\"}]}", "keys[0].kid: not base64url"),
      ("{\"keys\":[{\"kid\":\"AAAA\"}]}", "keys[0].kid: 3 bytes, but key ids and keys have 16")
    ]
    for (text, words) in cases { #expect(read(text) == [words]) }
  }

  @Test func request_isWhatChromiumSends() {
    let ids = [UInt8](repeating: 0xFF, count: 16) + [UInt8](repeating: 0, count: 16)
    let made = ids.withUnsafeBufferPointer { ClearKeyRequest.make($0) }
    #expect(
      String(decoding: made, as: UTF8.self)
        == "{\"kids\":[\"_____________________w\",\"AAAAAAAAAAAAAAAAAAAAAA\"],\"type\":\"temporary\"}")
  }
}
