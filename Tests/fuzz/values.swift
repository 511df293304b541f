// Fuzz targets for URLs, headers, messages, requests to key servers and the token map.
import Glibc

@testable import UsherCore
@testable import UsherEngine

/// The allow-list and libcurl must find the same host in a URL, since libcurl connects to the host that libcurl finds.
func readURL(_ bytes: Bytes) {
  var list = AllowList()
  _ = list.add(Bytes(rebasing: bytes.prefix(24)))
  _ = try? list.check(bytes)
  list = AllowList()
  let pattern: StaticString = "*.example.com:*"
  _ = pattern.withUTF8Buffer { list.add($0) }
  if let target = try? list.check(bytes) {
    must(target.host.suffix(12) == Array(".example.com".utf8)[...], "the allow-list allows only its hosts")
  }
  agree(bytes)
  if let inner = TokenURL.url(in: bytes) {
    must(
      inner.count <= TokenURL.mostBytes + 8 && !inner.contains(0x23),
      "a token URL is a part of its skd: URL, without a fragment")
    reading(inner, agree)
  }
  if let value = TokenURL.queryValue("cid", in: bytes) {
    must(value.count < bytes.count, "a value is a part of its query")
  }
  guard let url = URLText(Array(bytes)), (try? Endpoint.checked(url, insecure: true)) != nil else { return }
  must(url.bytes.count <= bytes.count, "a URL does not grow")
  for rule in [URLText.VersionRule.auto, .always, .never] {
    must(URLText(url.versioned(Array("v1".utf8), rule).bytes) != nil, "a URL made from a URL is valid")
  }
  let once = url.versioned(Array("v1".utf8), .auto)
  must(once.versioned(Array("v1".utf8), .auto) == once, "a version is added once")
  must(url.joining("x").adding("a=b").bytes.count <= bytes.count + 6, "only the path and the query pair are added")
}

private func agree(_ url: Bytes) {
  guard let target = try? AllowList.target(of: url), let text = URLText(Array(url)),
    let asked = (try? Endpoint.checked(text, insecure: true))?.origin
  else { return }
  must(asked.first == (target.isHTTPS ? 0x73 : 0x70), "the allow-list and libcurl read the same scheme")
  must(
    asked.suffix(2) == [UInt8(target.port >> 8), UInt8(target.port & 255)],
    "the allow-list and libcurl read the same port")
  var host = Array(asked.dropFirst().dropLast(3))
  if host.last == 0x2E { host.removeLast() }
  must(
    host == target.host || (address(host) != nil && address(host) == address(target.host)),
    "the allow-list and libcurl read the same host")
}

/// The binary form of an IPv6 address. The test compares the binary forms, since libcurl writes addresses in another
/// text form.
private func address(_ host: [UInt8]) -> [UInt8]? {
  guard host.first == 0x5B, host.last == 0x5D else { return nil }
  var address = [UInt8](repeating: 0, count: 16)
  let text = host.dropFirst().dropLast().map { CChar(bitPattern: $0) } + [0]
  return inet_pton(AF_INET6, text, &address) == 1 ? address : nil
}

/// Checks which texts are valid in a header, and which part of a server's message a host may see. The first byte of the
/// input selects how many of the other bytes are the token that the library sent.
func readText(_ bytes: Bytes) {
  must(
    isHeaderSafe(bytes)
      == (bytes.contains { $0 > 0x20 } && bytes.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }),
    "a header has no line break")
  let coded = PercentCoding.decode(bytes)
  must(coded.count <= bytes.count, "a decoded text does not grow")
  if let decoded = Base64.decode(bytes) {
    must(decoded.count <= bytes.count * 3 / 4, "decoding base64 makes it shorter")
    let text = TextSink.secret { sink in decoded.withBytes { sink.addBase64($0) } }
    must(
      text.withBytes { Base64.decode($0) }?.isEqual(to: decoded) ?? false,
      "encoding and decoding base64 gives the same bytes")
  }
  guard let (size, rest) = choices(bytes) else { return }
  let secret = Array(rest.prefix(size))
  let message = HiddenSecrets([Secret(secret)]).cleaned(Bytes(rebasing: rest.dropFirst(size)))
  shown(message)
  guard !message.hasSuffix("it may repeat a secret") else { return }
  let (said, kept) = (letters(Array(message.utf8)), letters(secret))
  guard kept.count >= 8 else { return }
  said.withUnsafeBufferPointer { said in
    for at in 0...(kept.count - 8) {
      must(firstIndex(of: Array(kept[at..<(at + 8)]), in: said) == nil, "a message shows no part of the token")
    }
  }
}

