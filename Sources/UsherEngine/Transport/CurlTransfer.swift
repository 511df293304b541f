internal import CCurl
internal import CPlatform
internal import UsherCore

/// One easy handle of libcurl, and the request in flight on it. If the next request on the handle goes to the same
/// endpoint, this type does not set the options of the endpoint again.
final class CurlTransfer {
  let easy: UnsafeMutableRawPointer
  private(set) var id: TransferID = 0
  /// The endpoint of the last request.
  private(set) var endpoint: Endpoint?
  private let limit: Int
  private let watchdog: TurnWatchdog
  /// How many bytes of header lines libcurl may still take for this reply, and how its body is coded.
  private let headers = UnsafeMutablePointer<curl_shim_headers>.allocate(capacity: 1)
  private static var headersMost: Int64 { 1 << 16 }
  nonisolated(unsafe) private static let handshakes = { () -> UnsafeMutablePointer<curl_shim_handshakes> in
    let all = UnsafeMutablePointer<curl_shim_handshakes>.allocate(capacity: 1)
    all.initialize(to: curl_shim_handshakes())
    return all
  }()
  private static let sslPending = curl_shim_find_ssl_pending()
  private static let mustCheckFirstLine = curl_shim_must_check_first_line() != 0
  private(set) var request: HTTPRequest?
  private var reply = SecretBuffer()
  private var isTooLarge = false
  /// Whether the engine may need long to handle the reply, because the reply is long or because the library searches
  /// its message for secrets. `outcome` sets this property.
  private(set) var isReplyLong = false
  /// How many times libcurl was ready to send the request.
  private var attempts = 0
  /// The local port of the connection that carries the request; 0: it has none yet.
  private(set) var localPort: Int32 = 0
  private var wasStopped = false
  /// The addresses that libcurl has tried for this retry, at most the last two: usually one of IPv6 and one of IPv4.
  private var tried: [curl_shim_address] = []
  /// A connected socket, which libcurl uses as its next connection; negative: there is none.
  private var connectedSocket: Int32 = -1
  private var handleOptions = HandleOptions()
  /// Whether the system had no file descriptor for the connection.
  private var lacksDescriptor = false
  /// The memory to which libcurl writes its description of an error.
  private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
  /// How much longer than usual libcurl may take to connect.
  private var moreTimeToConnect: Milliseconds = 0
  /// The header lines; libcurl reads them in place.
  private var lines: UnsafeMutableBufferPointer<curl_slist>
  /// The list for CURLOPT_RESOLVE, which libcurl does not copy.
  private var addressList: UnsafeMutablePointer<curl_slist>?
  /// The addresses of the request's host, as CURLOPT_RESOLVE reads them; nil if libcurl looks them up.
  private(set) var addresses: [UInt8]?
  /// The cookies of all origins; nil: the context keeps no cookies.
  private let cookies: UnsafeMutablePointer<curl_shim_jars>?

  /// The options that the handle still has from its previous request, or from the template.
  private struct HandleOptions {
    var method = HTTPRequest.Method.post
    var isFresh = false
    var maxIdleSeconds = HTTPRequest.longestIdleSeconds
    var addresses: [UInt8]?
    /// `NameTable.version` when `addresses` was set.
    var version: UInt32 = 0
    var avoidsProxy = false
    /// Whether no other request may use the handle's connection.
    var isUsedUp = false
  }

  /// - Parameter easy: a copy of the template; the caller must still call `setCallbackData`.
  init(
    easy: UnsafeMutableRawPointer, limit: Int, cookies: UnsafeMutablePointer<curl_shim_jars>?, watchdog: TurnWatchdog
  ) {
    self.easy = easy
    self.limit = limit
    self.watchdog = watchdog
    self.cookies = cookies
    lines = UnsafeMutableBufferPointer.allocate(capacity: 8)
    errorText.pointee = 0
    headers.initialize(
      to:
        curl_shim_headers(
          left: Self.headersMost, codings: 0, is_bad: 0, idle_seconds: -1, first_line: 0, easy: easy,
          handshakes: Self.handshakes, asked: nil))
  }

