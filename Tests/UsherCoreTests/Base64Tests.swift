import Testing

@testable import UsherCore

@Suite struct Base64Tests {
  @Test(arguments: ["", "f", "fo", "foo", "foob", "fooba", "foobar"])
  func text_everyLength_comesBack(text: String) {
    let bytes = Array(text.utf8)
    for alphabet in [Base64.Alphabet.standard, .url] {
      for padded in [true, false] {
        var target = [UInt8](repeating: 0, count: Base64.encodedCount(bytes.count, padded: padded))
        bytes.withUnsafeBufferPointer { from in
          target.withUnsafeMutableBufferPointer { Base64.encode(from, into: $0, alphabet: alphabet, padded: padded) }
        }
        let back = target.withUnsafeBufferPointer { Base64.decode($0) }
        #expect(back?.withBytes { Array($0) } == bytes)
      }
    }
  }
}
