// Fuzz targets for the replies of session manager, licence, certificate, key and entitlement servers. The first byte of
// an input selects status, call and key system.
@testable import UsherCore
@testable import UsherEngine

private let statuses: [Int32] = [200, 200, 204, 299, 301, 400, 401, 403, 429, 500, 503, 504]
private let sent = Secret(Array("s3cretT0kenOfTheRequest".utf8))

private func response(_ choice: Int, _ body: Bytes, media: MediaType = .other) -> HTTPResponse {
  let header = choice & 1 == 0 ? nil : Secret(Array(body.prefix(9)))
  return HTTPResponse(status: statuses[choice % statuses.count], body: Secret(body), header: header, media: media)
}

func readSSMReply(_ bytes: Bytes) {
  guard let (choice, body) = choices(bytes) else { return }
  let response = response(choice / 3, body)
  let call = [SSMSession.Call.setup, .heartbeat, .teardown][choice % 3]
  look(atDepthOf: body)
  switch ReplyDecoder.ssm(.response(response), call, hiding: ReplySecrets.these(HiddenSecrets([sent]))) {
  case .failure(let failure): check(failure, response)
  case .success(let fields):
    check(fields, response)
    must(call != .teardown || fields.token == nil, "a teardown reply gives no token")
    must(call != .heartbeat || !fields.isTokenUnusable, "a heartbeat reply with an unusable token is a failure")
    readAgain(fields)
  }
}

func readLicence(_ bytes: Bytes) {
  guard let (choice, body) = choices(bytes) else { return }
  let response = response(choice / 8 % 12, body, media: choice & 4 == 0 ? .other : .html)
  let keySystem = [KeySystem.fairPlay, .widevine, .playReady, .clearKey][choice % 4]
  look(atDepthOf: body)
  switch ReplyDecoder.license(
    .response(response), keySystem: keySystem, hiding: ReplySecrets.these(HiddenSecrets([sent])))
  {
  case .failure(let failure): check(failure, response)
  case .success(let reply):
    must(reply.data.count > 0 && reply.data.count <= body.count, "a licence is not empty, and no longer than its reply")
    if keySystem == .playReady || keySystem == .clearKey {
      let text = Secret(BodyFailure.withoutMark(body))
      must(reply.data.isEqual(to: text), "a licence for this key system is the reply without a byte order mark")
    }
    check(reply.fields, response)
    guard keySystem == .fairPlay || keySystem == .widevine else { return }
    let again = TextSink.secret { sink in
      sink.add(keySystem == .fairPlay ? "{\"CkcMessage\":\"" : "{\"license\":[\"")
      reply.data.withBytes { sink.addBase64($0) }
      sink.add(keySystem == .fairPlay ? "\"}" : "\"]}")
    }
    let whole = HTTPOutcome.response(HTTPResponse(status: 200, body: again))
    guard
      case .success(let second) = ReplyDecoder.license(
        whole, keySystem: keySystem, hiding: ReplySecrets.these(HiddenSecrets()))
    else {
      return must(false, "a licence can be read after writing")
    }
    must(second.data.isEqual(to: reply.data), "writing and reading a licence gives the same licence")
  }
}

private func check(_ fields: SessionFields, _ response: HTTPResponse) {
  must(response.status >= 200 && response.status < 300, "only 2xx is a success")
  guard let token = fields.token else { return }
  must(token.withBytes(isHeaderSafe) && token.count <= response.body.count, "a session token is valid in a header")
}

private func check(_ failure: WireFailure, _ response: HTTPResponse) {
  shown(failure.message)
  must(failure.httpStatus == response.status, "the error has the HTTP status")
  must(failure.status != .refused || failure.serviceCode != 0 || !failure.message.isEmpty, "a refusal says why")
  switch response.status {
  case 200..<300:
    must(failure.status == .refused || failure.status == .protocolError, "a 2xx fails because of its body")
  case 300..<400: must(failure.status == .redirect, "a redirect fails with the status REDIRECT")
  default: must(failure.status == .refused || failure.status == .http, "another status is a refusal")
  }
}

/// The reader accepts JSON at most 32 levels deep, since deeper input could exhaust the stack.
private func look(atDepthOf text: Bytes) {
  var (depth, deepest, isInString, isEscaped) = (0, 0, false, false)
  for byte in text {
    if isInString {
      if !isEscaped && byte == 0x22 { isInString = false }
      isEscaped = !isEscaped && byte == 0x5C
    } else if byte == 0x22 {
      isInString = true
    } else if byte == 0x7B || byte == 0x5B {
      depth += 1
      deepest = max(deepest, depth)
    } else if byte == 0x7D || byte == 0x5D {
      depth -= 1
    }
  }
  must(deepest <= 32 || JSONDocument.parse(text) == nil, "JSON is read at most 32 levels deep")
}

