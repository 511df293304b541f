import Testing

@testable import UsherCore

#if canImport(Glibc)
  import Glibc
#endif

/// Secrets of all forms: a JWT, a UUID, 12 letters, a number, and base64 with symbols.
private let shapes = [
  "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiI0ZjdhIn0.Qm9n_dXMtc2lnbmF0dXJl", "6f1c2f0e-6f5b-4a53-9d0e-1f2a3b4c5d6e",
  "qwhzmvkdjrtp", "8213904417765", "aB3+/xY9zQ==kLm", "{\"a\":\"tok\",\"b\":\"en.1\"}"
]

@Suite struct HiddenSecretsTests {
  private func shown(_ text: String, hiding tokens: [String]) -> String {
    withBytes(text) { HiddenSecrets(tokens.map { secret($0) }).cleaned($0) }
  }

  /// The message and the token consist of the same letter, so each part of the token occurs everywhere in the message.
  /// The search still takes little processor time.
  @Test func message_ofOneLetter_withALongTokenOfTheSame_takesLittleTime() {
    let before = clock()
    let text = shown(String(repeating: "a", count: 1024), hiding: [String(repeating: "a", count: 30_000)])
    #expect(!text.contains("aaaaaaaa"))
    #expect((clock() - before) / 1_000_000 < 10, "seconds")
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
    ("base64 of upper case", { base64($0.uppercased()) }), ("base64 of lower case", { base64($0.lowercased()) }),
    ("C escapes, octal", { coded($0, every: 1) { "\\" + number($0, 8, digits: 3) } }),
    ("C escapes, long", { coded($0, every: 1) { "\\U000000" + hex($0) } }),
    ("CSS escapes", { coded($0, every: 1) { "\\0000" + hex($0) } }),
    ("other C escapes between", { groups($0, 1, "\\v") }), ("NUL escapes between", { groups($0, 1, "\\0") }),
    ("HTML, long", { coded($0, every: 1) { "&#x00000000" + hex($0) + ";" } }),
    ("HTML, long decimal", { coded($0, every: 1) { "&#" + number($0, 10, digits: 9) + ";" } }),
    ("HTML entities between", { groups($0, 1, "&nbsp;") }), ("ampersands between", { groups($0, 1, "&amp;") }),
    ("HTML tags between", { groups($0, 7, "<wbr>") }), ("entities of its own characters", { escaped($0) }),
    ("full-width, percent-coded", { percent(fullWidth($0)) }),
    ("escape() of JavaScript", { coded($0, every: 1) { "%u00" + hex($0) } }),
    ("numbers in hex", { coded($0, every: 1) { "0x" + hex($0) + ", " } }),
    ("code points", { coded($0, every: 1) { "U+00" + hex($0) + " " } }),
    ("numbers", { coded($0, every: 1) { "\($0) " } }),
    ("octal numbers", { coded($0, every: 1) { number($0, 8, digits: 3) + " " } }),
    ("quoted-printable", { coded($0, every: 1) { "=" + hex($0) } }), ("bold", { bold($0) }),
    ("other invisible characters", { groups($0, 3, "\u{34F}\u{2800}\u{FE0F}") }),
    ("tags of Unicode", { shifted($0, by: 0xE0000) }),
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
    if !["bold", "tags of Unicode", "its end", "its start"].contains(name) {
      #expect(message.contains("[redacted]") || message.contains("withheld"), "\(name): \(message)")
    }
    // The message must contain neither the hex form nor the base64 form of the secret.
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

  @Test(arguments: [
    "%41", "100 %u0041", "a\\x", "\\", "\\0", "x\\121", "&#65", "&nbsp;", "AT&T", "a<b>c", "</p>", "<!--", "\u{FF05}41"
  ])
  func text_withACodedCharacter_isWithheld(text: String) {
    #expect(shown("it said " + text, hiding: []).contains("withheld"))
  }

  @Test(arguments: [
    "The limit of 3 streams is reached (code 1003): stop one, please!", "at 2026-11-22T18:17:09Z, in 100 % of cases",
    "1 < 2 & 3 > 2; R & D", "see https://help.example.com/errors#limit", "サーバーが混雑しています。",
    "Слишком много потоков (3 из 3)", "L’accès est refusé — réessayez", "태그 없음", "लाइसेंस समाप्त", "😀 ok",
    "SessionLimitExceeded: HTTP/2 errorCode=1003 ISO8601 for content-1, 0x8004C600"
  ])
  func text_withoutSecrets_isShown(text: String) {
    #expect(shown(text, hiding: shapes) == text)
  }

  @Test func fullWidthPunctuation_becomesASCII() {
    #expect(shown("エラー（３）！", hiding: shapes) == "エラー(3)!")
  }

  @Test(arguments: ["UXg3WmsyTG05V3A0", "4pW9mL2kZ7xQ", "KF4DOWTLGJGG2OKXOA2A", "8f14e45f"])
  func word_thatChangesOftenBetweenLettersAndDigits_isNotShown(word: String) {
    #expect(shown("see \(word), then", hiding: []) == "see [redacted], then")
  }

  @Test(arguments: ["пароль-сессии-ключ", "éàüöçñîôéà", "!@#$^*()_+~|{}[]:!@#$", "a!@#$^*b()_+~|{}c[]:!@#$"])
  func secret_withFewLetters_isNotShown(token: String) {
    #expect(shown("token \(token) unknown", hiding: [token]).contains("token [redacted]"))
  }

  @Test func secrets_tooManyToCompare_textIsWithheld() {
    let token = String(repeating: "x", count: 1 << 14)
    #expect(shown("no", hiding: [token, token]) == "no")
    #expect(shown("no", hiding: [token, token, token]).contains("withheld"))
  }

  @Test func headers_valuesOf8Letters_areSecrets() {
    let hidden = HiddenSecrets()
    for line in [
      "X-Api-Key: qwhzmvkdjrtp", "Content-Type: application/json", "Accept: application/json", "X-Platform: web",
      "X-Device: android", "X-Pin: 4711", "X-Other:Zq7xW2m ", "X-Eight: abcdefgh", "Authorization: Bearer kq5t"
    ] {
      hidden.addHeader(secret(line + "\0"))
    }
    let text = "key QWHZ-MVKD-JRTP for application/json on web android: 4711 zq7xw2m abcdefgh kq5t"
    #expect(
      withBytes(text) { hidden.cleaned($0) }
        == "key [redacted] for application/json on web android: [redacted]")
  }

