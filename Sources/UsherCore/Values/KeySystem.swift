/// The key systems, with their DASH ContentProtection identifiers.
package enum KeySystem: UInt8, Sendable, CaseIterable {
  case fairPlay, widevine, playReady, clearKey

  package var identifier: StaticString {
    switch self {
    case .fairPlay: return "94ce86fb-07ff-4f43-adb8-93d2fa968ca2"
    case .widevine: return "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"
    case .playReady: return "9a04f079-9840-4286-ab92-e65be0885f95"
    case .clearKey: return "1077efec-c0b2-4d02-ace3-3c1e52e2fb4b"
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
