internal import CCurl
internal import UsherCore

/// One request on one easy handle, and what came of it.
final class CurlTransfer {
  let id: TransferID
  let request: HTTPRequest
  let easy: OpaquePointer
  private let limit: Int
  private var body = SecretBuffer()
  private var isTooLarge = false
  private var sent = 0
  private var headers: UnsafeMutablePointer<curl_slist>?

  init(id: TransferID, request: HTTPRequest, easy: OpaquePointer, limit: Int) {
    self.id = id
    self.request = request
    self.easy = easy
    self.limit = limit
  }

  private var handle: UnsafeMutableRawPointer { UnsafeMutableRawPointer(easy) }

  func prepare(isFresh: Bool, avoidsProxy: Bool) {
    request.endpoint.url.withUnsafeBytes { _ = uc_set_string(handle, CURLOPT_URL, $0.baseAddress?.assumingMemoryBound(to: CChar.self)) }
    switch request.method {
    case .get: _ = uc_set_long(handle, CURLOPT_HTTPGET, 1)
    case .post:
      _ = uc_set_long(handle, CURLOPT_POST, 1)
      // Read through a callback that cannot rewind: when a kept connection dies, libcurl would otherwise send the request again by itself,
      // and the first one may have been acted on.
      _ = uc_set_pointer(handle, CURLOPT_POSTFIELDS, nil)
      _ = uc_set_off(handle, CURLOPT_POSTFIELDSIZE_LARGE, Int64(request.body?.count ?? 0))
      sent = 0
    }
    // A connection idle for long may be closing at the other end just now. What is not tried again by us gets one that was used lately.
    let hasBody = (request.body?.count ?? 0) > 0
    _ = uc_set_long(handle, CURLOPT_FRESH_CONNECT, isFresh || (request.method == .post && !hasBody) ? 1 : 0)
    _ = uc_set_long(handle, CURLOPT_FORBID_REUSE, 0)
    _ = uc_set_string(handle, CURLOPT_NOPROXY, avoidsProxy ? "*" : nil)
    _ = uc_set_long(handle, CURLOPT_MAXAGE_CONN, request.isUrgent ? 118 : 15)
    headers = curl_slist_append(nil, "Expect:")
    for line in request.headers {
      line.withBytes { bytes in
        guard let base = bytes.baseAddress else { return }
        headers = curl_slist_append(headers, UnsafeRawPointer(base).assumingMemoryBound(to: CChar.self)) ?? headers
      }
    }
    _ = uc_set_list(handle, CURLOPT_HTTPHEADER, headers)
    let me = Unmanaged.passUnretained(self).toOpaque()
    _ = uc_set_pointer(handle, CURLOPT_WRITEDATA, me)
    _ = uc_set_pointer(handle, CURLOPT_READDATA, me)
    _ = uc_set_pointer(handle, CURLOPT_PRIVATE, me)
  }

  /// The next part of the body.
  func give(_ target: UnsafeMutableBufferPointer<UInt8>) -> Int {
    guard let body = request.body else { return 0 }
    return body.withBytes { bytes in
      let count = min(target.count, bytes.count - sent)
      for index in 0..<max(count, 0) { target[index] = bytes[sent + index] }
      sent += max(count, 0)
      return max(count, 0)
    }
  }

  func take(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard body.count + bytes.count <= limit else {
      isTooLarge = true
      return false
    }
    body.append(bytes)
    return true
  }

  func release() {
    _ = uc_set_list(handle, CURLOPT_HTTPHEADER, nil)
    _ = uc_set_pointer(handle, CURLOPT_WRITEDATA, nil)
    _ = uc_set_pointer(handle, CURLOPT_READDATA, nil)
    _ = uc_set_pointer(handle, CURLOPT_PRIVATE, nil)
    if let headers { uc_list_wipe(headers) }
    headers = nil
  }

  func outcome(_ code: CURLcode) -> HTTPOutcome {
    let status = Int32(truncatingIfNeeded: uc_response_code(handle))
    if isTooLarge {
      return .failure(WireFailure(.tooLarge, httpStatus: status, mayHaveTakenEffect: true))
    }
    if code == CURLE_OK || (status >= 300 && code == CURLE_PARTIAL_FILE) {
      return .response(HTTPResponse(status: status, body: body.take(), retryAfter: retryAfter(), header: replyHeader()))
    }
    let words = curl_easy_strerror(code).map { String(cString: $0) } ?? ""
    return .failure(WireFailure(Self.status(code), message: words, mayHaveTakenEffect: mayHaveReachedServer))
  }

  /// Whether the server may have read the request. libcurl's result does not say it: where a kept connection died and a new one was refused, it tells
  /// of the new one only. The body is asked for when the connection stands and the headers are on their way.
  var mayHaveReachedServer: Bool { request.body.map { $0.count > 0 } ?? false ? sent > 0 : uc_ready_after(handle) > 0 }

  private func retryAfter() -> Milliseconds? {
    guard let text = uc_response_header(handle, "Retry-After") else { return nil }
    var seconds: Milliseconds = 0
    var index = 0
    while index < 10, isDigit(UInt8(bitPattern: text[index])) {
      seconds = seconds &* 10 &+ Milliseconds(UInt8(bitPattern: text[index]) & 15)
      index += 1
    }
    return index == 0 || text[index] != 0 ? nil : seconds &* 1000
  }

  private func replyHeader() -> Secret? {
    request.replyHeader?.withUnsafeBytes { name -> Secret? in
      guard let base = name.baseAddress, let text = uc_response_header(handle, base.assumingMemoryBound(to: CChar.self)) else { return nil }
      var count = 0
      while text[count] != 0 { count += 1 }
      return UnsafeRawPointer(text).withMemoryRebound(to: UInt8.self, capacity: max(count, 1)) { Secret(UnsafeBufferPointer(start: $0, count: count)) }
    } ?? nil
  }

  private static func status(_ code: CURLcode) -> Status {
    switch code {
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_SHUTDOWN_FAILED,
      CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
      return .tls
    default: return .transport
    }
  }
}