private func letters(_ bytes: [UInt8]) -> [UInt8] {
  bytes.map { lowercased($0) }.filter { isDigit($0) || ($0 >= 0x61 && $0 <= 0x7A) }
}

/// Checks the properties of every server message that reaches a host.
func shown(_ message: String) {
  let bytes = Array(message.utf8)
  must(bytes.count <= 512, "a message has at most 512 bytes")
  must(bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F }, "a message is one line")
  var run = 0
  for byte in bytes {
    let isLetter =
      isDigit(byte) || (lowercased(byte) >= 0x61 && lowercased(byte) <= 0x7A)
      || [0x2B, 0x2D, 0x2E, 0x2F, 0x3D, 0x5F].contains(byte)
    run = isLetter ? run + 1 : 0
    must(run <= 40, "a message shows no text that looks like a token")
  }
}

func writeRequests(_ bytes: Bytes) {
  guard let (choice, rest) = choices(bytes) else { return }
  var format = FPSRequestFormat()
  format.members = choice % 2 == 0 ? Array("{\"a\":1}".utf8) : []
  format.fields = [FPSRequestFormat.Field([0x66] + rest.prefix(3), Secret(Array(rest.suffix(5))))]
  for encoding in FPSRequestFormat.Encoding.allCases {
    for urlEncoding in FPSRequestFormat.URLEncoding.allCases {
      (format.encoding, format.urlEncoding) = (encoding, urlEncoding)
      guard let body = try? format.body(rest) else { continue }
      must(body.count <= 9 * rest.count + 200, "a request is not much longer than its contents")
      guard encoding == .json else { continue }
      let payload = body.withBytes { text in
        JSONDocument.parse(text)?.root.member("spc")?.withString { Base64.decode($0) } ?? nil
      }
      must(payload?.isEqual(to: Secret(rest)) ?? false, "the request is JSON, and has the payload")
    }
  }
  guard let id = UUIDBytes(random: [UInt8](repeating: 9, count: 16)),
    let asked = try? SEESRequest(
      messageID: id, kind: .deviceBound, contentID: Array(rest), cookie: Array(rest.prefix(5)))
  else { return }
  let content = asked.body.withBytes { text in
    JSONDocument.parse(text)?.root.member("contentID")?.withString { Array($0) } ?? nil
  }
  must(content == Array(rest), "an entitlement request is JSON, and has the content id")
}

/// Calls the functions of the token map. Each step of the input consists of three bytes and a key.
func useTokenMap(_ bytes: Bytes) {
  let map = TokenMap(bound: 5, timeToLive: 9, seed: 4)
  var pins: [TokenMap.Pin] = []
  var at = 0
  while bytes.count - at > 3 {
    let key = Bytes(rebasing: bytes[(at + 2)..<min(bytes.count, at + 2 + Int(bytes[at + 1] & 15))])
    let now = Milliseconds(at / 8)
    switch bytes[at] % 7 {
    case 0, 1:
      let result = map.set(key, Secret(key), now: now)
      if result == .added || result == .replaced || result == .addedByPruning {
        must(map.get(key, now: now)?.isEqual(to: Secret(key)) ?? false, "get finds a token that was set")
      }
    case 2: _ = map.get(key, now: now)
    case 3:
      _ = map.remove(key, now: now)
      must(map.get(key, now: now) == nil, "get does not find a token that was removed")
    case 4: map.pin(key, now: now).map { pins.append($0) }
    case 5: pins.popLast().map { map.unpin($0) }
    default: if bytes[at] == 6 { map.clear() }
    }
    must(map.count(now: now) <= 5, "the map has at most its limit of entries")
    at += 3
  }
}
