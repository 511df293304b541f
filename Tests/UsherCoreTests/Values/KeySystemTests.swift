import Testing

@testable import UsherCore

@Suite struct KeySystemTests {
  @Test(arguments: KeySystem.allCases)
  func identifier_inAnyDress_isRecognised(keySystem: KeySystem) {
    let plain = string(keySystem.identifier)
    for dress in [plain, plain.uppercased(), "urn:uuid:" + plain, "URN:UUID:" + plain.uppercased(), "Urn:Uuid:" + plain]
    {
      #expect(withBytes(dress) { KeySystem($0) } == keySystem)
    }
  }

  @Test(arguments: [
    "", "urn:uuid:", "urn:uuid", "edef8ba9-79d6-4ace-a3c8-27dcd51d21e", "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed ",
    "com.widevine.alpha", "urn:uuid:urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"
  ])
  func identifier_unknown_isNone(given: String) {
    #expect(withBytes(given) { KeySystem($0) } == nil)
  }
}
