/// An `EXT-X-KEY` or `EXT-X-SESSION-KEY` line of an HLS playlist.
package struct HLSKey: Equatable, Sendable {
  package enum Method: Sendable { case none, aes128, sampleAES, sampleAESCTR, other }

  package enum Failure: Error, Equatable, Sendable {
    /// The playlist has more than `mostBytes`.
    case tooLong
    /// The URI that should replace a key URI (see `HLSRewrite`) is empty, or has a blank, a `"` or a control character.
    case badReplacement
  }

  package static var mostBytes: Int { 1 << 20 }

  package let method: Method
  /// The URI of the key, unchanged; empty if the line has none.
  package let uri: [UInt8]
  /// The key format, unchanged; `identity` if the line has none.
  package let keyFormat: [UInt8]
  /// The value of `KEYFORMATVERSIONS`, unchanged; empty if the line has none.
  package let keyFormatVersions: [UInt8]
  /// The initialisation vector, 16 bytes; nil if the line has no valid one.
  package let iv: [UInt8]?
  package let keyID: UUIDBytes?
  /// Whether the key applies to the whole presentation: the line is an `EXT-X-SESSION-KEY` of the multivariant
  /// playlist.
  package let isSession: Bool

  /// The key system; nil for the key format `identity` and for formats that the library does not know.
  package var keySystem: KeySystem? { keyFormat.withUnsafeBufferPointer { HLSKey.keySystem($0) } }

  /// Returns the URI if it has this scheme, otherwise nil.
  package func assetURL(scheme: [UInt8] = AssetID.fairPlayScheme) -> [UInt8]? {
    uri.withUnsafeBufferPointer { AssetID.start(in: $0, scheme: scheme) } > 0 ? uri : nil
  }

  /// The bytes of a `data:` URI: `pssh` boxes or a PlayReady object.
  package var initData: [UInt8]? { uri.withUnsafeBufferPointer { DataURI.decode($0) } }

  package var pssh: [PSSH] { initData.map { $0.withUnsafeBufferPointer { PSSH.all(in: $0) } } ?? [] }

  package var playReady: PlayReadyHeader? {
    guard keySystem == .playReady, let initData else { return nil }
    let boxed = pssh.first { $0.keySystem == .playReady }?.data
    return (boxed ?? initData).withUnsafeBufferPointer { PlayReadyHeader($0) }
  }

  /// The key ids of the line, then those of its `data:` URI, without duplicates.
  package var keyIDs: [UUIDBytes] {
    var all: [UUIDBytes] = keyID.map { [$0] } ?? []
    for box in pssh { for id in box.keyIDs { all.appendOnce(id) } }
    for id in playReady?.keyIDs ?? [] { all.appendOnce(id) }
    return all
  }

  /// Reads the key lines of a playlist, or a single key line, in order.
  package static func all(in playlist: UnsafeBufferPointer<UInt8>) throws(Failure) -> [HLSKey] {
    guard playlist.count <= mostBytes else { throw .tooLong }
    var lines = HLSKeyLines(playlist)
    var keys: [HLSKey] = []
    while let line = lines.next() { keys.append(HLSKey(playlist, line)) }
    return keys
  }

  init(_ playlist: UnsafeBufferPointer<UInt8>, _ line: HLSKeyLines.Line) {
    var attributes = HLSAttributes(playlist, in: line.attributes)
    var (method, uri, format, versions, iv, id):
      (Range<Int>?, Range<Int>?, Range<Int>?, Range<Int>?, Range<Int>?, Range<Int>?)
    while let attribute = attributes.next() {
      let name = playlist[attribute.name]
      func isNamed(_ word: StaticString) -> Bool { word.withUTF8Buffer { name.elementsEqual($0) } }
      if isNamed("METHOD") { method = method ?? attribute.value }
      if isNamed("URI") { uri = uri ?? attribute.value }
      if isNamed("KEYFORMAT") { format = format ?? attribute.value }
      if isNamed("KEYFORMATVERSIONS") { versions = versions ?? attribute.value }
      if isNamed("IV") { iv = iv ?? attribute.value }
      if isNamed("KEYID") { id = id ?? attribute.value }
    }
    self.method = HLSKey.method(method.map { playlist[$0] })
    self.uri = uri.map { Array(playlist[$0]) } ?? []
    keyFormat = format.map { Array(playlist[$0]) } ?? Array("identity".utf8)
    keyFormatVersions = versions.map { Array(playlist[$0]) } ?? []
    self.iv = iv.flatMap { HLSKey.sixteen(playlist[$0]) }
    keyID = id.flatMap { HLSKey.sixteen(playlist[$0]).flatMap { UUIDBytes($0) } ?? UUIDBytes(text: playlist[$0]) }
    isSession = line.isSession
  }

  private static func method(_ text: Slice<UnsafeBufferPointer<UInt8>>?) -> Method {
    guard let text else { return .other }
    func isNamed(_ word: StaticString) -> Bool { word.withUTF8Buffer { text.elementsEqual($0) } }
    if isNamed("NONE") { return .none }
    if isNamed("AES-128") { return .aes128 }
    if isNamed("SAMPLE-AES") { return .sampleAES }
    return isNamed("SAMPLE-AES-CTR") || isNamed("SAMPLE-AES-CENC") || isNamed("ISO-23001-7") ? .sampleAESCTR : .other
  }

  /// Reads a 128-bit number, written as `0x` and at most 32 hex digits.
  private static func sixteen(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> [UInt8]? {
    guard text.count > 2, text.count <= 34, text.first == 0x30, let mark = text.dropFirst().first,
      lowercased(mark) == 0x78
    else { return nil }
    var number = [UInt8](repeating: 0, count: 16)
    var place = 31
    for digit in text.dropFirst(2).reversed() {
      guard let four = hexValue(digit), place >= 0 else { return nil }
      number[place / 2] |= place % 2 == 1 ? four : four << 4
      place -= 1
    }
    return number
  }

  private static func keySystem(_ format: UnsafeBufferPointer<UInt8>) -> KeySystem? {
    func isNamed(_ word: StaticString) -> Bool { word.withUTF8Buffer { equalIgnoringCase(format, $0) } }
    if isNamed("com.apple.streamingkeydelivery") { return .fairPlay }
    if isNamed("com.microsoft.playready") { return .playReady }
    if isNamed("com.widevine") || isNamed("com.widevine.alpha") { return .widevine }
    if isNamed("org.w3.clearkey") { return .clearKey }
    return KeySystem(format)
  }
}

/// Reads `data:` URIs, such as `data:text/plain;base64,…`.
enum DataURI {
  static func decode(_ uri: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    let scheme: StaticString = "data:"
    guard scheme.withUTF8Buffer({ equalIgnoringCase(uri.prefix($0.count), $0) }), let comma = uri.firstIndex(of: 0x2C)
    else { return nil }
    let payload = PercentCoding.decode(uri[(comma + 1)...])
    let kind: StaticString = ";base64"
    guard kind.withUTF8Buffer({ equalIgnoringCase(uri[..<comma].suffix($0.count), $0) }) else { return payload }
    return payload.withUnsafeBufferPointer { Base64.decode($0) }?.withBytes { Array($0) }
  }
}