private func readAgain(_ fields: SessionFields) {
  guard let token = fields.token, token.withBytes(UTF8Text.isValid) else { return }
  let text = TextSink.secret { sink in
    sink.add("{\"sessionToken\":")
    token.withBytes { sink.addJSON($0) }
    sink.add(",\"heartbeat\":60}")
  }
  guard
    case .success(let again) = ReplyDecoder.ssm(
      .response(HTTPResponse(status: 200, body: text)), .setup, hiding: ReplySecrets.these(HiddenSecrets()))
  else {
    return must(false, "a session can be read after writing")
  }
  must(
    again.token?.isEqual(to: token) ?? false && again.period == .number(60),
    "writing and reading a session gives the same session")
}

func readCustomData(_ bytes: Bytes) {
  guard let text = PlayReadyReply(bytes).customData else { return }
  must(text.count <= bytes.count, "a text is a part of its XML")
  var xml = Array("<a:CustomData>".utf8)
  text.withBytes {
    for byte in $0 { xml += byte == 0x3C ? Array("&lt;".utf8) : byte == 0x26 ? Array("&amp;".utf8) : [byte] }
  }
  xml += Array("</a:CustomData>".utf8)
  must(
    reading(xml) { PlayReadyReply($0).customData }?.isEqual(to: text) ?? false,
    "writing and reading a text gives the same text")
}

func readCKC(_ bytes: Bytes) {
  guard let (choice, body) = choices(bytes) else { return }
  var format = FPSResponseFormat()
  format.encoding = FPSResponseFormat.Encoding.allCases[choice % 5]
  if choice & 0x80 != 0 { format.keyPath = FPSResponseFormat.keyPath(Array("a.1.b".utf8)) ?? [] }
  guard let ckc = try? format.ckc(body) else { return }
  must(ckc.count > 0 && ckc.count <= body.count, "a CKC is not empty, and no longer than its reply")
  for (before, after) in [("{\"ckc\":\"", "\"}"), ("<ckc>", "</ckc>")] as [(StaticString, StaticString)] {
    let text = TextSink.secret { sink in
      sink.add(before)
      ckc.withBytes { sink.addBase64($0) }
      sink.add(after)
    }
    let again = text.withBytes { try? FPSResponseFormat().ckc($0) }
    must(again?.isEqual(to: ckc) ?? false, "the automatic format finds a wrapped CKC")
  }
}

func readCertificate(_ bytes: Bytes) {
  guard let (choice, body) = choices(bytes) else { return }
  let response = response(choice, body)
  switch ReplyDecoder.certificate(response, hiding: ReplySecrets.these(HiddenSecrets())) {
  case .failure(let failure): check(failure, response)
  case .success(let certificate):
    must(
      certificate.count > 0 && certificate.count <= body.count,
      "a certificate is not empty, and no longer than its reply")
    let isUnchanged = certificate.isEqual(to: response.body)
    must(isUnchanged || !isDER(body), "a DER certificate is used unchanged")
    // There is one exception: the text before PEM may begin with the character 0, which is the first byte of DER.
    must(isUnchanged || body.first != 0x30 || hasPEM(body), "only PEM is decoded if the first byte is that of DER")
  }
}

/// Whether the bytes are one DER SEQUENCE of less than 65,536 bytes, and nothing else.
private func isDER(_ body: Bytes) -> Bool {
  let headers: [[UInt8]] = [
    [0x30, UInt8(clamping: body.count - 2)],
    [0x30, 0x81, UInt8(clamping: body.count - 3)],
    [0x30, 0x82, UInt8(truncatingIfNeeded: (body.count - 4) >> 8), UInt8(truncatingIfNeeded: body.count - 4)]
  ]
  let lengths = [0..<0x80, 0x80..<0x100, 0x100..<0x10000]
  return zip(headers, lengths).contains { $1.contains(body.count - $0.count) && body.starts(with: $0) }
}

private func hasPEM(_ body: Bytes) -> Bool {
  let begin = Array("-----BEGIN CERTIFICATE-----".utf8)
  return body.indices.contains { body[$0...].starts(with: begin) }
}

func readEntitlement(_ bytes: Bytes) {
  guard let id = UUIDBytes(text: Array("00112233-4455-4677-8899-aabbccddeeff".utf8)),
    let asked = try? SEESRequest(messageID: id, kind: .timeBased, contentID: [0x6D])
  else { return must(false, "the request can be built") }
  do {
    let url = try asked.tokenURL(in: bytes, hiding: ReplySecrets.these(HiddenSecrets([sent])))
    must(
      url.count > 0 && url.count <= TokenURL.mostBytes && url.withBytes { $0.allSatisfy { $0 > 0x20 && $0 < 0x7F } },
      "a token URL has no invalid byte and is not too long")
  } catch {
    if case .denied(_, let message) = error { shown(message) }
  }
}

func readExpressPlayError(_ bytes: Bytes) {
  let error = ExpressPlayError.read(bytes, hiding: ReplySecrets.these(HiddenSecrets([sent])))
  shown(error.message)
  guard error.code.magnitude < 1 << 40 else { return }
  let again = Array("{\"code\":\(error.code)}".utf8).withUnsafeBufferPointer {
    ExpressPlayError.read($0, hiding: ReplySecrets.these(HiddenSecrets()))
  }
  must(again.code == error.code, "writing and reading a number gives the same number")
}
