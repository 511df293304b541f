import Testing

@testable import UsherCore

@Suite struct UUIDBytesTests {
  private let plain = "00112233-4455-6677-8899-aabbccddeeff"

  @Test func text_inAnyDress_isTheSameID() {
    let expected = UUIDBytes([
      0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF
    ])
    for dress in [
      plain, plain.uppercased(), "urn:uuid:" + plain, "URN:UUID:" + plain, "{" + plain + "}",
      "00112233445566778899aabbccddeeff"
    ] {
      #expect(UUIDBytes(text: bytes(dress)) == expected)
    }
    #expect(expected.map { String(decoding: $0.text, as: UTF8.self) } == plain)
    #expect(expected?.bytes.count == 16 && expected?.bytes.last == 0xFF)
  }

  @Test(arguments: [
    "", "-", "00112233-4455-6677-8899-aabbccddeef", "00112233-4455-6677-8899-aabbccddeeff0",
    "00112233-4455-6677-8899-aabbccddeefg",
    "{00112233-4455-6677-8899-aabbccddeeff", " 00112233-4455-6677-8899-aabbccddeeff",
    "00112233445566778899aabbccddeeff\u{0}",
    "--------------------------------", "urn:uuid:urn:uuid:00112233445566778899aabbccddeeff"
  ])
  func text_thatIsNone_isRefused(given: String) {
    #expect(UUIDBytes(text: bytes(given)) == nil)
  }

  @Test func bytes_ofAnotherCount_areRefused() {
    for count in [0, 1, 15, 17, 1_000_000] { #expect(UUIDBytes([UInt8](repeating: 1, count: count)) == nil) }
    #expect(UUIDBytes(random: []) == nil)
    #expect(UUIDBytes(text: [UInt8](repeating: 0x30, count: 1_000_000)) == nil)
  }

  @Test func random_marksVersionAndVariant() {
    let made = UUIDBytes(random: [UInt8](repeating: 0xFF, count: 16)).map { String(decoding: $0.text, as: UTF8.self) }
    #expect(made == "ffffffff-ffff-4fff-bfff-ffffffffffff")
  }

  @Test func guid_asStored_hasItsNumbersSwapped() {
    let id = UUIDBytes(text: bytes(plain))
    #expect(
      (id?.mixedEndian).map { String(decoding: $0.text, as: UTF8.self) } == "33221100-5544-7766-8899-aabbccddeeff")
    #expect(id?.mixedEndian.mixedEndian == id)
  }

  @Test(arguments: KeySystem.allCases)
  func keySystem_asBytes_isRecognised(keySystem: KeySystem) {
    #expect(keySystem.uuid.flatMap { KeySystem($0) } == keySystem)
  }

  @Test func keySystem_unknown_isNone() {
    #expect(UUIDBytes(text: bytes(plain)).flatMap { KeySystem($0) } == nil)
  }
}
