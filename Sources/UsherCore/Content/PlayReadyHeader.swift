/// The header of a PlayReady object: XML in UTF-16LE with key ids and the licence server's URL.
package struct PlayReadyHeader: Equatable, Sendable {
  package let keyIDs: [UUIDBytes]
  /// The URL of the licence server; empty if there is none.
  package let licenseURL: [UInt8]
  /// The XML in UTF-8.
  package let xml: [UInt8]

  /// Reads a PlayReady object, or a header without the object around it; nil if there is no header.
  package init?(_ bytes: UnsafeBufferPointer<UInt8>) {
    guard let xml = PlayReadyHeader.utf8(PlayReadyHeader.record(bytes) ?? bytes), xml.contains(0x3C) else { return nil }
    let (ids, url) = xml.withUnsafeBufferPointer { PlayReadyHeader.read($0) }
    self.xml = xml
    keyIDs = ids
    licenseURL = url
  }

  /// Returns the first rights management header in a PlayReady object.
  private static func record(_ bytes: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8>? {
    var reader = ByteReader(bytes)
    guard reader.littleEndian(4) != nil, let count = reader.littleEndian(2) else { return nil }
    for _ in 0..<count {
      guard let type = reader.littleEndian(2), let size = reader.littleEndian(2), let value = reader.take(Int(size))
      else { return nil }
      if type == 1 { return value }
    }
    return nil
  }

  /// Converts UTF-16LE to UTF-8. A surrogate without its partner becomes U+FFFD. Returns nil for no bytes, for an odd
  /// number of bytes, and for more than 1 MiB.
  private static func utf8(_ bytes: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    guard bytes.count >= 2, bytes.count % 2 == 0, bytes.count <= 1 << 20 else { return nil }
    var units: [UInt16] = []
    units.reserveCapacity(bytes.count / 2)
    var reader = ByteReader(bytes)
    while let unit = reader.littleEndian(2) { units.append(UInt16(truncatingIfNeeded: unit)) }
    if units.first == 0xFEFF { units.removeFirst() }
    return Array(String(decoding: units, as: UTF16.self).utf8)
  }

  private enum Element { case keyID, licenseURL, other }

  private static func read(_ xml: UnsafeBufferPointer<UInt8>) -> (ids: [UUIDBytes], url: [UInt8]) {
    var scanner = XMLScanner(xml)
    var (ids, url): ([UUIDBytes], [UInt8]) = ([], [])
    var inside = Element.other
    func add(_ text: [UInt8]) {
      guard let guid = text.withUnsafeBufferPointer({ Base64.decode($0) })?.withBytes({ UUIDBytes($0) }) else { return }
      ids.appendOnce(guid.mixedEndian)
    }
    while let token = scanner.next() {
      switch token {
      case .open(let tag):
        inside = tag.isEmpty ? .other : tag.isNamed("KID") ? .keyID : tag.isNamed("LA_URL") ? .licenseURL : .other
        if tag.isNamed("KID"), let value = tag.attribute("VALUE") { add(value) }
      case .text(let text):
        if inside == .keyID { add(text.decoded()) }
        if inside == .licenseURL && url.isEmpty { url = text.trimmed() }
      case .close: inside = .other
      }
    }
    return (ids, url)
  }
}
