/// The secrets that no text from outside may repeat: tokens, values of headers, queries and bodies of requests. Every
/// text of a server becomes a message through `cleaned`, so that no message contains a part of a secret.
///
/// A part is a run of 8 letters or digits (of a shorter secret: all of it). Upper and lower case count as equal, and
/// everything that is neither a letter nor a digit is skipped, in the text and in the secret.
package final class HiddenSecrets {
  private var words: [Secret] = []
  private var bodies: [Secret] = []
  /// How many bytes there are to compare with.
  private var size = 0

  package init() {}

  package init(_ tokens: [Secret]) {
    for token in tokens { add(token) }
  }

  /// Adds a token.
  package func add(_ token: Secret) {
    words.append(token)
    size += token.count
  }

  /// Adds the value of a header line that ends in NUL. Short values, such as a platform's name, are no secrets, and
  /// neither are the headers that describe the body.
  package func addHeader(_ line: Secret) {
    let value = line.withBytes { bytes -> Secret? in
      guard let colon = bytes.firstIndex(of: 0x3A) else { return nil }
      if Self.describesBody(UnsafeBufferPointer(rebasing: bytes[..<colon])) { return nil }
      let value = bytes[(colon + 1)..<max(colon + 1, bytes.count - 1)]
      return value.count <= Self.part ? nil : Secret(UnsafeBufferPointer(rebasing: value))
    }
    if let value { add(value) }
  }

  private static func describesBody(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
    isNamed(name, "Content-Type") || isNamed(name, "Accept") || isNamed(name, "SOAPAction")
  }

  @inline(never)
  private static func isNamed(_ name: UnsafeBufferPointer<UInt8>, _ word: StaticString) -> Bool {
    word.withUTF8Buffer { equalIgnoringCase(name, $0) }
  }

  /// Adds the values in the query of a URL.
  package func addQuery(of url: UnsafeBufferPointer<UInt8>) {
    guard let query = url.firstIndex(of: 0x3F) else { return }
    var equals: Int?
    for at in (query + 1)...url.count {
      if at < url.count, url[at] != 0x26 {
        if url[at] == 0x3D, equals == nil { equals = at }
        continue
      }
      if let equals, at - equals > Self.part { add(Secret(UnsafeBufferPointer(rebasing: url[(equals + 1)..<at]))) }
      equals = nil
    }
  }

  /// Adds a payload or the body of a request. Its words of less than 16 letters are no secrets: they name fields.
  package func addBody(_ body: Secret) {
    bodies.append(body)
    size += body.count
  }

  /// How many letters of a secret a message must not repeat.
  static var part: Int { 8 }
  /// The library does not compare a text with more bytes of secrets than this, because it would take too long.
  private static var mostBytes: Int { 1 << 19 }

  /// Marks the bytes of a text that repeat a part of a secret: as it is, percent-coded, in hex or in base64.
  /// - Returns: false if the text has too many layers of coding, or if there are too many secrets to compare with.
  func mark(_ text: UnsafeBufferPointer<UInt8>, in marks: inout [Bool]) -> Bool {
    guard size > 0 else { return true }
    guard size <= Self.mostBytes else { return false }
    var coded = CodedText(text)
    defer { coded.wipe() }
    for _ in 0..<5 {
      var search = SecretSearch(coded.letters)
      for word in words { word.withBytes { search.findWord($0) } }
      for body in bodies { body.withBytes { search.findBody($0) } }
      search.end(&marks)
      if !coded.decode() { return true }
    }
    return false
  }
}
