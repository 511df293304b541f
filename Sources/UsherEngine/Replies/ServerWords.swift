internal import UsherCore

/// What a host sees of an error body: a code and the words of known fields. Everything else in the body is ignored.
extension JSONValue {
  /// The whole number that this value is or contains as text; nil if it has more than 7 digits, because a longer number
  /// could be a part of a secret.
  var serviceCode: Int64? {
    @inline(never) get { (number ?? numberInText).flatMap { Int64(exactly: $0) }.flatMap { Self.code($0) } }
  }

  @inline(never)
  func code(_ name: StaticString) -> Int64? { member(name)?.serviceCode }

  static func code(_ number: Int64) -> Int64? { number.magnitude < 10_000_000 ? number : nil }

  /// The code of an error body: `errorCode`, or `code` if that is one of the codes of session managers, licence servers
  /// or ExpressPlay, since other servers write an HTTP status or a code for success there; also one level down. Nil for
  /// 0.
  var refusalCode: Int64? {
    for place in 0..<Self.errorPlaces {
      guard let object = errorObject(place) else { continue }
      if let code = object.code("errorCode"), code != 0 { return code }
      if let code = object.code("code"), code <= -1000 || (1000..<5000).contains(code) { return code }
    }
    return nil
  }

  /// The message of an error body, without secrets: the first of the fields that servers use, also one level down. The
  /// last two are links to a description, which problem+json (RFC 9457) may have.
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

  private static var errorPlaces: Int { 4 }

  /// This value, or one of the objects inside it in which servers put an error.
  @inline(never)
  private func errorObject(_ place: Int) -> JSONValue? {
    switch place {
    case 0: return self
    case 1: return member("error")
    case 2: return member("errorResponse")
    default: return member("errors")?.element(0)
    }
  }

  /// The cleaned text of a string; nil for an empty string and for a string that is only a number.
  func spoken(hiding secrets: HiddenSecrets) -> String? {
    guard numberInText == nil else { return nil }
    return withString { $0.isEmpty ? nil : secrets.cleaned($0) } ?? nil
  }
}
