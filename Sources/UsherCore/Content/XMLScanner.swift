/// Reads XML as a sequence of tags and texts. It tolerates errors, builds no tree and does not resolve entities of a
/// DTD. It skips comments, processing instructions and DOCTYPE.
struct XMLScanner {
  enum Token {
    case open(Tag)
    case close(Name)
    case text(Text)
  }

  /// The name of a tag or attribute, with its prefix.
  struct Name {
    let bytes: UnsafeBufferPointer<UInt8>

    /// Compares the name without its prefix and without regard to letter case.
    func isNamed(_ name: StaticString) -> Bool {
      let local = bytes[(bytes.lastIndex(of: 0x3A).map { $0 + 1 } ?? 0)...]
      return name.withUTF8Buffer { equalIgnoringCase(local, $0) }
    }
  }

  struct Text {
    let bytes: UnsafeBufferPointer<UInt8>
    let isLiteral: Bool

    func decoded() -> [UInt8] { isLiteral ? Array(bytes) : XMLEntities.decode(bytes) }

    /// Returns the text with entities decoded and without white space around it.
    func trimmed() -> [UInt8] {
      var rest = decoded()[...]
      while let last = rest.last, isXMLBlank(last) { rest = rest.dropLast() }
      return Array(rest.drop(while: isXMLBlank))
    }
  }

  struct Tag {
    let name: Name
    /// Whether the tag is `<a/>`, so that no closing tag follows.
    let isEmpty: Bool
    fileprivate let rest: UnsafeBufferPointer<UInt8>

    func isNamed(_ wanted: StaticString) -> Bool { name.isNamed(wanted) }

    /// Returns the value of the first attribute with this name. Ignores the prefix of the attribute's name, and letter
    /// case.
    func attribute(_ wanted: StaticString) -> [UInt8]? {
      var at = 0
      while at < rest.count {
        while at < rest.count && isXMLBlank(rest[at]) { at += 1 }
        let start = at
        while at < rest.count && rest[at] != 0x3D && !isXMLBlank(rest[at]) { at += 1 }
        let found = Name(bytes: UnsafeBufferPointer(rebasing: rest[start..<at]))
        while at < rest.count && isXMLBlank(rest[at]) { at += 1 }
        guard at < rest.count, rest[at] == 0x3D else { continue }
        at += 1
        while at < rest.count && isXMLBlank(rest[at]) { at += 1 }
        guard at < rest.count, rest[at] == 0x22 || rest[at] == 0x27 else { continue }
        let quote = rest[at]
        at += 1
        let end = rest[at...].firstIndex(of: quote) ?? rest.count
        if found.isNamed(wanted) { return XMLEntities.decode(UnsafeBufferPointer(rebasing: rest[at..<end])) }
        at = end + 1
      }
      return nil
    }
  }

  private let xml: UnsafeBufferPointer<UInt8>
  private var at = 0

  init(_ xml: UnsafeBufferPointer<UInt8>) { self.xml = xml }

  /// Returns the next tag or text; nil at the end of the XML, or if a tag, comment or declaration is not closed.
  mutating func next() -> Token? {
    while at < xml.count {
      if xml[at] != 0x3C {
        let start = at
        at = xml[at...].firstIndex(of: 0x3C) ?? xml.count
        return .text(Text(bytes: piece(start, at), isLiteral: false))
      }
      if continues(with: "<!--") {
        guard skip(past: "-->", from: at + 4) else { return nil }
      } else if continues(with: "<![CDATA[") {
        let start = at + 9
        guard skip(past: "]]>", from: start) else { return nil }
        return .text(Text(bytes: piece(start, at - 3), isLiteral: true))
      } else if continues(with: "<?") {
        guard skip(past: "?>", from: at + 2) else { return nil }
      } else if continues(with: "<!") {
        guard let end = declarationEnd() else { return nil }
        at = end + 1
      } else {
        return tag()
      }
    }
    return nil
  }