  deinit {
    lines.deallocate()
    errorText.deallocate()
    headers.deallocate()
    curl_shim_free_lines(addressList)
  }

  /// Sets the options that never change. All other handles are copies of the template. Returns false if libcurl refused
  /// an option.
  static func setOptions(template: UnsafeMutableRawPointer) -> Bool {
    limitHeaders(template) && curl_shim_set_string(template, CURLOPT_ACCEPT_ENCODING, "gzip, deflate") == CURLE_OK
      && curl_shim_set_long(template, CURLOPT_POST, 1) == CURLE_OK
      && curl_shim_set_long(template, CURLOPT_MAXAGE_CONN, HTTPRequest.longestIdleSeconds) == CURLE_OK
  }

  private static func limitHeaders(_ template: UnsafeMutableRawPointer) -> Bool {
    curl_shim_limit_headers(template) == CURLE_OK
  }

  /// Lets the callbacks of the handle find this transfer, and lets the handle use the TLS sessions in `share`. Returns
  /// false if libcurl refused; then the handle must not be used.
  func setCallbackData(_ share: UnsafeMutableRawPointer?) -> Bool {
    curl_shim_set_callback_data(easy, Unmanaged.passUnretained(self).toOpaque(), headers, errorText, share) != 0
  }

  /// Sets the options of the handle for one request.
  /// - Returns: false if libcurl refused an option; then the request must not be sent.
  /// - Parameters:
  ///   - addresses: the addresses of the host, as CURLOPT_RESOLVE reads them; nil: libcurl looks them up.
  ///   - version: `NameTable.version`.
  func prepare(
    _ id: TransferID, _ request: HTTPRequest, isFresh: Bool, avoidsProxy: Bool, addresses: [UInt8]?, version: UInt32
  ) -> Bool {
    self.id = id
    self.request = request
    isTooLarge = false
    headers.pointee.left = Self.headersMost
    headers.pointee.codings = 0
    headers.pointee.is_bad = 0
    headers.pointee.idle_seconds = -1
    attempts = 0
    localPort = 0
    wasStopped = false
    lacksDescriptor = false
    tried = []
    errorText.pointee = 0
    if Self.mustCheckFirstLine, curl_shim_check_first_line(headers) != CURLE_OK { return false }
    return setAddress(request, avoidsProxy: avoidsProxy) && setAddresses(addresses, version) && setMethod(request)
      && setConnection(request, isFresh: isFresh) && setHeaders(request)
  }

  private func setAddress(_ request: HTTPRequest, avoidsProxy: Bool) -> Bool {
    if endpoint !== request.endpoint {
      endpoint = nil
      guard
        request.endpoint.url.withUnsafeBytes({
          curl_shim_set_url(easy, $0.baseAddress, request.endpoint.parsed)
        }) == CURLE_OK
      else { return false }
      if let cookies, !useCookies(cookies, of: request.endpoint) { return false }
      endpoint = request.endpoint
    }
    if handleOptions.avoidsProxy != avoidsProxy {
      guard curl_shim_avoid_proxy(easy, avoidsProxy ? 1 : 0) == CURLE_OK else { return false }
      handleOptions.avoidsProxy = avoidsProxy
    }
    return true
  }

  private func useCookies(_ jars: UnsafeMutablePointer<curl_shim_jars>, of endpoint: Endpoint) -> Bool {
    endpoint.origin.withUnsafeBytes { curl_shim_use_jar(jars, easy, $0.baseAddress, $0.count) } != 0
  }

  /// libcurl reads the list when the request starts, and stores the addresses for all requests. Some versions read it
  /// again at each start of the handle, others only at the first start after the option was set.
  private func setAddresses(_ line: [UInt8]?, _ version: UInt32) -> Bool {
    addresses = line
    guard let line, handleOptions.version != version || handleOptions.addresses != line else { return true }
    curl_shim_free_lines(addressList)
    addressList = line.withUnsafeBytes { curl_shim_line_list($0.baseAddress) }
    guard addressList != nil, curl_shim_set_list(easy, CURLOPT_RESOLVE, addressList) == CURLE_OK else { return false }
    handleOptions.addresses = line
    handleOptions.version = version
    return true
  }

