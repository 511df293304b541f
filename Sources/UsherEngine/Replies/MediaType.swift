internal import UsherCore

/// What the `Content-Type` of a reply says about its body.
package enum MediaType: Sendable {
  /// No type, or a type of binary data. Many servers send `application/octet-stream` for everything.
  case other
  /// JSON, XML or other text.
  case text
  case html
  /// An image, sound, film, font, PDF or zip archive.
  case file
  /// Any type with `charset=utf-16`.
  case utf16

  /// Reads the value of a `Content-Type` header.
  package init(_ value: UnsafeBufferPointer<UInt8>) {
    let type = value.prefix { $0 != 0x3B }
    self = .other
    if MediaType.has(type, "text/") || MediaType.has(type, "json") || MediaType.has(type, "xml") { self = .text }
    if MediaType.has(type, "html") { self = .html }
    if MediaType.has(type, "image/") || MediaType.has(type, "audio/") || MediaType.has(type, "video/")
      || MediaType.has(type, "font/") || MediaType.has(type, "/pdf") || MediaType.has(type, "zip")
    {
      self = .file
    }
    if contains(value, "charset=utf-16") || contains(value, "charset=\"utf-16") { self = .utf16 }
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
