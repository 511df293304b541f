import Testing

@testable import UsherCore

@Suite struct SecretTests {
  @Test func secret_holdsItsBytes() {
    let one = secret("abc")
    #expect(one.count == 3 && text(one) == "abc")
    #expect(withBytes("xyz") { text(Secret($0)) } == "xyz")
    #expect(Secret(count: 4) { $0[1] = 7 }.withBytes { Array($0) } == [0, 7, 0, 0])
  }

  @Test func secret_inText_showsNothing() {
    #expect(!"\(secret("hunter2-hunter2"))".contains("hunter2"))
    #expect(!String(reflecting: secret("hunter2-hunter2")).contains("hunter2"))
    var dumped = ""
    dump(secret("hunter2-hunter2"), to: &dumped)
    #expect(!dumped.contains("hunter2"))
  }

  @Test func wipe_leavesZeros() {
    var bytes = [UInt8](repeating: 0xAA, count: 1000)
    bytes.withUnsafeMutableBufferPointer { wipe($0) }
    #expect(bytes.allSatisfy { $0 == 0 })
    wipe(UnsafeMutableBufferPointer(start: nil, count: 0))
  }
}
