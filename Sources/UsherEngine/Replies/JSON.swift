internal import CJSONC
internal import UsherCore

/// One JSON text, parsed by json-c. Its strings are wiped when the document is freed.
final class JSONDocument {
  private let raw: OpaquePointer

  private init(raw: OpaquePointer) { self.raw = raw }

  /// Parses the text. Returns nil unless the text is exactly one JSON value, at most 32 levels deep. If the text is
  /// longer than 4 KiB, also returns nil if json-c needs more memory for it than four times its size plus `allowance`.
  /// The text may begin with a byte order mark of UTF-8. (This is no failable initialiser, because in Embedded Swift a
  /// failable initialiser that fails leaks its object.)
  ///
  /// - Parameters:
  ///   - allowance: how many bytes json-c may need in addition to four times the size of the text.
  static func parse(_ text: UnsafeBufferPointer<UInt8>, allowance: Int = JSONCost.allowance) -> JSONDocument? {
    let bytes = BodyFailure.withoutMark(text)
    guard let base = bytes.baseAddress, bytes.count > 0, bytes.count < Int(Int32.max),
      JSONCost.isBounded(bytes, allowance)
    else {
      return nil
    }
    return json_shim_parse(UnsafeRawPointer(base).assumingMemoryBound(to: CChar.self), Int32(bytes.count)).map {
      JSONDocument(raw: $0)
    }
  }

  deinit { json_shim_free(raw) }

  var root: JSONValue { JSONValue(raw: raw, document: self) }
}

/// A value in a document; it keeps the document alive.
struct JSONValue {
  fileprivate let raw: OpaquePointer
  fileprivate let document: JSONDocument

  private var kind: Int32 { withExtendedLifetime(document) { json_shim_kind(raw) } }
  var isObject: Bool { kind == JSON_SHIM_OBJECT }
  var isNumber: Bool { kind == JSON_SHIM_NUMBER }
  var isString: Bool { kind == JSON_SHIM_STRING }

  /// Returns the member with this name; otherwise the first member whose name differs only in letter case.
  @inline(never)
  func member(_ name: StaticString) -> JSONValue? {
    name.withUTF8Buffer { bytes in
      guard let base = bytes.baseAddress else { return nil }
      return json_shim_member(raw, UnsafeRawPointer(base).assumingMemoryBound(to: CChar.self)).map {
        JSONValue(raw: $0, document: document)
      }
    }
  }

  /// Returns the member at the end of a path of names, each ending in NUL.
  func member(at path: [[UInt8]]) -> JSONValue? {
    withExtendedLifetime(document) {
      guard !path.isEmpty else { return nil }
      var found = raw
      for name in path {
        guard let next = Self.member(name, of: found) else { return nil }
        found = next
      }
      return JSONValue(raw: found, document: document)
    }
  }

  @inline(never)
  private static func member(_ name: [UInt8], of object: OpaquePointer) -> OpaquePointer? {
    guard name.last == 0 else { return nil }
    return name.withUnsafeBytes { bytes in
      bytes.baseAddress.flatMap { json_shim_member(object, $0.assumingMemoryBound(to: CChar.self)) }
    }
  }

  var number: Double? { isNumber ? withExtendedLifetime(document) { json_shim_double(raw) } : nil }
  var integer: Int64? { isNumber ? withExtendedLifetime(document) { json_shim_integer(raw) } : nil }
  var bool: Bool? { kind == JSON_SHIM_BOOLEAN ? json_shim_boolean(raw) != 0 : nil }
  /// A truth value in any of the forms that servers send: true, "true", "True", 1, "1".
  var flag: Bool? {
    if let bool { return bool }
    if let number = number ?? numberInText { return number != 0 }
    return withString { text in Self.spells(text, "true") ? true : Self.spells(text, "false") ? false : nil } ?? nil
  }

  /// Whether this is a string with exactly these bytes.
  func isText(_ word: StaticString) -> Bool {
    withString { text in word.withUTF8Buffer { text.elementsEqual($0) } } ?? false
  }

  private static func spells(_ text: UnsafeBufferPointer<UInt8>, _ word: StaticString) -> Bool {
    word.withUTF8Buffer { equalIgnoringCase(text, $0) }
  }
  var arrayCount: Int? { kind == JSON_SHIM_ARRAY ? json_shim_array_count(raw) : nil }
  /// Returns nil if this value is not an array. (json-c would end the process if it were asked for an element of
  /// another value.)
  @inline(never)
  func element(_ index: Int) -> JSONValue? {
    guard kind == JSON_SHIM_ARRAY else { return nil }
    return json_shim_array_element(raw, index).map { JSONValue(raw: $0, document: document) }
  }

  /// The number that a string contains.
  var numberInText: Double? {
    withString { text in JSONDocument.parse(text)?.root.number } ?? nil
  }

  func withString<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R? {
    guard isString, let text = json_shim_string(raw) else { return nil }
    let count = Int(json_shim_string_size(raw))
    return withExtendedLifetime(document) {
      UnsafeRawPointer(text).withMemoryRebound(to: UInt8.self, capacity: max(count, 1)) {
        body(UnsafeBufferPointer(start: $0, count: count))
      }
    }
  }
}

/// Returns whether a text is one JSON object.
package func isJSONObject(_ bytes: [UInt8]) -> Bool {
  bytes.withUnsafeBufferPointer { JSONDocument.parse($0)?.root.isObject ?? false }
}
