internal import CPlatform
public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_context_add_loader`; contract in `include/usher/loader.h`.
@_cdecl("usher_context_add_loader") @implementation
public func usher_context_add_loader(
  _ context: OpaquePointer!, _ options: UnsafePointer<usher_loader_options>!,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report(context, owing: readable(options)?.pointee.destroy, readable(options)?.pointee.user_data) {
    () throws(UsherError) in
    let given = try Usher.options(options)
    let object = try ownedContext(context, given.user_data, given.destroy)
    let reference = hostReference(object.engine, given.user_data, given.destroy)
    guard let out else { throw refused("out", isMissing) }
    let loader = try resourceLoader(given, insecure: object.allowsInsecureHTTP, reference)
    try object.refuseIfClosing()
    let handle = try object.give(LoaderObject(context: object, loader: loader))
    try reference.accept()
    object.register(loader)
    out.pointee = OpaquePointer(bitPattern: handle)
  }
}

/// Implements `usher_loader_free`; contract in `include/usher/loader.h`.
@_cdecl("usher_loader_free") @implementation
public func usher_loader_free(_ loader: OpaquePointer!) -> Int32 {
  report(loader) { () throws(UsherError) in
    guard let object = try release(loader, as: LoaderObject.self) else { return }
    object.context.unregister(object.loader)
  }
}

/// Implements `usher_playback_load_resource`; contract in `include/usher/loader.h`.
@_cdecl("usher_playback_load_resource") @implementation
public func usher_playback_load_resource(
  _ playback: OpaquePointer!, _ url: UnsafePointer<UInt8>!, _ url_size: Int, _ timeout_ms: UInt32,
  _ fn: usher_license_fn!, _ user_data: UnsafeMutableRawPointer!, _ destroy: usher_destroy_fn!,
  _ out_id: UnsafeMutablePointer<UInt64>!
) -> Int32 {
  out_id?.pointee = 0
  return startRequest(playback, fn, user_data, destroy) { caller throws(UsherError) in
    let (id, start) = try resource(url, url_size, timeout_ms, caller)
    out_id?.pointee = id
    return start
  }
}

/// Implements `usher_playback_get_resource`; contract in `include/usher/loader.h`.
@_cdecl("usher_playback_get_resource") @implementation
public func usher_playback_get_resource(
  _ playback: OpaquePointer!, _ url: UnsafePointer<UInt8>!, _ url_size: Int, _ timeout_ms: UInt32,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  waitForRequest(playback, out) { caller throws(UsherError) in try resource(url, url_size, timeout_ms, caller).1 }
}

/// Makes a loading request, for the loader that is registered for the URL's scheme, and returns it with its id.
private func resource(
  _ url: UnsafePointer<UInt8>?, _ size: Int, _ timeout: UInt32, _ caller: RequestCaller
) throws(UsherError) -> (UInt64, RequestStart) {
  let text = try neededIdentifier(url, size, "url")
  let playback = caller.playback
  guard let loader = playback.context.loader(for: text) else { throw UsherError(.declined) }
  guard loader.names(text) != nil else { throw refused("url: names no content") }
  try caller.refuseIfClosed()
  try caller.refuseToWait()
  let id = playback.context.newID()
  let limit = choice(timeout, default: 20_000).map { Milliseconds($0) }
  return (
    id,
    { isBlocking, complete in
      playback.engine.load(
        playback.shared, id, loader, url: text, timeout: limit, isBlocking: isBlocking, complete: complete)
    }
  )
}

/// Implements `usher_playback_cancel_load`; contract in `include/usher/loader.h`.
@_cdecl("usher_playback_cancel_load") @implementation
public func usher_playback_cancel_load(_ playback: OpaquePointer!, _ id: UInt64) -> Int32 {
  report(playback) { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    guard object.engine.cancelLoad(object.id, id) else {
      throw refused("id", ": unknown, or has ended", .state)
    }
  }
}

private func resourceLoader(
  _ given: usher_loader_options, insecure: Bool, _ reference: HostReference
) throws(UsherError) -> ResourceLoader {
  guard let spc = given.spc else { throw refused("spc", isMissing) }
  let options = try loaderOptions(given, insecure)
  let certificates = CertificateSource(
    try optionalEndpoint(given.certificate_url, insecure, "certificate_url"), certificate: try certificate(given))
  var callbacks = ResourceLoader.Callbacks(spc: spcCallback(spc, given.user_data, reference))
  callbacks.server = serverCallback(given.server, given.user_data, reference)
  callbacks.tokenURL = serverCallback(given.token_url, given.user_data, reference)
  return ResourceLoader(options, certificates: certificates, callbacks: callbacks)
}

private func serverCallback(
  _ function: usher_server_fn?, _ user: UnsafeMutableRawPointer?, _ reference: HostReference
) -> ResourceLoader.ServerCallback? {
  guard let function else { return nil }
  return { ask, question, host in
    _ = reference
    var request = usher_server_request()
    request.struct_size = MemoryLayout<usher_server_request>.size
    request.completion = ask.number
    request.playback = OpaquePointer(bitPattern: host.handle)
    request.tag = host.tag
    request.token_kind = Int32(question.kind.rawValue)
    let entitlementURL = question.entitlementServer.map { $0.url + [0] } ?? []
    withBytes(question.url) { url in
      (request.url, request.url_size) = (url.baseAddress, url.count)
      withBytes(question.contentIdentifier) { identifier in
        (request.content_id, request.content_id_size) = (identifier.baseAddress, identifier.count)
        withBytes(question.content) { content in
          (request.entitlement_id, request.entitlement_id_size) = (content.baseAddress, content.count)
          withBytes(entitlementURL) { server in
            server.withMemoryRebound(to: CChar.self) { request.entitlement_url = server.isEmpty ? nil : $0.baseAddress }
            function(&request, user)
          }
        }
      }
    }
  }
}

private func spcCallback(
  _ spc: @escaping usher_spc_fn, _ user: UnsafeMutableRawPointer?, _ reference: HostReference
) -> (HostQuestion, ResourceLoader.Question, HostPlayback) -> Void {
  { ask, question, host in
    _ = reference
    var request = usher_spc_request()
    request.struct_size = MemoryLayout<usher_spc_request>.size
    request.completion = ask.number
    request.playback = OpaquePointer(bitPattern: host.handle)
    request.tag = host.tag
    withBytes(question.contentIdentifier) { identifier in
      request.content_id = identifier.baseAddress
      request.content_id_size = identifier.count
      withBytes(question.url) { url in
        request.url = url.baseAddress
        request.url_size = url.count
        withBytes(question.certificate) { certificate in
          request.certificate = certificate?.baseAddress
          request.certificate_size = certificate?.count ?? 0
          spc(&request, user)
        }
      }
    }
  }
}

private func loaderOptions(_ given: usher_loader_options, _ insecure: Bool) throws(UsherError) -> ResourceLoader.Options
{
  var options = ResourceLoader.Options()
  if let scheme = try schemeName(given.scheme, "scheme") { options.scheme = scheme }
  switch given.route {
  case USHER_ROUTE_KEY_SERVER: options.route = .keyServer
  case USHER_ROUTE_ENTITLEMENT: options.route = .entitlement
  case USHER_ROUTE_TOKEN_URL: options.route = .tokenURL
  default: throw refused("route", isUnknown)
  }
  options.rule = given.content_id_rule == USHER_CONTENT_ID_SSP ? nil : try contentIDRule(given.content_id_rule)
  options.keyServer = try optionalEndpoint(given.license_url, insecure, "license_url")
  options.entitlementServer = try optionalEndpoint(given.entitlement_url, insecure, "entitlement_url")
  for pattern in (try bytes(given.allowed_hosts, "allowed_hosts") ?? []).split(whereSeparator: {
    $0 == 0x20 || $0 == 0x09 || $0 == 0x0A
  }
  ) {
    guard pattern.withUnsafeBufferPointer({ options.allowed.add($0) }) else {
      throw refused("allowed_hosts: has an entry that is no host")
    }
  }
  if let target = try bytes(given.derived_scheme, most: 8, "derived_scheme") {
    guard target == TokenURL.https || target == Array("http".utf8) else {
      throw refused("derived_scheme: not https or http")
    }
    options.target = target
  }
  options.headers = try headerLines(given.extra_headers, "extra_headers")
  try readFormats(given, &options)
  let cookie = try bytes(given.customer_cookie, most: SEESRequest.mostCookieBytes, "customer_cookie") ?? []
  guard cookie.withUnsafeBufferPointer(UTF8Text.isValid), given.device_binding != 1 || !cookie.isEmpty else {
    throw refused("customer_cookie: missing, or not UTF-8")
  }
  options.cookie = cookie
  guard given.device_registered == 0 || given.device_binding == 1 else {
    throw refused("device_registered: needs device_binding")
  }
  if given.device_binding == 1 {
    options.binding = SEESBinding(cookie: cookie, isRegistered: given.device_registered != 0)
  }
  options.spcTimeout = milliseconds(given.spc_timeout_ms, default: options.spcTimeout)
  options.serverTimeout = milliseconds(given.server_timeout_ms, default: options.serverTimeout)
  return options
}

private func readFormats(_ given: usher_loader_options, _ options: inout ResourceLoader.Options) throws(UsherError) {
  guard let encoding = FPSRequestFormat.Encoding(rawValue: UInt8(clamping: given.request_format)) else {
    throw refused("request_format", isUnknown)
  }
  guard let coding = FPSRequestFormat.URLEncoding(rawValue: UInt8(clamping: given.spc_urlencode)) else {
    throw refused("spc_urlencode", isUnknown)
  }
  guard let response = responseEncoding(given.response_format) else { throw refused("response_format", isUnknown) }
  options.request.encoding = encoding
  options.request.urlEncoding = coding
  options.response.encoding = response
  if let name = try fieldName(given.spc_field, "spc_field") { options.request.name = name }
  if let text = try bytes(given.response_path, most: 1024, "response_path") {
    guard let path = FPSResponseFormat.keyPath(text) else { throw refused("response_path: not a path") }
    options.response.keyPath = path
  }
  options.contentField = try fieldName(given.content_id_field, "content_id_field")
}

private func responseEncoding(_ value: Int32) -> FPSResponseFormat.Encoding? {
  switch value {
  case USHER_FPS_RESPONSE_AUTO: return .auto
  case USHER_FPS_RESPONSE_RAW: return .raw
  case USHER_FPS_RESPONSE_BASE64: return .base64
  case USHER_FPS_RESPONSE_ELEMENT: return .element
  case USHER_FPS_RESPONSE_JSON: return .json
  default: return nil
  }
}

private func fieldName(_ text: UnsafePointer<CChar>?, _ field: StaticText) throws(UsherError) -> [UInt8]? {
  guard let name = try bytes(text, most: 256, field) else { return nil }
  guard !name.isEmpty, name.withUnsafeBufferPointer(UTF8Text.isValid) else {
    throw refused(field, ": empty, or not UTF-8")
  }
  return name
}

/// Returns the certificate from the bytes or the file in the options. Refuses options that have both.
private func certificate(_ given: usher_loader_options) throws(UsherError) -> Secret? {
  guard given.certificate_file != nil else {
    return given.certificate == nil && given.certificate_size == 0
      ? nil : try payload(given.certificate, given.certificate_size, "certificate")
  }
  guard given.certificate == nil, let path = given.certificate_file else {
    throw refused("certificate: both bytes and a file")
  }
  var buffer = [UInt8](repeating: 0, count: (1 << 20) + 1)
  let count = buffer.withUnsafeMutableBytes { platform_read_file(path, $0.baseAddress, $0.count) }
  guard count > 0, count <= 1 << 20 else { throw refused("certificate_file: cannot be read, empty or too large") }
  return Secret(Array(buffer[..<count]))
}
