internal import CUsher
internal import UsherCore
internal import UsherEngine

/// Makes the delegate that a host's options describe.
/// - Parameters:
///   - v2: the additional options of SSP V2.
///   - map: the content tokens of a multi-instance delegate, by content identifier.
func sspDelegate(
  _ pointer: UnsafePointer<usher_ssp_options>?, insecure: Bool, map: TokenStore? = nil, v2: usher_ssp_v2_options? = nil,
  fields: SessionFieldNames = SessionFieldNames()
) throws(UsherError) -> LicenseDelegate {
  let given = try options(pointer)
  guard let license = try url(given.license_url, "license_url") else { throw refused("license_url", isMissing) }
  var endpoints = LicenseDelegate.Endpoints(
    license: try endpoint(license, insecure, "license_url"),
    licenseRenewal: try endpoint(license.adding("renew=true"), insecure, "license_url"))
  let hasSSM = try addSSM(given, to: &endpoints, insecure, needsSetup: v2 == nil)
  var policy = try sspPolicy(given, hasSSM: hasSSM)
  if let v2 {
    policy.opening = .license
    policy.leavesByDefault = v2.teardown_on_close != 1
    policy.zapTearsDown = v2.leave_on_zap != 1
    policy.periodFallback = choice(v2.period_default_ms, default: 60_000).map { Milliseconds($0) } ?? 0
  }
  let isRaw = try isRaw(given.wire_format)
  let setupBody = try bytes(given.setup_body, "setup_body") ?? Array("{}".utf8)
  guard setupBody.isEmpty || isJSONObject(setupBody) else { throw refused("setup_body: not a JSON object") }
  let headers = try headerLines(given.extra_headers, "extra_headers")
  let certificates = CertificateSource(
    try optionalEndpoint(given.certificate_url, insecure, "certificate_url"), headers: headers)
  return LicenseDelegate(
    policy: policy, isSync: given.sync_setup_teardown == 1, endpoints: endpoints, certificates: certificates,
    isRaw: isRaw, setupBody: setupBody,
    keepAliveBody: try bytes(given.keep_alive_body, "keep_alive_body") ?? Array("{}".utf8),
    tokenHeader: try headerName(given.token_header, "token_header"), extraHeaders: headers, tokenMap: map,
    fields: fields,
    hookTimeout: milliseconds(given.hook_timeout_ms, default: 5000))
}

/// Makes an SSP V2 delegate.
func sspV2Delegate(
  _ pointer: UnsafePointer<usher_ssp_v2_options>?, insecure: Bool
) throws(UsherError) -> LicenseDelegate {
  let given = try options(pointer)
  guard given.ssp != nil else { throw refused("ssp", isMissing) }
  var fields = SessionFieldNames()
  if let path = try fieldPath(given.token_field, "token_field") { fields.token = path }
  if let path = try fieldPath(given.period_field, "period_field") { fields.period = path }
  if let path = try fieldPath(given.enforced_field, "enforced_field") { fields.enforced = path }
  if given.token_reply_header != nil {
    fields.header = try headerName(given.token_reply_header, "token_reply_header") + [0]
  }
  let delegate = try sspDelegate(given.ssp, insecure: insecure, v2: given, fields: fields)
  // Refuse options without an SSM: the library could neither keep a session alive nor end it.
  guard delegate.policy.hasSSM else { throw refused("ssm_url", isMissing) }
  return delegate
}

private func fieldPath(_ text: UnsafePointer<CChar>?, _ field: StaticText) throws(UsherError) -> [[UInt8]]? {
  guard let name = try bytes(text, most: 1024, field) else { return nil }
  guard let path = SessionFieldNames.path(name) else { throw refused(field, ": not a path") }
  return path
}

/// Makes a default delegate, whose playbacks have no session.
func defaultDelegate(
  _ pointer: UnsafePointer<usher_default_options>?, insecure: Bool, needsURL: Bool
) throws(UsherError) -> LicenseDelegate {
  let given = try options(pointer)
  let license = try url(given.license_url, "license_url")
  guard license != nil || !needsURL else { throw refused("license_url", isMissing) }
  var endpoints = LicenseDelegate.Endpoints()
  if let license {
    endpoints.license = try endpoint(license, insecure, "license_url")
    endpoints.licenseRenewal = try endpoint(license.adding("renew=true"), insecure, "license_url")
  }
  let headers = try headerLines(given.extra_headers, "extra_headers")
  let certificates = CertificateSource(
    try optionalEndpoint(given.certificate_url, insecure, "certificate_url"), headers: headers)
  var policy = SSPPolicy()
  policy.hasSSM = false
  policy.needsToken = false
  return LicenseDelegate(
    policy: policy, endpoints: endpoints, certificates: certificates, isRaw: try isRaw(given.wire_format),
    tokenHeader: try headerName(given.token_header, "token_header"), extraHeaders: headers,
    hookTimeout: milliseconds(given.hook_timeout_ms, default: 5000))
}

