/// The XML of a PlayReady server's reply.
package struct PlayReadyReply {
  package enum Kind: Sendable {
    /// A complete SOAP envelope, or a complete element that carries a licence.
    case license
    /// A SOAP fault.
    case fault
    case other
  }

  package private(set) var kind = Kind.other
  /// The text of the first `CustomData` element. If the reply is a licence, this text may be the session token.
  package private(set) var customData: Secret?
  /// The texts of a SOAP fault: its `faultcode` and `faultstring` (`Value` and `Text` in SOAP 1.2), and its
  /// `StatusCode`, such as `0x8004c600`.
  package private(set) var faultWords: Secret?

  private enum Field { case customData, faultWords }

  package init(_ xml: UnsafeBufferPointer<UInt8>) {
    var scanner = XMLScanner(xml)
    var (isRoot, depth) = (true, 0)
    var field: Field?
    var (data, words) = (GrowingText(), GrowingText())
    defer {
      data.end()
      words.end()
    }
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
        case .customData: data.append(text)
        case .faultWords: words.append(text, isSeparate: true)
        case nil: break
        }
      case .close:
        field = nil
        depth &-= 1
      }
    }
    // If a closing tag is missing, the server's reply was cut off. Then the text of an open `CustomData` element is
    // incomplete, and the reply does not count as a licence.
    customData = customData == nil || field == .customData ? nil : data.text
    if !words.isEmpty { faultWords = words.text }
    if depth > 0, kind == .license { kind = .other }
  }

  /// Collects a text that the reply has in several pieces, for example around a comment. When the text needs a larger
  /// buffer, this type wipes the old buffer.
  private struct GrowingText {
    private var bytes: [UInt8] = []

    var isEmpty: Bool { bytes.isEmpty }
    var text: Secret { bytes.withUnsafeBufferPointer { Secret($0) } }

    mutating func append(_ text: XMLScanner.Text, isSeparate: Bool = false) {
      var more = text.decoded()
      defer { wipe(&more) }
      let needed = bytes.count + more.count + 1
      if needed > bytes.capacity {
        var larger: [UInt8] = []
        larger.reserveCapacity(2 * needed)
        larger.append(contentsOf: bytes)
        wipe(&bytes)
        bytes = larger
      }
      if isSeparate, !bytes.isEmpty { bytes.append(0x20) }
      bytes.append(contentsOf: more)
    }

    mutating func end() { wipe(&bytes) }
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
    guard kind == .fault else { return nil }
    let isReason =
      tag.isNamed("faultcode") || tag.isNamed("Value") || tag.isNamed("faultstring") || tag.isNamed("Text")
      || tag.isNamed("StatusCode")
    return isReason ? .faultWords : nil
  }
}
