/// The XML of a PlayReady server's reply.
package struct PlayReadyReply {
  package enum Kind: Sendable {
    /// A SOAP envelope, or the element that carries a licence, with its closing tag.
    case license
    /// A SOAP fault.
    case fault
    case other
  }

  package private(set) var kind = Kind.other
  /// The text of the first `CustomData` element. In a licence it may hold the session token.
  package private(set) var customData: Secret?
  /// The words of a fault: `faultstring` (in SOAP 1.2 `Text`), and the `StatusCode`, such as `0x8004c600`.
  package private(set) var faultWords: Secret?

  private enum Field { case customData, faultWords }

  package init(_ xml: UnsafeBufferPointer<UInt8>) {
    var scanner = XMLScanner(xml)
    var (isRoot, depth) = (true, 0)
    var field: Field?
    while let token = scanner.next() {
      switch token {
      case .open(let tag):
        take(tag, isRoot: isRoot)
        isRoot = false
        if !tag.isEmpty { depth &+= 1 }
        field = tag.isEmpty ? nil : self.field(tag)
        if field == .customData { customData = Secret([]) }
      case .text(let text):
        switch field {
        case .customData: customData = PlayReadyReply.join(customData, text)
        case .faultWords: faultWords = PlayReadyReply.join(faultWords, text, separator: faultWords == nil ? 0 : 1)
        case nil: break
        }
      case .close:
        field = nil
        depth &-= 1
      }
    }
    // Without all closing tags, the end of the reply is missing.
    if field == .customData { customData = nil }
    if depth > 0, kind == .license { kind = .other }
  }

  private static func join(_ text: Secret?, _ more: XMLScanner.Text, separator: Int = 0) -> Secret {
    var decoded = more.decoded()
    defer { wipe(&decoded) }
    let start = (text?.count ?? 0) + separator
    return Secret(count: start + decoded.count) { target in
      if separator > 0 { target[start - 1] = 0x20 }
      text?.withBytes { copy($0, into: target) }
      decoded.withUnsafeBufferPointer { copy($0, into: target, at: start) }
    }
  }

  private mutating func take(_ tag: XMLScanner.Tag, isRoot: Bool) {
    if tag.isNamed("Fault") {
      kind = .fault
    } else if kind == .other,
      (isRoot && tag.isNamed("Envelope")) || tag.isNamed("AcquireLicenseResponse") || tag.isNamed("LicenseResponse")
        || tag.isNamed("License")
    {
      kind = .license
    }
  }

  private func field(_ tag: XMLScanner.Tag) -> Field? {
    if customData == nil, tag.isNamed("CustomData") { return .customData }
    let isReason = tag.isNamed("faultstring") || tag.isNamed("Text") || tag.isNamed("StatusCode")
    return kind == .fault && isReason ? .faultWords : nil
  }
}
