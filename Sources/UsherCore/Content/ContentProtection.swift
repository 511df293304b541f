/// A `ContentProtection` element of a DASH manifest.
package struct ContentProtection: Equatable, Sendable {
  package enum Failure: Error, Equatable, Sendable {
    /// The manifest has more than `mostBytes`.
    case tooLong
  }

  package static var mostBytes: Int { 1 << 20 }
  package static var mostElements: Int { 4096 }

  /// The value of `schemeIdUri`, unchanged.
  package private(set) var schemeID: [UInt8] = []
  /// The attribute `value`, unchanged; empty if the element has none. If `isCommon` is true, this is the encryption
  /// scheme (`cenc`, `cbcs` …).
  package private(set) var value: [UInt8] = []
  /// Whether the element describes common encryption instead of a key system. Usually only such an element has default
  /// key ids.
  package private(set) var isCommon = false
  package private(set) var systemID: UUIDBytes?
  package private(set) var defaultKeyIDs: [UUIDBytes] = []
  package private(set) var pssh: [PSSH] = []
  package private(set) var playReady: PlayReadyHeader?
  /// The URL of the licence server; empty if there is none.
  package private(set) var licenseURL: [UInt8] = []
  /// The number of the parent element. Two elements with the same number belong to the same AdaptationSet or
  /// Representation.
  package let group: Int

  /// The key system; nil if `isCommon` is true, and for systems that the library does not know.
  package var keySystem: KeySystem? { systemID.flatMap { KeySystem($0) } }

  /// The default key ids of the element, then those of its `pssh` boxes and of its PlayReady header, without
  /// duplicates.
  package var keyIDs: [UUIDBytes] {
    var all = defaultKeyIDs
    for box in pssh { for id in box.keyIDs { all.appendOnce(id) } }
    for id in playReady?.keyIDs ?? [] { all.appendOnce(id) }
    return all
  }

  /// Reads the elements of a manifest, or of a part of a manifest, in order; at most `mostElements`. The text may end
  /// inside the last element.
  package static func all(in xml: UnsafeBufferPointer<UInt8>) throws(Failure) -> [ContentProtection] {
    guard xml.count <= mostBytes else { throw .tooLong }
    var reader = Reader()
    var scanner = XMLScanner(xml)
    while reader.found.count < mostElements, let token = scanner.next() { reader.read(token) }
    reader.end()
    return reader.found
  }

  private init(_ tag: XMLScanner.Tag, group: Int) {
    self.group = group
    schemeID = tag.attribute("schemeIdUri") ?? []
    value = tag.attribute("value") ?? []
    let common: StaticString = "urn:mpeg:dash:mp4protection:2011"
    isCommon = common.withUTF8Buffer { equalIgnoringCase(schemeID, $0) }
    systemID = UUIDBytes(text: schemeID)
    for text in (tag.attribute("default_KID") ?? []).split(whereSeparator: isXMLBlank) {
      if let id = UUIDBytes(text: text) { defaultKeyIDs.appendOnce(id) }
    }
  }

  private enum Child { case pssh, pro, licenseURL, other }

  private struct Reader {
    private(set) var found: [ContentProtection] = []
    private var current: ContentProtection?
    private var child = Child.other
    private var text: [UInt8] = []
    /// The numbers of the XML elements that the reader is inside, outermost first.
    private var open: [Int] = []
    private var last = 0

    mutating func read(_ token: XMLScanner.Token) {
      switch token {
      case .open(let tag):
        if tag.isNamed("ContentProtection") {
          end()
          current = ContentProtection(tag, group: open.last ?? 0)
          if tag.isEmpty { end() }
        } else if current != nil {
          endChild()
          child = kind(tag)
          if child == .licenseURL, let url = tag.attribute("licenseUrl") { take(url) }
          if tag.isEmpty { child = .other }
        }
        if !tag.isEmpty {
          last += 1
          open.append(last)
        }
      case .text(let piece):
        if child != .other { text += piece.decoded() }
      case .close(let name):
        endChild()
        if name.isNamed("ContentProtection") { end() }
        _ = open.popLast()
      }
    }

    mutating func end() {
      endChild()
      if let current { found.append(current) }
      current = nil
    }

    private func kind(_ tag: XMLScanner.Tag) -> Child {
      if tag.isNamed("pssh") { return .pssh }
      if tag.isNamed("pro") { return .pro }
      return tag.isNamed("laurl") ? .licenseURL : .other
    }

    private mutating func endChild() {
      switch child {
      case .pssh:
        if let current, current.pssh.isEmpty {
          self.current?.pssh = text.withUnsafeBufferPointer { PSSH.all(inBase64: $0) }
        }
      case .pro:
        let header = text.withUnsafeBufferPointer { Base64.decode($0) }?.withBytes { PlayReadyHeader($0) } ?? nil
        if let header { current?.playReady = header }
      case .licenseURL: take(text)
      case .other: break
      }
      child = .other
      text = []
    }

    private mutating func take(_ url: [UInt8]) {
      guard let current, current.licenseURL.isEmpty else { return }
      let trimmed = url.withUnsafeBufferPointer { XMLScanner.Text(bytes: $0, isLiteral: true).trimmed() }
      self.current?.licenseURL = trimmed
    }
  }
}