  private mutating func tag() -> Token? {
    guard let end = tagEnd(from: at + 1) else {
      at = xml.count
      return nil
    }
    defer { at = end + 1 }
    let isClosing = at + 1 < end && xml[at + 1] == 0x2F
    let start = at + (isClosing ? 2 : 1)
    var nameEnd = start
    while nameEnd < end && !isXMLBlank(xml[nameEnd]) && !(xml[nameEnd] == 0x2F && nameEnd == end - 1) { nameEnd += 1 }
    let name = Name(bytes: piece(start, nameEnd))
    if isClosing { return .close(name) }
    let isEmpty = end > start && xml[end - 1] == 0x2F
    return .open(Tag(name: name, isEmpty: isEmpty, rest: piece(nameEnd, isEmpty ? end - 1 : end)))
  }

  /// Returns the index of the first `>` outside quotes.
  private func tagEnd(from start: Int) -> Int? {
    var quote: UInt8 = 0
    var index = start
    while index < xml.count {
      let byte = xml[index]
      if quote != 0 {
        if byte == quote { quote = 0 }
      } else if byte == 0x22 || byte == 0x27 {
        quote = byte
      } else if byte == 0x3E {
        return index
      }
      index += 1
    }
    return nil
  }

  /// Returns the index of the `>` that ends a DOCTYPE. The part of the DOCTYPE in square brackets may contain other `>`
  /// characters.
  private func declarationEnd() -> Int? {
    var depth = 0
    var index = at
    while index < xml.count {
      switch xml[index] {
      case 0x5B: depth += 1
      case 0x5D: depth -= 1
      case 0x3E where depth <= 0: return index
      default: break
      }
      index += 1
    }
    return nil
  }

  private func continues(with word: StaticString) -> Bool {
    word.withUTF8Buffer { word in
      guard xml.count - at >= word.count else { return false }
      for offset in 0..<word.count where xml[at + offset] != word[offset] { return false }
      return true
    }
  }

  /// Moves to the first byte after the next `word`. If the rest of the text does not contain this word, moves to the
  /// end of the text and returns false.
  private mutating func skip(past word: StaticString, from start: Int) -> Bool {
    let found = word.withUTF8Buffer { word in firstIndex(of: Array(word), in: xml, from: start) }
    at = found.map { $0 + word.utf8CodeUnitCount } ?? xml.count
    return found != nil
  }

  private func piece(_ start: Int, _ end: Int) -> UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(rebasing: xml[start..<max(start, end)])
  }
}

package func isXMLBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

/// Decodes entities such as `&amp;` and `&#x41;`. All other text stays unchanged.
enum XMLEntities {
  static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(text.count)
    var at = 0
    while at < text.count {
      let window = text[at..<min(at + 12, text.count)]
      guard text[at] == 0x26, let end = window.firstIndex(of: 0x3B), let scalar = scalar(text[(at + 1)..<end]) else {
        decoded.append(text[at])
        at += 1
        continue
      }
      decoded.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      at = end + 1
    }
    return decoded
  }

  private static func scalar(_ name: Slice<UnsafeBufferPointer<UInt8>>) -> Unicode.Scalar? {
    let known: [(StaticString, UInt8)] = [("amp", 0x26), ("lt", 0x3C), ("gt", 0x3E), ("quot", 0x22), ("apos", 0x27)]
    for (word, byte) in known where word.withUTF8Buffer({ name.elementsEqual($0) }) { return Unicode.Scalar(byte) }
    guard name.first == 0x23 else { return nil }
    var digits = name.dropFirst()
    let isHex = digits.first == 0x78 || digits.first == 0x58
    if isHex { digits = digits.dropFirst() }
    guard !digits.isEmpty else { return nil }
    var value: UInt32 = 0
    for digit in digits {
      guard let number = hexValue(digit), isHex || number < 10, value <= 0x10FFFF else { return nil }
      value = value * (isHex ? 16 : 10) + UInt32(number)
    }
    return Unicode.Scalar(value)
  }
}
