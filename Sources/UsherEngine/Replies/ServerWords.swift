internal import UsherCore

/// The parts of an error body that a host sees: a code, and the texts of known fields. The library ignores everything
/// else in the body.
extension JSONValue {
  /// The whole number in this value, which is a number or a text with a number. nil if the number has more than 7
  /// digits, because a longer number could be a part of a secret.
  var serviceCode: Int64? {
    @inline(never) get { (number ?? numberInText).flatMap { Int64(exactly: $0) }.flatMap { Self.code($0) } }
  }

  @inline(never)
  func code(_ name: StaticString) -> Int64? { member(name)?.serviceCode }

  static func code(_ number: Int64) -> Int64? { number.magnitude < 10_000_000 ? number : nil }

  /// The code of an error body; nil for 0. The code is `errorCode`, or else `code` or `error_code`, at the top or one
  /// level down. `code` and `error_code` count only if the number is in a range that session managers, licence servers
  /// or ExpressPlay use, because other servers write an HTTP status or a code for success there.
  var refusalCode: Int64? {
    for place in 0..<Self.errorPlaces {
      guard let object = errorObject(place) else { continue }
      if let code = object.code("errorCode"), code != 0 { return code }
      if let code = object.knownCode("code") { return code }
      if let code = object.knownCode("error_code") { return code }
    }
    return nil
  }

  @inline(never)
  private func knownCode(_ name: StaticString) -> Int64? {
    guard let code = code(name), code <= -1000 || (1000..<5000).contains(code) else { return nil }
    return code
  }

  /// The message of an error body, without secrets: the first of the fields in which servers write a message, at the
  /// top or one level down. `href` and `type` are links to a description of the error.
  func words(hiding secrets: HiddenSecrets) -> String? {
    let names: [StaticString] = [
      "message", "errorMessage", "error_description", "error", "detail", "title", "href", "type"
    ]
    for place in 0..<Self.errorPlaces {
      guard let object = errorObject(place) else { continue }
      for name in names {
        if let said = object.member(name)?.spoken(hiding: secrets) { return said }
      }
    }
    return nil
  }

  private static var errorPlaces: Int { 6 }

  /// Returns the object in which a server may have written an error. Place 0 is this value; the other places are
  /// objects inside it. nil if this value has no such object.
  @inline(never)
  private func errorObject(_ place: Int) -> JSONValue? {
    switch place {
    case 0: return self
    case 1: return member("error")
    case 2: return member("errorResponse")
    case 3: return member("status")
    case 4: return member("result")
    default: return member("errors")?.element(0)
    }
  }

  /// The cleaned text of a string; nil for an empty string and for a string that is only a number.
  func spoken(hiding secrets: HiddenSecrets) -> String? {
    guard numberInText == nil else { return nil }
    return withString { $0.isEmpty ? nil : secrets.cleaned($0) } ?? nil
  }
}
