internal import UsherCore

/// A W3C Clear Key licence: a JSON Web Key set.
package enum ClearKeyLicense {
  /// Why a licence cannot be read, in words that show nothing of the licence.
  package struct Fault: Error { package let words: [UInt8] }

  /// How many bytes json-c may need in addition to four times the size of the text; see `JSONCost`. json-c needs about
  /// 2 kB for each key, which is much more than the text of the key.
  static var allowance: Int { 1 << 22 }

  /// Calls `take` for each key of the licence, with the key id and the key; each has 16 bytes, which are valid until
  /// `take` returns.
  package static func read(
    _ text: UnsafeBufferPointer<UInt8>, _ take: (UnsafeBufferPointer<UInt8>, UnsafeBufferPointer<UInt8>) -> Void
  ) throws(Fault) {
    guard let document = JSONDocument.parse(text, allowance: allowance) else { throw fault("the licence is not JSON") }
    guard let keys = document.root.member("keys"), let count = keys.arrayCount else {
      throw fault("the licence has no array \"keys\"")
    }
    var isEmpty = true
    for index in 0..<count {
      guard let entry = keys.element(index), entry.isObject else { throw fault("not an object", index) }
      if let kind = entry.member("kty"), !kind.isText("oct") { continue }
      let id = try bytes(entry.member("kid"), index, ".kid")
      let key = try bytes(entry.member("k"), index, ".k")
      id.withBytes { id in key.withBytes { key in take(id, key) } }
      isEmpty = false
    }
    if isEmpty { throw fault("the licence has no keys") }
  }

  @inline(never)
  private static func bytes(_ value: JSONValue?, _ index: Int, _ name: StaticString) throws(Fault) -> Secret {
    guard let decoded = value?.withString({ Base64.decode($0) }) else {
      throw fault("missing, or no text", index, name)
    }
    guard let decoded else { throw fault("not base64url", index, name) }
    guard decoded.count == 16 else {
      throw fault(" bytes, but key ids and keys have 16", index, name, count: decoded.count)
    }
    return decoded
  }

  @inline(never)
  private static func fault(
    _ text: StaticString, _ index: Int? = nil, _ name: StaticString = "", count: Int? = nil
  ) -> Fault {
    var words = TextLine()
    if let index {
      words.add("keys[")
      words.add(UInt64(index.magnitude))
      words.add("]")
      words.add(name)
      words.add(": ")
    }
    if let count { words.add(UInt64(count.magnitude)) }
    words.add(text)
    return Fault(words: words.bytes)
  }
}
