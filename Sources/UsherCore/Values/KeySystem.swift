/// The key systems, with their DASH ContentProtection identifiers in the spelling that hosts get: upper case.
package enum KeySystem: UInt8, Sendable, CaseIterable {
  case fairPlay, widevine, playReady, clearKey

  package var identifier: StaticString {
    switch self {
    case .fairPlay: return "94CE86FB-07FF-4F43-ADB8-93D2FA968CA2"
    case .widevine: return "EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED"
    case .playReady: return "9A04F079-9840-4286-AB92-E65BE0885F95"
    case .clearKey: return "1077EFEC-C0B2-4D02-ACE3-3C1E52E2FB4B"
    }
  }

  /// Reads an identifier in upper or lower case, with or without `urn:uuid:`.
  package init?(_ text: UnsafeBufferPointer<UInt8>) {
    let prefix: StaticString = "urn:uuid:"
    var rest = text[...]
    let hasPrefix = prefix.withUTF8Buffer { p in text.count > p.count && equalIgnoringCase(text[0..<p.count], p) }
    if hasPrefix { rest = text[prefix.utf8CodeUnitCount...] }
    for candidate in KeySystem.allCases where candidate.identifier.withUTF8Buffer({ equalIgnoringCase($0, rest) }) {
      self = candidate
      return
    }
    return nil
  }
}