  private func setMethod(_ request: HTTPRequest) -> Bool {
    let method = request.method
    if handleOptions.method != method {
      let option = method == .post ? CURLOPT_POST : method == .get ? CURLOPT_HTTPGET : CURLOPT_NOBODY
      guard curl_shim_set_long(easy, option, 1) == CURLE_OK else { return false }
      handleOptions.method = method
    }
    guard method == .post else { return true }
    // libcurl does not copy the body. The request keeps the body alive.
    let body = request.body.flatMap { $0.count > 0 ? $0.address : nil }
    return curl_shim_set_body(easy, body, Int64(request.body?.count ?? 0)) == CURLE_OK
  }

  private func setConnection(_ request: HTTPRequest, isFresh: Bool) -> Bool {
    if handleOptions.isFresh != isFresh {
      guard curl_shim_set_long(easy, CURLOPT_FRESH_CONNECT, isFresh ? 1 : 0) == CURLE_OK else { return false }
      handleOptions.isFresh = isFresh
    }
    if handleOptions.isUsedUp {
      guard curl_shim_set_long(easy, CURLOPT_FORBID_REUSE, 0) == CURLE_OK else { return false }
      handleOptions.isUsedUp = false
    }
    let maxIdleSeconds = request.isRetry ? 1 : request.idleSecondsMost
    if handleOptions.maxIdleSeconds != maxIdleSeconds {
      guard curl_shim_set_long(easy, CURLOPT_MAXAGE_CONN, maxIdleSeconds) == CURLE_OK else { return false }
      handleOptions.maxIdleSeconds = maxIdleSeconds
    }
    return true
  }

