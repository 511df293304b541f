package import UsherCore

/// The form in which a FairPlay key server sends its CKC.
package struct FPSResponseFormat: Sendable {
  package enum Encoding: UInt8, Sendable, CaseIterable {
    /// The first form that fits: a JSON object, a `<ckc>` element, base64, the bare bytes.
    case auto
    case raw, base64, element, json
  }

  package typealias Failure = BodyFailure

  package var encoding = Encoding.auto
  /// The path from the root of the JSON to the CKC: names of members, or indexes in arrays. If it is empty, the decoder
  /// tries the usual names.
  package var keyPath: [[UInt8]] = []

  package init() {}

  /// Reads `a.b.0` as a key path; nil if a part is empty or has a NUL, or if there are more than 16 parts.
  package static func keyPath(_ text: [UInt8]) -> [[UInt8]]? {
    let parts = text.split(separator: 0x2E, omittingEmptySubsequences: false).map { Array($0) }
    guard parts.count <= 16, parts.allSatisfy({ !$0.isEmpty && !$0.contains(0) }) else { return nil }
    return parts
  }

  package func ckc(
    _ body: UnsafeBufferPointer<UInt8>, _ media: MediaType = .other
  ) throws(Failure) -> Secret {
    let text = BodyFailure.trimmed(body)
    switch encoding {
    case .raw: return try FPSResponseFormat.binary(body, media)
    case .base64: return try FPSResponseFormat.decode(text)
    case .element: return try FPSResponseFormat.element(text)
    case .json:
      guard !text.isEmpty else { throw .empty }
      guard let document = JSONDocument.parse(text), document.root.isObject else { throw .notJSON }
      return try member(document.root)
    case .auto: return try find(text, in: body, media)
    }
  }

  private func find(
    _ text: UnsafeBufferPointer<UInt8>, in body: UnsafeBufferPointer<UInt8>, _ media: MediaType
  ) throws(Failure) -> Secret {
    guard let first = text.first else { throw .empty }
    if first == 0x7B, let document = JSONDocument.parse(text), document.root.isObject {
      return try member(document.root)
    }
    if first == 0x3C, FPSResponseFormat.elementStart(text) != nil { return try FPSResponseFormat.element(text) }
    if let bare = FPSResponseFormat.bareBase64(text) { return bare }
    do throws(Failure) { return try FPSResponseFormat.binary(body, media) } catch {
      throw error == .text && first == 0x7B ? .notJSON : error
    }
  }

  private static func binary(
    _ body: UnsafeBufferPointer<UInt8>, _ media: MediaType
  ) throws(Failure) -> Secret {
    if let failure = BodyFailure.ofBinary(body, media) { throw failure }
    return Secret(body)
  }

  func member(_ root: JSONValue) throws(Failure) -> Secret {
    var found: JSONValue?
    if keyPath.isEmpty {
      found = root.member("CkcMessage") ?? root.member("ckc") ?? root.member("License")
    } else {
      found = root
      for name in keyPath { found = found.flatMap { FPSResponseFormat.step($0, name) } }
    }
    guard let text = found, text.isString else { throw .noMember }
    return try FPSResponseFormat.judged(text.withString { Base64.decode($0) } ?? nil)
  }

  private static func step(_ value: JSONValue, _ name: [UInt8]) -> JSONValue? {
    guard let count = value.arrayCount else { return value.member(at: [name + [0]]) }
    guard name.count <= 6, name.allSatisfy(isDigit) else { return nil }
    let index = name.reduce(0) { $0 * 10 + Int($1 & 15) }
    return index < count ? value.element(index) : nil
  }

  private static func decode(_ text: UnsafeBufferPointer<UInt8>) throws(Failure) -> Secret {
    try judged(Base64.decode(text))
  }

  private static func judged(_ decoded: Secret?) throws(Failure) -> Secret {
    guard let decoded else { throw .notBase64 }
    guard decoded.count > 0 else { throw .empty }
    guard BodyFailure.isBinary(decoded) else { throw .noMember }
    return decoded
  }

  /// Decodes a reply that is only base64, in one or more lines. Returns nil if the result cannot be a CKC: then the
  /// reply only looks like base64.
  private static func bareBase64(_ text: UnsafeBufferPointer<UInt8>) -> Secret? {
    guard !text.contains(where: { $0 == 0x20 || $0 == 0x09 }), let ckc = Base64.decode(text) else { return nil }
    return BodyFailure.isBinary(ckc) ? ckc : nil
  }

  /// Returns the index of the first byte inside the first `<ckc>` element.
  private static func elementStart(_ text: UnsafeBufferPointer<UInt8>) -> Int? {
    findIgnoringCase("<ckc>", in: text).map { $0 + 5 }
  }

  private static func element(_ text: UnsafeBufferPointer<UInt8>) throws(Failure) -> Secret {
    guard !text.isEmpty else { throw .empty }
    guard let start = elementStart(text), let end = findIgnoringCase("</ckc>", in: text, from: start) else {
      throw .noElement
    }
    return try decode(UnsafeBufferPointer(rebasing: text[start..<end]))
  }
}
