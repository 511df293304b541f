internal import CCurl
internal import CPlatform
internal import UsherCore

/// The handles of libcurl that no request uses now. Later requests use these handles again, because making a new handle
/// takes longer.
///
/// A new handle is a copy of a template, which has all options that never change.
final class TransferPool {
  private let options: TransportOptions
  private let connections: Connections
  /// The cookies of each origin; nil: the context keeps no cookies.
  private let cookies: UnsafeMutablePointer<curl_shim_jars>?
  /// How many handles the pool keeps: at most one for each connection that libcurl may keep.
  private let keptMax: Int
  private var idle: [CurlTransfer] = []
  /// The TLS sessions of all handles. A new connection to a server continues the TLS session of an earlier connection,
  /// so its handshake is shorter.
  private let share: UnsafeMutableRawPointer?
  /// A handle with the options that never change; it sends no request. nil: no request has needed it yet.
  private var template: UnsafeMutableRawPointer?

  init(options: TransportOptions, connections: Connections, keptMax: Int) {
    self.options = options
    self.connections = connections
    cookies = options.keepsCookies ? .allocate(capacity: 1) : nil
    cookies?.initialize(to: curl_shim_jars(first: nil, left: 64))
    self.keptMax = keptMax
    share = curl_shim_new_share()
  }

  deinit { cookies?.deallocate() }

  /// Returns an idle handle that already has this endpoint's settings, otherwise any idle handle, otherwise a new one;
  /// nil if libcurl has no memory or has refused an option.
  func take(_ endpoint: Endpoint) -> CurlTransfer? {
    var index = idle.count - 1
    while index >= 0 {
      if idle[index].endpoint === endpoint {
        idle.swapAt(index, idle.count - 1)
        break
      }
      index -= 1
    }
    return idle.popLast() ?? make()
  }

  /// Takes back a handle whose request has ended well.
  func recycle(_ transfer: CurlTransfer) {
    transfer.release(keepsHandle: true)
    if idle.count < keptMax { idle.append(transfer) } else { curl_easy_cleanup(transfer.easy) }
  }

  /// Closes a handle that must not be used again: its request failed or was cancelled, so the handle may keep state of
  /// that request, or libcurl has repeated the request.
  func discard(_ transfer: CurlTransfer) {
    transfer.release(keepsHandle: false)
    curl_easy_cleanup(transfer.easy)
  }

  func close() {
    for transfer in idle { curl_easy_cleanup(transfer.easy) }
    idle.removeAll()
    if let template { curl_easy_cleanup(template) }
    template = nil
    if let share { curl_share_cleanup(share) }
    if let cookies { curl_shim_free_jars(cookies) }
  }

  /// The cookies of an endpoint's origin, as CURLINFO_COOKIELIST writes them.
  func cookies(of endpoint: Endpoint) -> [Secret] {
    guard let cookies else { return [] }
    let first = endpoint.origin.withUnsafeBytes { curl_shim_list_cookies(cookies, $0.baseAddress, $0.count) }
    defer { curl_shim_wipe_lines(first) }
    var found: [Secret] = []
    var next = first
    while let line = next {
      if let text = line.pointee.data {
        let bytes = UnsafeRawBufferPointer(start: text, count: Int(platform_length(text)) + 1)
        found.append(Secret(bytes.bindMemory(to: UInt8.self)))
      }
      next = line.pointee.next
    }
    return found
  }

  private func make() -> CurlTransfer? {
    if template == nil { template = makeTemplate() }
    guard let template, let easy = curl_easy_duphandle(template) else { return nil }
    let transfer = CurlTransfer(
      easy: easy, limit: options.maxResponseBytes, cookies: cookies, watchdog: connections.watchdog)
    if transfer.setCallbackData(share) { return transfer }
    curl_easy_cleanup(easy)
    return nil
  }

