/// The secrets that no message may contain: tokens, values of headers, parts of URLs, bodies of requests, credentials
/// of a proxy. A server may repeat these secrets in its texts. So the library passes each text of a server to `cleaned`
/// before the text becomes a message; `cleaned` removes each part of a secret.
///
/// A part of a secret is a run of 8 of its letters or digits. If the secret has fewer than 8, the whole secret is one
/// part. A search ignores letter case. It compares only letters and digits, and skips all other characters;
/// `SecretSearch.Compared` has two more kinds of search.
package final class HiddenSecrets {
  private var words: [Secret] = []
  private var bodies: [Secret] = []
  /// How much work a search for all secrets takes. Each byte of a token or value counts as 4, and each byte of a body
  /// as 1, because the search looks for a token in many more forms than for a body.
  private var work = 0

  package init() {}

  package init(_ tokens: [Secret]) {
    for token in tokens { add(token) }
  }

  /// Adds a token.
  package func add(_ token: Secret) {
    words.append(token)
    work += 4 * token.count
  }

  /// Adds the value of a header or a part of a URL, if the value counts as a secret. A value counts if it has at least
  /// 8 bytes, or at least 4 letters and digits of which one is a digit. Other values are ordinary words and numbers.
  private func addValue(_ value: UnsafeBufferPointer<UInt8>) {
    if value.count >= Self.part || (hasDigit(value) && lettersCount(value) >= 4) { add(Secret(value)) }
  }

  /// Adds the secrets of a header line, which ends in NUL. These secrets are the value, and the part of the value after
  /// its last blank, such as the token in "Bearer token". From "Basic credentials" it also adds the decoded name and
  /// password. It adds nothing from `Content-Type` and `SOAPAction`, nor from an `Accept` without digits.
  package func addHeader(_ line: Secret) {
    line.withBytes { bytes in
      guard let colon = bytes.firstIndex(of: 0x3A) else { return }
      let name = UnsafeBufferPointer(rebasing: bytes[..<colon])
      var (start, end) = (colon + 1, max(colon + 1, bytes.count - 1))
      while start < end, bytes[start] <= 0x20 { start += 1 }
      while start < end, bytes[end - 1] <= 0x20 { end -= 1 }
      let value = UnsafeBufferPointer(rebasing: bytes[start..<end])
      if isNamed(name, "Content-Type") || isNamed(name, "SOAPAction") || (isNamed(name, "Accept") && !hasDigit(value)) {
        return
      }
      addValue(value)
      guard let blank = value.lastIndex(of: 0x20) else { return }
      let last = UnsafeBufferPointer(rebasing: value[(blank + 1)...])
      addValue(last)
      if isNamed(UnsafeBufferPointer(rebasing: value.prefix(5)), "Basic"), let credentials = Base64.decode(last) {
        credentials.withBytes { addCredentials($0) }
      }
    }
  }

  @inline(never)
  private func isNamed(_ name: UnsafeBufferPointer<UInt8>, _ word: StaticString) -> Bool {
    word.withUTF8Buffer { equalIgnoringCase(name, $0) }
  }

  /// Adds `name:password` as one secret, and the password alone as another.
  private func addCredentials(_ credentials: UnsafeBufferPointer<UInt8>) {
    add(Secret(credentials))
    guard let colon = credentials.firstIndex(of: 0x3A), colon + 1 < credentials.count else { return }
    add(Secret(UnsafeBufferPointer(rebasing: credentials[(colon + 1)...])))
  }

  /// Adds the credentials in the URL of a proxy.
  package func addProxy(_ url: UnsafeBufferPointer<UInt8>) {
    guard let end = url.lastIndex(of: 0x40) else { return }
    let start = url[..<end].lastIndex(of: 0x2F).map { $0 + 1 } ?? 0
    addCredentials(UnsafeBufferPointer(rebasing: url[start..<end]))
  }

  /// Adds the values in the query of a URL, and those segments of its path that have a digit and at least 8 bytes.
  package func addURL(_ url: UnsafeBufferPointer<UInt8>) {
    let query = url.firstIndex(of: 0x3F) ?? url.count
    var start = 0
    for at in 0...url.count where at == url.count || url[at] == 0x2F || url[at] == 0x26 || at == query {
      defer { start = at + 1 }
      guard start < at else { continue }
      let piece = UnsafeBufferPointer(rebasing: url[start..<at])
      let value = UnsafeBufferPointer(rebasing: piece[(piece.firstIndex(of: 0x3D).map { $0 + 1 } ?? 0)...])
      if start > query || (start > 8 && hasDigit(value) && value.count >= Self.part) { addValue(value) }
    }
  }

  private func hasDigit(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool { bytes.contains(where: isDigit) }

  private func lettersCount(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
    var count = 0
    for byte in bytes where isDigit(byte) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) { count += 1 }
    return count
  }

  /// Adds a payload or the body of a request. Its `BodyWords` count as secrets. The complete body counts as a secret
  /// too if a text repeats it in base64 or as hex numbers.
  package func addBody(_ body: Secret) {
    bodies.append(body)
    work += body.count
  }

  /// The number of letters and digits in a part of a secret.
  static var part: Int { 8 }
  /// The limit of `work`: 32 KiB of tokens and values, or 128 KiB of bodies. A search for so many secrets takes a few
  /// milliseconds. Above this limit, `mark` does not search, because the I/O thread would be late for other servers.
  private static var mostWork: Int { 1 << 17 }

  /// Marks the bytes of a text that repeat a part of a secret. The text may repeat the part unchanged, in base64, or as
  /// a list of numbers, one for each byte.
  /// - Returns: false if the secrets together are too large; the function has then not searched the text.
  func mark(_ text: UnsafeBufferPointer<UInt8>, in marks: inout [Bool]) -> Bool {
    guard work > 0 else { return true }
    guard work <= Self.mostWork else { return false }
    for compared in [.lettersAndDigits, .nonZeroDigits, .allButBlanks] as [SecretSearch.Compared] {
      var search = SecretSearch(text, compared)
      for word in words { word.withBytes { search.findWord($0) } }
      for body in bodies { body.withBytes { search.findBody($0) } }
      search.end(&marks)
    }
    return true
  }
}
