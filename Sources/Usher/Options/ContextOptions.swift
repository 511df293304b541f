internal import CPlatform
internal import CUsher
internal import UsherCore
internal import UsherEngine

/// Reads the options of a context.
func contextOptions(_ pointer: UnsafePointer<usher_context_options>?) throws(UsherError) -> EngineOptions {
  var result = EngineOptions()
  result.registerQuestion = { ask in UInt64(handles.give(CompletionObject(ask: ask))) }
  result.unregisterQuestion = { number in _ = handles.release(UInt(number)) }
  result.transport.userAgent = Array("usher/".utf8) + versionText + [0]
  result.connectionsMax = connectionsMaxDefault()
  guard let pointer else { return result }
  let given = try options(pointer)
  guard given.clock == USHER_CLOCK_SYSTEM || given.clock == USHER_CLOCK_MANUAL else {
    throw refused("clock", isUnknown)
  }
  guard given.log_level >= 0, given.log_level <= USHER_LOG_TRACE else { throw refused("log_level", isUnknown) }
  guard given.http2 == 0 || given.http2 == 1 else { throw refused("http2: not 0 or 1") }
  result.transport.allowsHTTP2 = given.http2 == 1
  guard given.keep_cookies == 0 || given.keep_cookies == 1 else { throw refused("keep_cookies: not 0 or 1") }
  result.transport.keepsCookies = given.keep_cookies == 1
  guard given.trace_context == 0 || given.trace_context == 1 else { throw refused("trace_context: not 0 or 1") }
  result.sendsTraceParent = given.trace_context == 1
  guard given.timer_slack_ms <= 50 else { throw refused("timer_slack_ms", isTooLarge) }
  result.timerSlack = Milliseconds(given.timer_slack_ms)
  result.allowsInsecureHTTP = given.allow_insecure_http == 1
  let refusal = given.refusal
  let user = given.refusal_user_data
  result.tellRefusal = { status, text in tell(refusal, user, status.rawValue, text) }
  result.isManualClock = given.clock == USHER_CLOCK_MANUAL
  guard given.callbacks == USHER_CALLBACKS_THREADED || given.callbacks == USHER_CALLBACKS_PUMPED else {
    throw refused("callbacks", isUnknown)
  }
  result.isPumped = given.callbacks == USHER_CALLBACKS_PUMPED
  if given.log_level > 0 { result.logLevel = given.log_level }
  result.callbackThreadsMax = Int(given.callback_threads_max == 0 ? 16 : min(given.callback_threads_max, 1024))
  if given.requests_per_origin_max != 0 {
    result.requestsPerOriginMax = Int(min(given.requests_per_origin_max, 4096))
    result.requestsPerOriginMin = result.requestsPerOriginMax
  }
  result.connectionsMax =
    given.connections_max == 0 ? result.connectionsMax : Int(min(given.connections_max, 1 << 16))
  // If an origin does not answer the first requests that it gets, these requests must not take all connections of the
  // context.
  result.requestsPerOriginMin = min(result.requestsPerOriginMin, max(1, result.connectionsMax / 4))
  result.transport.connectTimeout = milliseconds(given.connect_timeout_ms, default: 5000)
  result.transport.httpTimeout = milliseconds(given.http_timeout_ms, default: 10_000)
  if given.max_response_bytes > 0 { result.transport.maxResponseBytes = Int(given.max_response_bytes) }
  result.transport.tls = try TLSOptions.checked(
    authorities: given.ca_file, certificate: given.client_certificate_file, key: given.client_key_file,
    passphrase: given.client_key_passphrase, pin: given.pinned_public_key)
  result.transport.proxy = try secretText(given.proxy, "proxy").map { url in
    Secret(count: url.count + 1) { target in url.withBytes { copy($0, into: target) } }
  }
  result.closeAtExit = Milliseconds(given.close_at_exit_ms)
  guard given.guardian >= USHER_GUARDIAN_OFF, given.guardian <= USHER_GUARDIAN_REQUIRED else {
    throw refused("guardian", isUnknown)
  }
  if let path = given.guardian_path, path.pointee != 0x2F { throw refused("guardian_path: not an absolute path") }
  if let agent = try cString(given.user_agent, "user_agent") {
    guard agent.withUnsafeBufferPointer({ !hasControl($0.dropLast()) }) else {
      throw refused("user_agent: has a control character")
    }
    result.transport.userAgent = agent
  }
  result.journal = try journalOptions(given)
  return result
}

/// Reads the options of the journal; nil: the host wants none.
private func journalOptions(_ given: usher_context_options) throws(UsherError) -> JournalOptions? {
  let key = given.journal_key
  guard given.journal_in_clear == 0 || given.journal_in_clear == 1 else {
    throw refused("journal_in_clear: not 0 or 1")
  }
  guard let path = try cString(given.journal_file, "journal_file") else {
    guard key == nil, given.journal_in_clear == 0 else { throw refused("journal_file", isMissing) }
    return nil
  }
  guard path.count > 1 else { throw refused("journal_file: empty") }
  guard (key != nil) != (given.journal_in_clear == 1) else {
    throw refused(
      key == nil ? "journal_key: missing; set it, or set journal_in_clear" : "journal_in_clear: journal_key is set too")
  }
  if key != nil {
    guard given.journal_key_size == 32 else { throw refused("journal_key_size: not 32") }
    guard canEncryptJournals() else {
      throw refused("journal_key", ": libcurl does not use OpenSSL, so the library cannot encrypt", .state)
    }
  }
  return JournalOptions(
    path: path, key: key.map { Secret(UnsafeBufferPointer(start: $0, count: 32)) },
    setupDelayMax: milliseconds(given.recovery_wait_ms, default: 3000))
}

/// Returns whether libcurl and OpenSSL must wipe the memory that they free.
func wipesFreedMemory(_ pointer: UnsafePointer<usher_context_options>?) throws(UsherError) -> Bool {
  guard let pointer else { return false }
  return try options(pointer).wipe_freed_memory == 1
}

/// The default limit of connections. It leaves half of the process's file descriptors for the host, and a few for the
/// library's other needs.
private func connectionsMaxDefault() -> Int { min(4096, max(4, Int(platform_descriptors_max()) / 2 - 8)) }

/// Returns a closure that calls the `log_destroy` of the options; nil if the options have no `log_destroy`. Throws if
/// the size of the options is not valid. The closure must run even if the context cannot be created.
func logDestroy(_ pointer: UnsafePointer<usher_context_options>?) throws(UsherError) -> (() -> Void)? {
  guard let pointer else { return nil }
  let given = try options(pointer)
  guard let destroy = given.log_destroy else { return nil }
  let user = given.log_user_data
  return { destroy(user) }
}