private func isRaw(_ format: Int32) throws(UsherError) -> Bool {
  guard format == USHER_WIRE_AUTO || format == USHER_WIRE_RAW else { throw refused("wire_format", isUnknown) }
  return format == USHER_WIRE_RAW
}

/// Reads the name of a header; returns the default token header for NULL.
@inline(never)
func headerName(_ text: UnsafePointer<CChar>?, _ field: StaticText) throws(UsherError) -> [UInt8] {
  let name = try bytes(text, field) ?? LicenseDelegate.defaultTokenHeader
  guard !name.isEmpty, name.allSatisfy(isHeaderNameByte), !isReservedHeader(name) else {
    throw refused(field, ": not a header name, or a header that the library sets itself")
  }
  return name
}

/// Adds the endpoints of the SSM. Returns false if the options name no endpoint.
/// - Parameter needsSetup: false for SSP V2, where a licence request sets the session up.
@inline(never)
private func addSSM(
  _ given: usher_ssp_options, to endpoints: inout LicenseDelegate.Endpoints, _ insecure: Bool, needsSetup: Bool
) throws(UsherError) -> Bool {
  let version = try bytes(given.ssm_api_version, "ssm_api_version") ?? Array("v1".utf8)
  guard !version.isEmpty, version.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x3F && $0 != 0x23 }) else {
    throw refused("ssm_api_version: empty, or has a character that no URL path has")
  }
  let rule: URLText.VersionRule
  switch given.ssm_append_version {
  case USHER_APPEND_AUTO: rule = .auto
  case USHER_APPEND_ALWAYS: rule = .always
  case USHER_APPEND_NEVER: rule = .never
  default: throw refused("ssm_append_version", isUnknown)
  }
  let base = try url(given.ssm_url, "ssm_url")?.versioned(version, rule)
  @inline(never) func endpointAt(
    _ whole: UnsafePointer<CChar>?, _ field: StaticText, _ path: StaticString
  ) throws(UsherError) -> Endpoint? {
    if let own = try url(whole, field) { return try endpoint(own, insecure, field) }
    guard let base else { return nil }
    return try endpoint(base.joining(path), insecure, "ssm_url")
  }
  endpoints.setup = try endpointAt(given.setup_url, "setup_url", "sessions/setup")
  endpoints.heartbeat = try endpointAt(given.heartbeat_url, "heartbeat_url", "sessions/heartbeat")
  endpoints.teardown = try endpointAt(given.teardown_url, "teardown_url", "sessions/teardown")
  endpoints.widevineRenewal = try endpointAt(given.renewal_url, "renewal_url", "renewal-license-wv")
  let parts = [needsSetup ? endpoints.setup : endpoints.teardown, endpoints.heartbeat, endpoints.teardown].compactMap {
    $0
  }.count
  // The options must have all endpoints or none: if the library can set a session up, it must also be able to end it.
  guard parts == 0 || parts == 3 else {
    throw refused("ssm_url: set-up, heartbeat and teardown need URLs, or none of them")
  }
  return parts == 3
}

@inline(never)
private func sspPolicy(_ given: usher_ssp_options, hasSSM: Bool) throws(UsherError) -> SSPPolicy {
  var policy = SSPPolicy()
  policy.hasSSM = hasSSM
  policy.setupTimeout = milliseconds(given.setup_timeout_ms, default: policy.setupTimeout)
  policy.teardownTimeout = milliseconds(given.teardown_timeout_ms, default: policy.teardownTimeout)
  policy.tokenTimeout = milliseconds(given.token_timeout_ms, default: policy.tokenTimeout)
  policy.payloadTimeout = milliseconds(given.payload_timeout_ms, default: policy.payloadTimeout)
  policy.periodMax = milliseconds(given.period_max_ms, default: policy.periodMax)
  policy.periodMin = milliseconds(given.period_min_ms, default: min(policy.periodMin, policy.periodMax))
  guard policy.periodMin <= policy.periodMax else { throw refused("period_min_ms: greater than period_max_ms") }
  policy.lenientNumbers = given.lenient_numbers == 1
  policy.periodUpdates = given.period_updates == 1
  policy.jitter = choice(given.jitter_permille, default: policy.jitter) ?? 0
  policy.retry = choice(given.retry_permille, default: policy.retry) ?? 0
  policy.keepAliveTimeout = given.keep_alive_timeout_ms == 0 ? nil : Milliseconds(given.keep_alive_timeout_ms)
  policy.teardownRetries = choice(given.teardown_retries, default: policy.teardownRetries) ?? 0
  try checkPermille(policy)
  policy.failuresMax = choice(given.keep_alive_failures_max, default: 10)
  policy.tokenWait = choice(given.token_wait_ms, default: 5000).map { Milliseconds($0) } ?? 0
  policy.slotWait = Milliseconds(given.slot_wait_ms)
  policy.zapsAtOnce = given.zap_without_waiting == 1
  policy.suspend = try suspendRule(given.suspend)
  switch given.heartbeat_missing {
  case USHER_HEARTBEAT_MISSING_ERROR: policy.missingPeriod = .error
  case USHER_HEARTBEAT_MISSING_NO_TIMER: policy.missingPeriod = .noTimer
  default: throw refused("heartbeat_missing", isUnknown)
  }
  switch given.heartbeat_start {
  case USHER_HEARTBEAT_START_SETUP: policy.heartbeatStart = .setup
  case USHER_HEARTBEAT_START_LICENSE: policy.heartbeatStart = .license
  default: throw refused("heartbeat_start", isUnknown)
  }
  switch given.keep_alive {
  case USHER_KEEP_ALIVE_AUTO: policy.keepAlive = .auto
  case USHER_KEEP_ALIVE_HEARTBEAT: policy.keepAlive = .heartbeat
  case USHER_KEEP_ALIVE_RENEWAL: policy.keepAlive = .renewal
  default: throw refused("keep_alive", isUnknown)
  }
  switch given.resetup_on_extra_license {
  case USHER_RESETUP_CALLBACK_ONLY: policy.resetup = .callbackOnly
  case USHER_RESETUP_ALWAYS: policy.resetup = .always
  case USHER_RESETUP_NEVER: policy.resetup = .never
  default: throw refused("resetup_on_extra_license", isUnknown)
  }
  return policy
}

