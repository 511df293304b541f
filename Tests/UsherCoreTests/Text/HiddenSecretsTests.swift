import Testing

@testable import UsherCore

/// Secrets of every shape: a JWT, a UUID, 12 letters, a number, base64 with symbols.
private let shapes = [
  "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiI0ZjdhIn0.Qm9n_dXMtc2lnbmF0dXJl", "6f1c2f0e-6f5b-4a53-9d0e-1f2a3b4c5d6e",
  "qwhzmvkdjrtp", "8213904417765", "aB3+/xY9zQ==kLm", "{\"a\":\"tok\",\"b\":\"en.1\"}"
]

@Suite struct HiddenSecretsTests {
  private func shown(_ text: String, hiding tokens: [String]) -> String {
    withBytes(text) { HiddenSecrets(tokens.map { secret($0) }).cleaned($0) }
  }

  /// Ways in which a server may spell a text.
  private static let spellings: [(String, @Sendable (String) -> String)] = [
    ("as it is", { $0 }), ("upper case", { $0.uppercased() }), ("lower case", { $0.lowercased() }),
    ("percent-coded", { percent($0) }), ("twice percent-coded", { percent(percent($0)) }),
    ("three times percent-coded", { percent(percent(percent($0))) }),
    ("partly percent-coded", { coded($0, every: 3) { "%" + hex($0) } }),
    ("percent-coded in lower case", { percent($0).lowercased() }),
    ("partly twice percent-coded", { percent(coded($0, every: 5) { "%" + hex($0) }) }),
    ("JSON escapes", { coded($0, every: 1) { "\\u00" + hex($0) } }),
    ("some JSON escapes", { coded($0, every: 4) { "\\u00" + hex($0) } }),
    ("C escapes", { coded($0, every: 2) { "\\x" + hex($0) } }),
    ("HTML, decimal", { coded($0, every: 1) { "&#\($0);" } }),
    ("HTML, hex", { coded($0, every: 2) { "&#x" + hex($0) + ";" } }),
    ("groups of 8", { groups($0, 8, " ") }), ("groups of 4", { groups($0, 4, " ") }),
    ("single letters", { groups($0, 1, " ") }), ("dashes", { groups($0, 4, "-") }),
    ("lines", { groups($0, 6, "\r\n") }),
    ("escaped lines", { groups($0, 6, "\\n") }), ("commas and quotes", { groups($0, 5, "', '") }),
    ("percent-coded blanks", { groups($0, 5, "%20") }), ("zero-width spaces", { groups($0, 3, "\u{200B}") }),
    ("soft hyphens", { groups($0, 7, "\u{AD}") }), ("right to left", { "\u{202E}" + groups($0, 7, "\u{202C}") }),
    ("full-width letters", { fullWidth($0) }), ("hex", { text in text.utf8.map { hex($0) }.joined() }),
    ("hex with colons", { text in text.utf8.map { hex($0) }.joined(separator: ":").lowercased() }),
    ("base64", { base64($0) }), ("base64 after a name", { base64("t=" + $0) }),
    ("base64 of basic credentials", { base64("me:" + $0) }), ("URL base64, percent-coded", { percent(base64($0)) }),
    ("underscores", { groups($0, 8, "_") }), ("dots", { groups($0, 8, "...") }), ("its end", { "…" + $0.suffix(12) }),
    ("its start", { $0.prefix(12) + "…" })
  ]

  @Test(arguments: shapes, spellings.indices)
  func secret_inAnySpelling_isNotShown(token: String, spelling: Int) {
    let (name, spell) = Self.spellings[spelling]
    let message = shown("the token '\(spell(token))' is unknown", hiding: ["another token", token])
    let (said, kept) = (letters(message), letters(token))
    for at in 0...max(0, kept.count - 8) {
      let part = String(kept[at..<min(at + 8, kept.count)])
      #expect(!said.contains(part), "\(name): \(message)")
    }
    // The message must contain neither hex nor base64 of the secret.
    for form in [letters(token.utf8.map { hex($0) }.joined()), letters(base64(token))] {
      for at in 0..<(form.count - 11) {
        #expect(!said.contains(String(form[at..<(at + 12)])), "\(name): \(message)")
      }
    }
  }

