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
    let type = UnsafeBufferPointer(rebasing: value.prefix { $0 != 0x3B })
    self = .other
    if contains(type, "text/") || contains(type, "json") || contains(type, "xml") { self = .text }
    if contains(type, "html") { self = .html }
    if MediaType.isMedium(type) || contains(type, "/pdf") || contains(type, "zip") { self = .file }
    if contains(value, "utf-16") { self = .utf16 }
  }

  /// Whether the first part of the type is `image`, `audio`, `video` or `font`.
  private static func isMedium(_ type: UnsafeBufferPointer<UInt8>) -> Bool {
    guard type.count > 2 else { return false }
    switch (type[0] | 0x20, type[1] | 0x20) {
    case (0x69, 0x6D), (0x61, 0x75), (0x76, 0x69), (0x66, 0x6F): return true
    default: return false
    }
  }
}

/// Returns whether the text has this word in any letter case. The caller passes the word in lower case.
@inline(never)
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