  @Test func header_withBasicCredentials_hidesThePassword() {
    let hidden = HiddenSecrets()
    hidden.addHeader(secret("Authorization: Basic " + base64("op:pa55wd") + "\0"))
    #expect(
      withBytes("no user op with pa55wd") { hidden.cleaned($0) } == "no user op with [redacted]")
    #expect(withBytes("bad op:pa55wd") { hidden.cleaned($0) } == "bad [redacted]")
  }

  @Test func proxy_credentials_areSecrets() {
    let hidden = HiddenSecrets()
    withBytes("http://usr:ProxyPw7788@127.0.0.1:3128") { hidden.addProxy($0) }
    for said in ["ProxyPw7788", base64("usr:ProxyPw7788")] {
      #expect(withBytes("wrong " + said) { hidden.cleaned($0) }.hasPrefix("wrong [redacted]"))
    }
    #expect(withBytes("no way to 127.0.0.1:3128") { hidden.cleaned($0) } == "no way to 127.0.0.1:3128")
  }

  @Test func query_values_areSecrets() {
    let hidden = HiddenSecrets()
    withBytes("https://host.example1.com/r?ExpressPlayToken=AQAAAB%2FCDEFG12==&v=1&t=Qx7Zk2L") { hidden.addURL($0) }
    let text = "ExpressPlayToken AQAAAB/CDEFG12 and Qx7Zk2L of host.example1.com have expired"
    #expect(
      withBytes(text) { hidden.cleaned($0) }
        == "ExpressPlayToken [redacted] and [redacted] of host.example1.com have expired")
  }

  @Test(arguments: [
    "https://h/r?qxzkmvkdjrtp", "https://h/r?a&qxzkmvkdjrtp", "http://h/r?t=qxzkmvkdjrtp", "https://h/qxzkmvkd7jrtp/l"
  ])
  func url_tokenInItsQueryOrPath_isASecret(url: String) {
    let hidden = HiddenSecrets()
    withBytes(url) { hidden.addURL($0) }
    #expect(withBytes("for qxzkmvkdjrtp qxzkmvkd7jrtp") { hidden.cleaned($0) }.contains("[redacted]"))
    #expect(withBytes("no licenses here") { hidden.cleaned($0) } == "no licenses here")
  }

  @Test func body_longWords_areSecrets() {
    let hidden = HiddenSecrets()
    hidden.addBody(secret(#"{"challenge":"Y2hhbGxlbmdlLW9mLWEtY2Rt"}"#))
    let text = "the challenge Y2hh bGxl bmdl LW9m LWEt Y2Rt is malformed"
    #expect(withBytes(text) { hidden.cleaned($0) } == "the challenge [redacted] is malformed")
  }

  @Test func body_wordsFrom8Letters_areSecretsUnlessTheyNameFields() {
    let hidden = HiddenSecrets()
    hidden.addBody(secret(#"{"deviceIdentifier":"qx7zk2lm","customerName":"qxzkmvkdjrtp","type":"temporary"}"#))
    hidden.addBody(secret("<AcquireLicense>mvkdqxzkjrtp</AcquireLicense>"))
    let text = "AcquireLicense, customerName, temporary: qx7zk2lm qxzkmvkdjrtp mvkdqxzkjrtp"
    #expect(
      withBytes(text) { hidden.cleaned($0) }
        == "AcquireLicense, customerName, temporary: [redacted]")
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

private func fullWidth(_ text: String) -> String { shifted(text, by: 0xFEE0) }

private func shifted(_ text: String, by offset: UInt32) -> String {
  String(String.UnicodeScalarView(text.unicodeScalars.compactMap { UnicodeScalar($0.value + offset) }))
}

private func bold(_ text: String) -> String {
  String(
    String.UnicodeScalarView(
      text.unicodeScalars.compactMap {
        switch $0 {
        case "A"..."Z": UnicodeScalar($0.value - 65 + 0x1D400)
        case "a"..."z": UnicodeScalar($0.value - 97 + 0x1D41A)
        case "0"..."9": UnicodeScalar($0.value - 48 + 0x1D7CE)
        default: $0
        }
      }))
}

private func number(_ byte: UInt8, _ radix: Int, digits: Int) -> String {
  let text = String(byte, radix: radix)
  return String(repeating: "0", count: max(0, digits - text.count)) + text
}

/// Escapes the text as Python's `html.escape` does, after it has added `&` after each fifth character.
private func escaped(_ text: String) -> String {
  groups(text, 5, "&").map { character in
    switch character {
    case "&": "&amp;"
    case "\"": "&quot;"
    default: String(character)
    }
  }.joined()
}

private func base64(_ text: String) -> String {
  let bytes = Array(text.utf8)
  var coded = [UInt8](repeating: 0, count: Base64.encodedCount(bytes.count, padded: true))
  bytes.withUnsafeBufferPointer { from in coded.withUnsafeMutableBufferPointer { Base64.encode(from, into: $0) } }
  return String(decoding: coded, as: UTF8.self)
}