  /// Changes how long libcurl may take to connect. Changes nothing if libcurl has already sent the request.
  func setMoreTimeToConnect(_ more: Milliseconds, besides usual: Milliseconds) {
    let all = more == 0 ? 0 : moreTimeToConnect.adding(more)
    guard all != moreTimeToConnect, more == 0 || attempts == 0 else { return }
    _ = curl_shim_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: usual.adding(all)))
    moreTimeToConnect = all
  }

  private func setHeaders(_ request: HTTPRequest) -> Bool {
    // If the list of header lines has the line "Expect:", libcurl sends no Expect header. Otherwise libcurl would send
    // "Expect: 100-continue" before a large body, and would wait for a reply that few servers send.
    let asksFirst = (request.body?.count ?? 0) > 1000
    // Replies to keep-alives and teardowns are so short that compressing them costs more than it saves.
    let asksPlain = request.isUrgent
    let given = request.headers.count + (request.traceParent == nil ? 0 : 1)
    let needed = given + (asksFirst ? 1 : 0) + (asksPlain ? 1 : 0)
    if lines.count < needed {
      lines.deallocate()
      lines = UnsafeMutableBufferPointer.allocate(capacity: needed)
    }
    guard needed > 0, let first = lines.baseAddress else {
      return curl_shim_set_list(easy, CURLOPT_HTTPHEADER, nil) == CURLE_OK
    }
    for (index, line) in request.headers.enumerated() {
      curl_shim_fill_header_line(first + index, line.address, index + 1 < needed ? first + index + 1 : nil)
    }
    if let line = request.traceParent?.line {
      curl_shim_fill_header_line(first + (given - 1), line.address, given < needed ? first + given : nil)
    }
    if asksPlain { curl_shim_fill_no_coding_line(first + given, asksFirst ? 1 : 0) }
    if asksFirst { curl_shim_fill_no_expect_line(first + (needed - 1)) }
    return curl_shim_set_list(easy, CURLOPT_HTTPHEADER, first) == CURLE_OK
  }

  /// Called by libcurl before it sends the request; false stops libcurl. If a kept connection ends without a reply,
  /// libcurl tries to send the request again over another connection, although the server may already have acted on the
  /// request. For a POST this function prevents that: only the library's state machines decide whether to repeat it.
  func maySend(localPort: Int32) -> Bool {
    KillPoint.pass("sending")
    self.localPort = localPort
    attempts += 1
    wasStopped = attempts > 1 && handleOptions.method == .post && curl_shim_request_size(easy) > 0
    return !wasStopped
  }

  /// Whether the request waits for a connection. (Until libcurl opens a socket, curl_shim_has_connected() may still
  /// describe the handle's previous request.)
  var isConnecting: Bool { attempts == 0 && (tried.isEmpty || curl_shim_has_connected(easy) == 0) }

  /// Returns the address for the next additional connection of a retry: the tried addresses in turn. Returns nil if
  /// libcurl has not tried any address yet.
  func takeAddress() -> curl_shim_address? {
    guard let next = tried.first else { return nil }
    tried.append(tried.removeFirst())
    return next
  }

  /// Makes libcurl use this connected socket as its next connection.
  func use(_ socket: Int32) { connectedSocket = socket }

  /// Called by libcurl to open the socket of a new connection.
  func open(_ address: UnsafePointer<curl_sockaddr>) -> Int32 {
    if request?.isRetry ?? false {
      if tried.count > 1 { tried.removeFirst() }
      tried.append(curl_shim_copy_address(address))
    }
    KillPoint.pass("connecting")
    if connectedSocket >= 0 {
      defer { connectedSocket = -1 }
      return connectedSocket
    }
    let socket = curl_shim_open_socket(address)
    if socket < 0, platform_is_short_of_descriptors() != 0 { lacksDescriptor = true }
    return socket
  }

  /// Called by libcurl with each part of the decoded body. libcurl 7.84 to 8.0 also calls it with header lines, until
  /// libcurl has stored the first header line. Returns false to stop the transfer, if the body exceeds
  /// `max_response_bytes` or the first header line begins with a blank.
  func takeBody(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    if headers.pointee.first_line != CURL_SHIM_LINE_STORED {
      return curl_shim_may_store(headers, bytes.baseAddress, bytes.count) != 0
    }
    KillPoint.pass("body")
    guard reply.count + bytes.count <= limit else {
      isTooLarge = true
      return false
    }
    let header = reply.count == 0 ? Int(clamping: Self.headersMost &- headers.pointee.left) : 0
    reply.append(bytes)
    watchdog.tookBody(bytes.count, header: header)
    // libcurl reads whole TLS records before it passes bytes on: its receive buffer has 16 kB (CURLOPT_BUFFERSIZE,
    // which the library leaves at the default), as much as the largest record. So if OpenSSL still has decrypted bytes
    // now, the server sent them after this reply, and libcurl would read them as the next reply. The connection must
    // not be used again.
    if request?.endpoint.isHTTPS ?? false, curl_shim_has_pending(easy, Self.sslPending) != 0 {
      _ = curl_shim_set_long(easy, CURLOPT_FORBID_REUSE, 1)
      handleOptions.isUsedUp = true
    }
    return true
  }

  /// Releases the request and the bytes read of its reply.
  /// - Parameter keepsHandle: whether another request will use the handle.
  func release(keepsHandle: Bool) {
    if keepsHandle {
      _ = curl_shim_set_list(easy, CURLOPT_HTTPHEADER, nil)
      if handleOptions.method == .post { _ = curl_shim_set_body(easy, nil, 0) }
    }
    request = nil
    reply = SecretBuffer()
    if connectedSocket >= 0 { platform_fd_close(connectedSocket) }
    connectedSocket = -1
  }

  /// Whether another request may use the handle. For each handle, libcurl counts how often it has repeated a request
  /// over a new connection. It never sets this count back, and when the count is five, it repeats no further request.
  var isReusable: Bool { attempts <= 1 }

  /// Why the transport or the watchdog has dropped a connection.
  enum Dropped {
    /// The server sent too many bytes in one reply, most of them not in its body.
    case floodInReply
    /// The server sent data without a pause in one turn of libcurl.
    case floodInTurn
    /// The system refused to watch the socket.
    case unwatched
  }

  func outcome(_ code: CURLcode, dropped: Dropped?) -> HTTPOutcome {
    isReplyLong = false
    // `takeBody` stopped the transfer, because the first header line began with a blank. Use the code with which most
    // other versions of libcurl refuse such a line themselves.
    let isFolded = headers.pointee.first_line == CURL_SHIM_LINE_REFUSED
    let code = isFolded ? CURLE_WEIRD_SERVER_REPLY : code
    let status = Int32(truncatingIfNeeded: curl_shim_response_code(easy))
    if code != CURLE_OK, dropped == .unwatched {
      return .failure(
        WireFailure(
          .system, message: "the system does not watch the connection", mayHaveTakenEffect: mayHaveReachedServer))
    }
    if code != CURLE_OK, dropped == .floodInTurn {
      return .failure(
        WireFailure(
          .transport, message: "the server sent data without a pause", mayHaveTakenEffect: mayHaveReachedServer))
    }
    if isTooLarge || headers.pointee.left < 0 || isHeaderLineTooLong(code)
      || (dropped == .floodInReply && code != CURLE_OK)
    {
      return .failure(
        WireFailure(.tooLarge, httpStatus: status, retryAfter: retryAfter(status), mayHaveTakenEffect: true))
    }
    let isCoded = code == CURLE_BAD_CONTENT_ENCODING || headers.pointee.is_bad != 0
    if code == CURLE_OK || (status >= 300 && (code == CURLE_PARTIAL_FILE || isCoded)) {
      let body = reply.take()
      isReplyLong = body.count > 1 << 14 || (status >= 300 && body.count > 0)
      let mayBeCut = body.count == 0 && hasNoLength
      return .response(
        HTTPResponse(
          status: status, body: body, retryAfter: retryAfter(status), header: replyHeader(),
          location: status >= 300 && status < 400 ? header("Location").map { Secret($0) } : nil, media: media(body),
          mayBeCut: mayBeCut))
    }
    if isCoded {
      return .failure(
        WireFailure(
          .protocolError, httpStatus: status, message: "the reply's Content-Encoding must be gzip, deflate or identity",
          mayHaveTakenEffect: true))
    }
    if wasStopped {
      var failure = WireFailure(
        .transport, message: "the connection ended before the answer", mayHaveTakenEffect: true)
      failure.endedKeptConnection = true
      return .failure(failure)
    }
    return .failure(failure(code))
  }

  /// Whether libcurl has stopped reading because a header line is longer than 100 kB. Before version 8.6 libcurl
  /// reports this as a lack of memory. It cannot be a real lack of memory: then an allocation of libusher would have
  /// ended the process.
  private func isHeaderLineTooLong(_ code: CURLcode) -> Bool {
    let tooLarge = 100  // CURLE_TOO_LARGE, since libcurl 8.6
    return (code == CURLE_OUT_OF_MEMORY || Int(code.rawValue) == tooLarge) && mayHaveReachedServer
  }

  private func failure(_ code: CURLcode) -> WireFailure {
    if attempts == 0, lacksDescriptor || mayLackDescriptor(code) {
      return WireFailure(.system, message: "no file descriptor for a connection")
    }
    var status = Self.status(code)
    var fault = TLSFault.none
    if status == .tls { fault = tlsFault(code) }
    // With TLS 1.3 the server checks the client's certificate only after the handshake of the client has ended. So the
    // server's alert may arrive as an error of sending or receiving.
    if status == .tls || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR,
      let alert = curl_shim_tls_alert(errorText)
    {
      status = .tls
      if curl_shim_refuses_certificate(alert, headers) != 0 { fault = .clientCertificate }
    }
    var failure = WireFailure(
      status, message: fault == .none ? words(code, status) : string(fault.text),
      mayHaveTakenEffect: mayHaveReachedServer && fault != .clientCertificate)
    failure.tlsFault = fault
    if isProxyError(status), curl_shim_proxy_status(easy) == 407 { failure.httpStatus = 407 }
    return failure
  }

  private func words(_ code: CURLcode, _ status: Status) -> String {
    guard isProxyError(status) else { return Self.words(code) }
    var line = LogLine("the proxy replied with HTTP ")
    line.add(UInt64(clamping: curl_shim_proxy_status(easy)))
    return line.text()
  }

  /// Whether the proxy refused to connect to the server.
  private func isProxyError(_ status: Status) -> Bool {
    status == .transport && attempts == 0 && curl_shim_proxy_status(easy) >= 300
  }

  private func tlsFault(_ code: CURLcode) -> TLSFault {
    guard code == CURLE_PEER_FAILED_VERIFICATION else { return code == CURLE_SSL_PINNEDPUBKEYNOTMATCH ? .pin : .none }
    // The numbers are X509_V_ERR_... of OpenSSL.
    switch curl_shim_verify_result(easy) {
    case 0, 1, 62, 64: return .name
    case 2, 18, 19, 20, 21, 24, 27: return .authority
    case 9: return .notYetValid
    case 10: return .expired
    default: return .none
    }
  }

  /// Whether the error may mean that a name look-up, or the reading of a certificate file, got no file descriptor.
  private func mayLackDescriptor(_ code: CURLcode) -> Bool {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM:
      return platform_is_short_of_descriptors() != 0
    default: return false
    }
  }

  /// Whether the server may have read the request. libcurl's result code cannot say this: if a kept connection ended
  /// and a new one was refused, the code describes only the new one.
  var mayHaveReachedServer: Bool { attempts > 0 && curl_shim_request_size(easy) > 0 }

  /// Whether only the end of the connection shows where the reply's body ends.
  private var hasNoLength: Bool {
    curl_shim_was_http2(easy) == 0 && header("Content-Length") == nil && header("Transfer-Encoding") == nil
  }

  /// How many seconds the server keeps an idle connection, as the reply says; nil: the reply does not say it.
  var idleSeconds: Int? { headers.pointee.idle_seconds < 0 ? nil : Int(headers.pointee.idle_seconds) }

  /// How long the server asks to wait before another request; nil: a reply with an error does not ask, or the reply has
  /// no error. The header counts even if the rest of the reply is unusable.
  private func retryAfter(_ status: Int32) -> Milliseconds? {
    guard status >= 300, let text = header("Retry-After") else { return nil }
    let now = header("Date").flatMap { RetryAfter.date($0) } ?? platform_wall_clock_ms() / 1000
    return RetryAfter.pause(text, now: now)
  }

  private func header(_ name: StaticString) -> UnsafeBufferPointer<UInt8>? { header(UnsafeRawPointer(name.utf8Start)) }

  /// The value of a response header; valid until the next transfer of the handle.
  /// - Parameter name: NUL-terminated.
  private func header(_ name: UnsafeRawPointer) -> UnsafeBufferPointer<UInt8>? {
    guard let text = curl_shim_response_header(easy, name.assumingMemoryBound(to: CChar.self)) else { return nil }
    return UnsafeBufferPointer(
      start: UnsafeRawPointer(text).assumingMemoryBound(to: UInt8.self), count: Int(platform_length(text)))
  }

  private func media(_ body: Secret) -> MediaType {
    // The library recognises JSON by its first bytes and does not need the type.
    let isJSON = body.withBytes { $0.count > 1 && $0[0] == 0x7B && $0[1] != 0 }
    guard !isJSON, let type = header("Content-Type") else { return .other }
    return MediaType(type)
  }

  private func replyHeader() -> Secret? {
    request?.replyHeader?.withUnsafeBytes { name -> Secret? in
      name.baseAddress.flatMap { header($0) }.map { Secret($0) }
    } ?? nil
  }

  /// libcurl's description of a result.
  static func words(_ code: CURLcode) -> String { curl_easy_strerror(code).map { String(cString: $0) } ?? "" }

  /// Returns the status for a result of libcurl. If libcurl could not connect in time, the status is `timeout`: either
  /// `connect_timeout_ms` has passed, or the time limit of the request.
  static func status(_ code: CURLcode) -> Status {
    switch code {
    case CURLE_OPERATION_TIMEDOUT: return .timeout
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
      CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CACERT_BADFILE,
      CURLE_SSL_SHUTDOWN_FAILED,
      CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS,
      CURLE_SSL_CLIENTCERT:
      return .tls
    default: return .transport
    }
  }
}
