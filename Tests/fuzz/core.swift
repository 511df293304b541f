// The first byte of an input names the reader, the rest is what it reads. Run by Tests/fuzz/run.

@_cdecl("LLVMFuzzerTestOneInput")
public func readOneInput(_ pointer: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  guard let pointer, count > 0 else { return 0 }
  // A copy of just that size, so that the sanitizer sees a read beyond its end.
  let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: count - 1)
  copy.initialize(from: pointer + 1, count: count - 1)
  defer { copy.deallocate() }
  let bytes = UnsafeBufferPointer(start: UnsafePointer(copy), count: count - 1)
  switch pointer[0] % 8 {
  case 0: readAsset(bytes)
  case 1: readBoxes(bytes)
  case 2: readPlaylist(bytes)
  case 3: readManifest(bytes)
  case 4: readURL(bytes)
  case 5: writeRequests(bytes)
  case 6: useTokenMap(bytes)
  default:
    _ = CustomData.text(in: bytes)
    _ = Base64.decode(bytes)
    _ = sanitised(bytes, hiding: [Secret([0x61, 0x62])])
  }
  return 0
}

/// What must hold whatever is read.
func must(_ claim: Bool, _ what: StaticString) {
  if !claim { fatalError("\(what)") }
}

func readAsset(_ bytes: UnsafeBufferPointer<UInt8>) {
  if let asset = try? AssetID(bytes) { must(!asset.text.isEmpty && asset.text.count <= bytes.count, "an asset's text is some of its URL") }
  for variant in ContentIdentifier.allCases { _ = try? variant.bytes(of: bytes) { $0.count % 2 == 0 } }
  _ = TokenURL.url(in: bytes)
  _ = TokenURL.queryValue("cid", in: bytes)
  _ = UUIDBytes(text: bytes)
}

func readBoxes(_ bytes: UnsafeBufferPointer<UInt8>) {
  for box in PSSH.all(in: bytes) + PSSH.all(inBase64: bytes) {
    _ = (box.keyIDs, box.contentIdentifier)
    let again = box.version == 0 ? PSSH.make(box.systemID, data: box.data) : nil
    if let again { must(again.withUnsafeBufferPointer { PSSH.all(in: $0) }.first?.data == box.data, "a box that is written is read again") }
  }
  _ = TrackEncryption.all(in: bytes)
  _ = WidevineData(bytes)
  _ = PlayReadyHeader(bytes)?.keyIDs
}

func readPlaylist(_ bytes: UnsafeBufferPointer<UInt8>) {
  let keys = (try? HLSKey.all(in: bytes)) ?? []
  for key in keys { _ = (key.keySystem, key.keyIDs, key.playReady) }
  let same = try? HLSRewrite.rewrite(bytes) { _ in nil }
  must(same.map { $0.elementsEqual(bytes) } ?? false, "what is not replaced stays")
  let own = (try? HLSRewrite.rewrite(bytes) { $0.uri }) ?? Array(bytes)
  must((try? own.withUnsafeBufferPointer { try HLSKey.all(in: $0) }) == keys, "its own URI changes no key")
}

func readManifest(_ bytes: UnsafeBufferPointer<UInt8>) {
  for element in (try? ContentProtection.all(in: bytes)) ?? [] {
    must(element.licenseURL.count <= bytes.count, "a text does not grow")
    _ = (element.keySystem, element.keyIDs)
  }
}

func readURL(_ bytes: UnsafeBufferPointer<UInt8>) {
  var list = AllowList()
  _ = list.add(UnsafeBufferPointer(rebasing: bytes.prefix(24)))
  _ = try? list.check(bytes)
  list = AllowList()
  let pattern: StaticString = "*.example.com:*"
  _ = pattern.withUTF8Buffer { list.add($0) }
  if let target = try? list.check(bytes) { must(target.host.suffix(12) == Array(".example.com".utf8)[...], "only hosts of the list are allowed") }
}

func writeRequests(_ bytes: UnsafeBufferPointer<UInt8>) {
  var format = FPSRequestFormat()
  format.members = Array(bytes.prefix(30))
  format.fields = [FPSRequestFormat.Field(Array(bytes.prefix(3)), Secret(Array(bytes.suffix(5))))]
  for encoding in FPSRequestFormat.Encoding.allCases {
    for urlEncoding in FPSRequestFormat.URLEncoding.allCases {
      (format.encoding, format.urlEncoding) = (encoding, urlEncoding)
      _ = try? format.body(bytes)
    }
  }
  let coded = PercentCoding.decode(bytes)
  must(coded.count <= bytes.count, "a decoded text does not grow")
  if let id = UUIDBytes(random: [UInt8](repeating: 9, count: 16)) {
    _ = (try? SEESRequest(messageID: id, kind: .deviceBound, contentID: Array(bytes), cookie: Array(bytes.prefix(5))))?.body
  }
}

func useTokenMap(_ bytes: UnsafeBufferPointer<UInt8>) {
  let map = TokenMap(bound: 5, timeToLive: 9, seed: 4)
  var pins: [TokenMap.Pin] = []
  var at = 0
  while bytes.count - at > 3 {
    let key = UnsafeBufferPointer(rebasing: bytes[(at + 2)..<min(bytes.count, at + 2 + Int(bytes[at + 1] & 15))])
    let now = Milliseconds(at / 8)
    switch bytes[at] % 7 {
    case 0, 1: _ = map.set(key, Secret(key), now: now)
    case 2: _ = map.get(key, now: now)
    case 3: _ = map.remove(key, now: now)
    case 4: map.pin(key, now: now).map { pins.append($0) }
    case 5: pins.popLast().map { map.unpin($0) }
    default: if bytes[at] == 6 { map.clear() }
    }
    must(map.count(now: now) <= 5, "the bound holds")
    at += 3
  }
}