  /// Makes an easy handle and sets all options that never change. Returns nil if libcurl refuses one that must be set.
  private func makeTemplate() -> UnsafeMutableRawPointer? {
    guard let easy = curl_easy_init() else { return nil }
    _ = curl_shim_set_long(easy, CURLOPT_QUICK_EXIT, 1)
    // Without one of these options, libcurl would reveal a secret or repeat a request. If libcurl refuses an option,
    // the pool does not use the handle.
    let isSafe =
      curl_shim_set_long(easy, CURLOPT_NOSIGNAL, 1) == CURLE_OK
      && curl_shim_set_long(easy, CURLOPT_FOLLOWLOCATION, 0) == CURLE_OK
      && curl_shim_set_long(easy, CURLOPT_NETRC, 0) == CURLE_OK
      && curl_shim_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK
      && setTLS(easy) && setProxy(easy)
      && options.userAgent.withUnsafeBufferPointer({ set(easy, CURLOPT_USERAGENT, $0) })
      && curl_shim_set_prerequest_callback(easy, onPrerequest) == CURLE_OK
      && curl_shim_set_open_callback(easy, onOpen) == CURLE_OK
      && connections.attach(easy: easy)
      && curl_shim_set_data_callback(easy, CURLOPT_WRITEFUNCTION, onBody) == CURLE_OK
      && CurlTransfer.setOptions(template: easy)
      && (cookies == nil || curl_shim_keep_cookies(easy) == CURLE_OK)
    guard isSafe else {
      curl_easy_cleanup(easy)
      return nil
    }
    let version = options.allowsHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1
    _ = curl_shim_set_long(
      easy, CURLOPT_HTTP_VERSION, options.speaksHTTP2WithoutTLS ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : version)
    _ = curl_shim_set_long(easy, CURLOPT_TCP_NODELAY, 1)
    _ = curl_shim_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: options.connectTimeout))
    return easy
  }

  private func setTLS(_ easy: UnsafeMutableRawPointer) -> Bool {
    options.tls?.set(easy) ?? TLSOptions.setDefaults(easy)
  }

  private func setProxy(_ easy: UnsafeMutableRawPointer) -> Bool {
    // libcurl must sign in to a SOCKS 5 proxy only with a name and a password. With GSS-API, libcurl would block the
    // I/O thread until the proxy answers. A libcurl that was built without proxies does not know the option.
    _ = curl_shim_set_long(easy, CURLOPT_SOCKS5_AUTH, 1)  // CURLAUTH_BASIC
    return options.proxy?.withBytes { set(easy, CURLOPT_PROXY, $0) } ?? true
  }

  /// - Parameter text: with its NUL; or empty, so that the option keeps its default.
  private func set(_ easy: UnsafeMutableRawPointer, _ option: CURLoption, _ text: UnsafeBufferPointer<UInt8>) -> Bool {
    let bytes = UnsafeRawBufferPointer(text).baseAddress
    return text.isEmpty || curl_shim_set_string(easy, option, bytes?.assumingMemoryBound(to: CChar.self)) == CURLE_OK
  }
}

private func onOpen(
  _ data: UnsafeMutableRawPointer?, _: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
)
  -> Int32
{
  guard let address, let data else { return -1 }
  return Unmanaged<CurlTransfer>.fromOpaque(data).takeUnretainedValue().open(address)
}

private func onBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ data: UnsafeMutableRawPointer?
) -> Int {
  guard let bytes, let data else { return 0 }
  let (total, overflow) = size.multipliedReportingOverflow(by: count)
  guard !overflow else { return 0 }
  let raw = UnsafeRawBufferPointer(start: bytes, count: total)
  return Unmanaged<CurlTransfer>.fromOpaque(data).takeUnretainedValue().takeBody(raw.bindMemory(to: UInt8.self))
    ? total : 0
}

private func onPrerequest(
  _ data: UnsafeMutableRawPointer?, _ theirs: UnsafeMutablePointer<CChar>?, _ ours: UnsafeMutablePointer<CChar>?,
  _ theirPort: Int32, _ ourPort: Int32
) -> Int32 {
  guard let data, Unmanaged<CurlTransfer>.fromOpaque(data).takeUnretainedValue().maySend(localPort: ourPort) else {
    return CURL_PREREQFUNC_ABORT
  }
  return CURL_PREREQFUNC_OK
}
