internal import UsherCore

/// What a host sees of an error body: a code and the words of known fields. Everything else in the body is ignored.
extension JSONValue {
  /// A service code; nil if the number has more than 7 digits, because a longer one could be a part of a secret.
  var serviceCode: Int64? { integer.flatMap { Self.code($0) } }

  static func code(_ number: Int64) -> Int64? { number.magnitude < 10_000_000 ? number : nil }

  /// The message of an error body, without secrets: the first of the fields that servers use, also one level down in
  /// `error`.
  func words(hiding secrets: HiddenSecrets) -> String? {
    let names: [StaticString] = ["message", "errorMessage", "detail", "title"]
    for object in [self, member("error")] {
      for name in names {
        if let said = object?.member(name)?.spoken(hiding: secrets) { return said }
      }
    }
    return member("error")?.spoken(hiding: secrets)
  }

  /// The cleaned text of a string; nil for an empty string and for a string that is only a number.
  func spoken(hiding secrets: HiddenSecrets) -> String? {
    guard numberInText == nil else { return nil }
    return withString { $0.isEmpty ? nil : secrets.cleaned($0) } ?? nil
  }
}
