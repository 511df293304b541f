/// A `pssh` box: the data that one key system needs for a licence request.
package struct PSSH: Equatable, Sendable {
  package let systemID: UUIDBytes
  package let version: UInt8
  /// The key ids of the box itself; only a box of version 1 can have such key ids.
  package let listedKeyIDs: [UUIDBytes]
  package let data: [UInt8]
  /// The whole box, for the CDM.
  package let box: [UInt8]

  package var keySystem: KeySystem? { KeySystem(systemID) }

  /// The key ids of the box, then those of its data, without duplicates.
  @inline(never)
  package var keyIDs: [UUIDBytes] {
    var all = listedKeyIDs
    for id in dataKeyIDs { all.appendOnce(id) }
    return all
  }

  /// The content identifier in the data of the box; only Widevine data has one.
  package var contentIdentifier: [UInt8]? {
    guard keySystem == .widevine else { return nil }
    let content = widevine.contentID
    return content.isEmpty ? nil : content
  }

  package var widevine: WidevineData { data.withUnsafeBufferPointer { WidevineData($0) } }

  private var dataKeyIDs: [UUIDBytes] {
    switch keySystem {
    case .widevine: return widevine.keyIDs
    case .playReady: return data.withUnsafeBufferPointer { PlayReadyHeader($0) }?.keyIDs ?? []
    case .fairPlay, .clearKey, nil: return []
    }
  }

  /// Fails unless the box is a complete `pssh` box of version 0 or 1 with at most `mostKeyIDs` key ids.
  init?(_ box: Box) {
    guard box.type == .pssh else { return nil }
    var reader = ByteReader(box.payload)
    guard let version = reader.byte(), version <= 1, reader.take(3) != nil,
      let system = reader.take(16).flatMap({ UUIDBytes($0) })
    else { return nil }
    var listed: [UUIDBytes] = []
    if version == 1 {
      guard let count = reader.number(4), count <= UInt64(min(reader.left / 16, [UUIDBytes].mostKeyIDs)) else {
        return nil
      }
      for _ in 0..<count {
        guard let id = reader.take(16).flatMap({ UUIDBytes($0) }) else { return nil }
        listed.append(id)
      }
    }
    guard let size = reader.number(4), size <= UInt64(reader.left), let data = reader.take(Int(size)) else {
      return nil
    }
    systemID = system
    self.version = version
    listedKeyIDs = listed
    self.data = Array(data)
    self.box = Array(box.whole)
  }

  package static var mostBoxes: Int { 1024 }

  /// Finds the `pssh` boxes in a file, a segment or a sequence of boxes, also inside `moov` and `moof` boxes; at most
  /// `mostBoxes`. Skips a malformed `pssh` box, but stops at a box whose size is impossible.
  package static func all(in bytes: UnsafeBufferPointer<UInt8>) -> [PSSH] {
    var found: [PSSH] = []
    collect(bytes, depth: 0, &found)
    return found
  }

  /// Reads `pssh` boxes from base64 text, as manifests have them; returns an empty array if the text is not base64.
  package static func all(inBase64 text: UnsafeBufferPointer<UInt8>) -> [PSSH] {
    Base64.decode(text).map { $0.withBytes { all(in: $0) } } ?? []
  }

  private static func collect(_ bytes: UnsafeBufferPointer<UInt8>, depth: Int, _ found: inout [PSSH]) {
    Box.each(in: bytes) { box in
      if let one = PSSH(box) { found.append(one) }
      if depth == 0 && (box.type == .moov || box.type == .moof) { collect(box.payload, depth: 1, &found) }
      return found.count < mostBoxes
    }
  }
}