func checkPermille(_ policy: SSPPolicy) throws(UsherError) {
  guard policy.jitter <= 500 else { throw refused("jitter_permille", isTooLarge) }
  guard policy.retry <= 1000 else { throw refused("retry_permille", isTooLarge) }
}

func suspendRule(_ value: Int32) throws(UsherError) -> SSPPolicy.Suspend {
  switch value {
  case USHER_SUSPEND_KEEP: return .keep
  case USHER_SUSPEND_PAUSE: return .pause
  default: throw refused("suspend", isUnknown)
  }
}

private var isNoURL: StaticText { ": not an absolute http or https URL" }

@inline(never)
func url(_ text: UnsafePointer<CChar>?, _ field: StaticText) throws(UsherError) -> URLText? {
  guard let bytes = try bytes(text, field) else { return nil }
  guard let url = URLText(bytes) else { throw refused(field, isNoURL) }
  return url
}

@inline(never)
func endpoint(_ url: URLText, _ insecure: Bool, _ field: StaticText) throws(UsherError) -> Endpoint {
  if let endpoint = try Endpoint.checked(url, insecure: insecure) { return endpoint }
  let isInsecure = try Endpoint.checked(url, insecure: true) != nil
  throw refused(field, isInsecure ? ": plain http to another machine needs allow_insecure_http" : isNoURL)
}

/// Checks a URL and returns its endpoint; nil for NULL.
@inline(never)
func optionalEndpoint(
  _ text: UnsafePointer<CChar>?, _ insecure: Bool, _ field: StaticText
) throws(UsherError) -> Endpoint? {
  guard let url = try url(text, field) else { return nil }
  return try endpoint(url, insecure, field)
}

/// Reads "Name: value" lines; each line of the result ends with a NUL.
@inline(never)
func headerLines(_ text: UnsafePointer<CChar>?, _ field: StaticText) throws(UsherError) -> [Secret] {
  let lines = UsherEngine.headerLines(try secretText(text, field) ?? Secret([]))
  guard lines.allSatisfy({ $0.withBytes(isHeaderLine) }) else {
    throw refused(field, ": a line is not \"Name: value\", or is a header that the library sets itself")
  }
  return lines
}

private func isHeaderLine(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
  guard let colon = line.firstIndex(of: 0x3A), colon > 0, line[..<colon].allSatisfy(isHeaderNameByte) else {
    return false
  }
  return !isReservedHeader(Array(line[..<colon])) && !hasControl(line[(colon + 1)...].dropLast())
}

/// Returns whether the library itself sets this header. Such headers say where a request ends, where it goes, or what
/// happens to its connection. If one of these headers had a value of the host, a server might read one request as two.
@inline(never)
private func isReservedHeader(_ name: [UInt8]) -> Bool {
  let reserved: StaticString = """
     connection content-length expect host http2-settings keep-alive proxy-connection te trailer transfer-encoding \
    upgrade\u{20}
    """
  return reserved.withUTF8Buffer { firstIndex(of: [0x20] + name.map(lowercased) + [0x20], in: $0) } != nil
}

/// Returns whether a header name (a token of RFC 9110) may have this byte.
private func isHeaderNameByte(_ byte: UInt8) -> Bool {
  switch byte {
  case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E:
    return true
  default: return false
  }
}
