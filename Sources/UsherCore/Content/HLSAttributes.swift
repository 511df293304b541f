/// The attribute list of an HLS tag: `NAME=value,NAME="quoted, value"`.
struct HLSAttributes {
  struct Attribute {
    let name: Range<Int>
    /// The range of the value, without its quotes.
    let value: Range<Int>
    let isQuoted: Bool
  }

  private let text: UnsafeBufferPointer<UInt8>
  private let end: Int
  private var at: Int

  /// - Parameter range: the part of `text` that is the attribute list.
  init(_ text: UnsafeBufferPointer<UInt8>, in range: Range<Int>) {
    self.text = text
    (at, end) = (range.lowerBound, range.upperBound)
  }

  /// Returns the next attribute; nil at the end of the list. A quoted value without a closing quote ends where the list
  /// ends. Skips a name without a value.
  mutating func next() -> Attribute? {
    while at < end {
      while at < end && (text[at] == 0x2C || HLSAttributes.isBlank(text[at])) { at += 1 }
      let name = at
      while at < end && text[at] != 0x3D && text[at] != 0x2C { at += 1 }
      guard at < end, text[at] == 0x3D else { continue }
      let nameEnd = trimmed(name, at)
      at += 1
      while at < end && HLSAttributes.isBlank(text[at]) { at += 1 }
      if at < end && text[at] == 0x22 {
        let start = at + 1
        at = start
        while at < end && text[at] != 0x22 { at += 1 }
        let close = at
        while at < end && text[at] != 0x2C { at += 1 }
        return Attribute(name: name..<nameEnd, value: start..<close, isQuoted: true)
      }
      let start = at
      while at < end && text[at] != 0x2C { at += 1 }
      return Attribute(name: name..<nameEnd, value: start..<trimmed(start, at), isQuoted: false)
    }
    return nil
  }

  private func trimmed(_ start: Int, _ end: Int) -> Int {
    var end = end
    while end > start && HLSAttributes.isBlank(text[end - 1]) { end -= 1 }
    return end
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}

/// Finds the lines of a playlist that describe keys.
struct HLSKeyLines {
  struct Line {
    /// The range of the attribute list.
    let attributes: Range<Int>
    let isSession: Bool
  }

  private let playlist: UnsafeBufferPointer<UInt8>
  private var at: Int

  init(_ playlist: UnsafeBufferPointer<UInt8>) {
    self.playlist = playlist
    let hasMark = playlist.count >= 3 && playlist[0] == 0xEF && playlist[1] == 0xBB && playlist[2] == 0xBF
    at = hasMark ? 3 : 0
  }

  mutating func next() -> Line? {
    while at < playlist.count {
      let start = at
      var end = playlist[start...].firstIndex(of: 0x0A) ?? playlist.count
      at = end + 1
      if end > start && playlist[end - 1] == 0x0D { end -= 1 }
      if let list = after("#EXT-X-KEY:", start, end) { return Line(attributes: list..<end, isSession: false) }
      if let list = after("#EXT-X-SESSION-KEY:", start, end) { return Line(attributes: list..<end, isSession: true) }
    }
    return nil
  }

  private func after(_ tag: StaticString, _ start: Int, _ end: Int) -> Int? {
    tag.withUTF8Buffer { tag in
      guard end - start >= tag.count else { return nil }
      for offset in 0..<tag.count where playlist[start + offset] != tag[offset] { return nil }
      return start + tag.count
    }
  }
}
