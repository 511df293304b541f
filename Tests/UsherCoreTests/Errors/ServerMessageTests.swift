import Testing

@testable import UsherCore

@Suite struct ServerMessageTests {
  private func safe(_ text: String) -> String { withBytes(text) { HiddenSecrets().cleaned($0) } }

  @Test func message_plain_staysAsItIs() {
    #expect(
      safe("Maximum number of active sessions exceeded (3/3)") == "Maximum number of active sessions exceeded (3/3)")
    #expect(safe("Größe überschritten") == "Größe überschritten")
  }

  @Test(arguments: [
    "\u{85}", "\u{9B}", "\u{202E}", "\u{2066}", "\u{2028}", "\u{200B}", "\u{FEFF}", "\u{E0041}", "\u{34F}",
    "\u{600}", "\u{6DD}", "\u{70F}", "\u{890}", "\u{8E2}", "\u{1160}", "\u{17B4}", "\u{180B}", "\u{180F}",
    "\u{2065}", "\u{2800}", "\u{3164}", "\u{FE0F}", "\u{FFA0}", "\u{FFF8}", "\u{110BD}", "\u{110CD}", "\u{13430}",
    "\u{1BCA0}", "\u{1D173}", "\u{1D400}", "\u{24D0}", "\u{2071}"
  ])
  func message_withInvisibleCharacters_losesThem(character: String) {
    #expect(safe("a\(character)b") == "a b")
  }

  @Test func message_withControlCharacters_becomesOneLine() {
    #expect(safe("a\r\nb\u{0}c\u{1B}[31m\u{7F}") == "a  b c [31m ")
  }

  @Test func message_withAToken_losesIt() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9." + String(repeating: "abcDEF123-_", count: 9) + ".sig_nature-1"
    #expect(safe("bad token \(jwt)!") == "bad token [redacted]!")
    #expect(safe(String(repeating: "A", count: 41)) == "[redacted]")
    #expect(safe(String(repeating: "A", count: 40)) == String(repeating: "A", count: 40))
  }

  @Test func message_long_isCut() {
    #expect(safe(String(repeating: "word ", count: 1000)).utf8.count <= 560)
  }

  @Test func message_randomBytes_isAlwaysPrintableText() {
    var dice = Dice(6)
    for _ in 0..<3000 {
      let bytes = (0..<Int(dice.upTo(700))).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
      let line = withBytes(bytes) { HiddenSecrets().cleaned($0) }
      #expect(!line.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F })
    }
  }

  @Test func message_thatIsNoUTF8_isAtMost512Bytes() {
    for byte in [0x80, 0xC3, 0xE3, 0xFF] as [UInt8] {
      let line = withBytes([UInt8](repeating: byte, count: 600)) { HiddenSecrets().cleaned($0) }
      #expect(line == String(repeating: "\u{FFFD}", count: 170))
    }
    #expect(safe("a" + String(repeating: "ü ", count: 300)) == "a" + String(repeating: "ü ", count: 170) + "")
    #expect(safe(String(repeating: ". ", count: 255) + "." + String(repeating: "a", count: 41)).utf8.count == 510)
  }
}