  @Test func sentence_aroundASecret_staysReadable() {
    #expect(
      shown("token=qwhzmvkdjrtp: not known (id 7)", hiding: ["qwhzmvkdjrtp"]) == "token=[redacted]: not known (id 7)")
    #expect(shown("The session has ended.", hiding: shapes) == "The session has ended.")
  }

  @Test func uuid_thatIsNoKnownSecret_isNotShown() {
    #expect(shown("see 6f1c2f0e-6f5b-4a53-9d0e-1f2a3b4c5d6e", hiding: []) == "see [redacted]")
  }

  @Test func text_inTooManyLayersOfCoding_isWithheld() {
    var text = "qwhzmvkdjrtp"
    for _ in 0..<6 { text = percent(text) }
    #expect(shown(String(text.prefix(600)), hiding: ["qwhzmvkdjrtp"]).contains("withheld"))
  }

  @Test func secrets_tooManyToCompare_textIsWithheld() {
    let tokens = (0..<9).map { _ in String(repeating: "x", count: 1 << 16) }
    #expect(shown("no", hiding: tokens).contains("withheld"))
  }

  @Test func headers_valuesOf8Letters_areSecrets() {
    var hidden = HiddenSecrets()
    for line in ["X-Api-Key: qwhzmvkdjrtp", "Content-Type: application/json", "X-Platform: web"] {
      hidden.addHeader(secret(line + "\0"))
    }
    let text = "key QWHZ-MVKD-JRTP for application/json on web"
    #expect(withBytes(text) { hidden.cleaned($0) } == "key [redacted] for application/json on web")
  }

  @Test func query_values_areSecrets() {
    var hidden = HiddenSecrets()
    withBytes("https://h/r?ExpressPlayToken=AQAAAB%2FCDEFG12==&v=1") { hidden.addQuery(of: $0) }
    let text = "ExpressPlayToken AQAAAB/CDEFG12 has expired"
    #expect(withBytes(text) { hidden.cleaned($0) } == "ExpressPlayToken [redacted] has expired")
  }

  @Test func body_longWords_areSecrets() {
    var hidden = HiddenSecrets()
    hidden.addBody(secret(#"{"challenge":"Y2hhbGxlbmdlLW9mLWEtY2Rt"}"#))
    let text = "the challenge Y2hh bGxl bmdl LW9m LWEt Y2Rt is malformed"
    #expect(withBytes(text) { hidden.cleaned($0) } == "the challenge [redacted] is malformed")
  }
}

private func letters(_ text: String) -> [Character] {
  Array(text.lowercased().filter { $0.isASCII && ($0.isLetter || $0.isNumber) })
}

private func hex(_ byte: UInt8) -> String {
  (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
}

private func percent(_ text: String) -> String { coded(text, every: 1) { "%" + hex($0) } }

private func coded(_ text: String, every step: Int, _ code: (UInt8) -> String) -> String {
  text.utf8.enumerated().map { $0 % step == 0 ? code($1) : String(UnicodeScalar($1)) }.joined()
}

private func groups(_ text: String, _ size: Int, _ separator: String) -> String {
  var all: [String] = []
  var rest = Substring(text)
  while !rest.isEmpty {
    all.append(String(rest.prefix(size)))
    rest = rest.dropFirst(size)
  }
  return all.joined(separator: separator)
}

private func fullWidth(_ text: String) -> String {
  String(String.UnicodeScalarView(text.unicodeScalars.compactMap { UnicodeScalar($0.value + 0xFEE0) }))
}

private func base64(_ text: String) -> String {
  let bytes = Array(text.utf8)
  var coded = [UInt8](repeating: 0, count: Base64.encodedCount(bytes.count, padded: true))
  bytes.withUnsafeBufferPointer { from in coded.withUnsafeMutableBufferPointer { Base64.encode(from, into: $0) } }
  return String(decoding: coded, as: UTF8.self)
}
