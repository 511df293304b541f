internal import UsherCore

/// What the `Content-Type` of a reply says about its body.
package enum MediaType: Sendable {
  /// No type, or a type of binary data. Many servers send `application/octet-stream` for everything.
  case other
  /// JSON, XML or other text.
  case text
  case html

  /// Reads the value of a `Content-Type` header.
  package init(_ value: UnsafeBufferPointer<UInt8>) {
    let type = value.prefix { $0 != 0x3B }
    self = .other
    if MediaType.has(type, "text/") || MediaType.has(type, "json") || MediaType.has(type, "xml") { self = .text }
    if MediaType.has(type, "html") { self = .html }
  }

  private static func has(_ type: Slice<UnsafeBufferPointer<UInt8>>, _ word: StaticString) -> Bool {
    contains(UnsafeBufferPointer(rebasing: type), word)
  }
}

/// Returns whether the text has this word in any letter case. The caller passes the word in lower case.
func contains(_ text: UnsafeBufferPointer<UInt8>, _ word: StaticString) -> Bool {
  findIgnoringCase(word, in: text) != nil
}

/// Returns the index at which `word` first occurs, in any letter case. The caller passes `word` in lower case.
func findIgnoringCase(_ word: StaticString, in text: UnsafeBufferPointer<UInt8>, from start: Int = 0) -> Int? {
  word.withUTF8Buffer { word in
    var at = start
    while text.count - at >= word.count {
      var length = 0
      while length < word.count && lowercased(text[at + length]) == word[length] { length += 1 }
      if length == word.count { return at }
      at += 1
    }
    return nil
  }
}
