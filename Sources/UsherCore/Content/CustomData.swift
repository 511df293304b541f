/// The `CustomData` element of a PlayReady reply.
package enum CustomData {
  /// Returns the text of the first `CustomData` element, with any namespace prefix. Entities such as `&quot;` are
  /// resolved.
  package static func text(in xml: UnsafeBufferPointer<UInt8>) -> Secret? {
    var at = 0
    while let open = firstIndex(of: [0x3C], in: xml, from: at) {
      at = open + 1
      var name = at
      while name < xml.count && isNameByte(xml[name]) { name += 1 }
      guard isCustomData(xml, from: at, to: name) else { continue }
      guard let end = firstIndex(of: [0x3E], in: xml, from: name), end > 0, xml[end - 1] != 0x2F else { return nil }
      guard let close = firstIndex(of: [0x3C, 0x2F], in: xml, from: end + 1) else { return nil }
      return resolve(UnsafeBufferPointer(rebasing: xml[(end + 1)..<close]))
    }
    return nil
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, 0x2D, 0x2E, 0x3A, 0x5F: return true
    default: return false
    }
  }

  private static func isCustomData(_ xml: UnsafeBufferPointer<UInt8>, from start: Int, to end: Int) -> Bool {
    let name: StaticString = "CustomData"
    let size = name.utf8CodeUnitCount
    guard end - start >= size, end - start == size || xml[end - size - 1] == 0x3A else { return false }
    return name.withUTF8Buffer { word in
      for index in 0..<size where xml[end - size + index] != word[index] { return false }
      return true
    }
  }

  /// Resolves entities such as `&quot;` outside CDATA sections; the text of a CDATA section stays unchanged.
  private static func resolve(_ text: UnsafeBufferPointer<UInt8>) -> Secret {
    let opening: [UInt8] = Array("<![CDATA[".utf8)
    if let start = firstIndex(of: opening, in: text),
      let end = firstIndex(of: [0x5D, 0x5D, 0x3E], in: text, from: start)
    {
      return Secret(UnsafeBufferPointer(rebasing: text[(start + opening.count)..<end]))
    }
    var count = 0
    let resolved = Secret(count: text.count) { target in
      var index = 0
      while index < text.count {
        let (byte, length) = text[index] == 0x26 ? entity(text, at: index) : (text[index], 1)
        target[count] = byte
        count += 1
        index += length
      }
    }
    return resolved.withBytes { Secret(UnsafeBufferPointer(rebasing: $0[0..<count])) }
  }

  private static func entity(_ text: UnsafeBufferPointer<UInt8>, at index: Int) -> (UInt8, Int) {
    let known: [(StaticString, UInt8)] = [
      ("&quot;", 0x22), ("&apos;", 0x27), ("&amp;", 0x26), ("&lt;", 0x3C), ("&gt;", 0x3E), ("&#34;", 0x22),
      ("&#39;", 0x27)
    ]
    for (name, byte) in known {
      let size = name.utf8CodeUnitCount
      let matches = name.withUTF8Buffer { word in
        guard text.count - index >= size else { return false }
        for offset in 0..<size where text[index + offset] != word[offset] { return false }
        return true
      }
      if matches { return (byte, size) }
    }
    return (text[index], 1)
  }
}
