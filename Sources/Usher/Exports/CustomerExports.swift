public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_customer_delegate_new`; contract in `include/usher/customer.h`.
@_cdecl("usher_customer_delegate_new") @implementation
public func usher_customer_delegate_new(
  _ context: OpaquePointer!, _ options: UnsafePointer<usher_customer_options>!,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report(context, owing: readable(options)?.pointee.destroy, readable(options)?.pointee.user_data) {
    () throws(UsherError) in
    let given = try Usher.options(options)
    let object = try ownedContext(context, given.user_data, given.destroy)
    let reference = hostReference(object.engine, given.user_data, given.destroy)
    let functions = usher_customer_callbacks(
      struct_size: 0, license: given.license, heartbeat: given.heartbeat, teardown: given.teardown,
      simple_heartbeat: given.simple_heartbeat)
    let callbacks = try customerCallbacks(functions, given.user_data, reference)
    let certificate =
      given.certificate == nil && given.certificate_size == 0
      ? nil : try payload(given.certificate, given.certificate_size, "certificate")
    let delegate = LicenseDelegate(
      policy: try customerPolicy(given), certificates: CertificateSource(certificate: certificate),
      hookTimeout: milliseconds(given.license_timeout_ms, default: 10_000))
    delegate.customer = callbacks
    try give(delegate, object, out)
    try reference.accept()
  }
}

/// Implements `usher_delegate_set_customer_callbacks`; contract in `include/usher/customer.h`.
@_cdecl("usher_delegate_set_customer_callbacks") @implementation
public func usher_delegate_set_customer_callbacks(
  _ delegate: OpaquePointer!, _ callbacks: UnsafePointer<usher_customer_callbacks>!,
  _ user_data: UnsafeMutableRawPointer!, _ destroy: usher_destroy_fn!
) -> Int32 {
  report(delegate, owing: destroy, user_data) { () throws(UsherError) in
    let object = try owned(delegate, user_data, destroy, as: DelegateObject.self)
    let reference = hostReference(object.context.engine, user_data, destroy)
    guard object.delegate.isCustomer else { throw refused("delegate", ": is no customer delegate", .state) }
    let customer = callbacks == nil ? nil : try customerCallbacks(try options(callbacks), user_data, reference)
    guard callbacks == nil || customer != nil else { throw refused("callbacks: no callback") }
    if callbacks != nil { try reference.accept() }
    object.context.engine.setCustomer(object.delegate, customer)
  }
}

private func customerPolicy(_ given: usher_customer_options) throws(UsherError) -> SSPPolicy {
  var policy = SSPPolicy()
  policy.opening = .customer
  policy.needsToken = false
  policy.resetup = .never
  // The host chooses the period, so the limits for the periods of servers do not apply.
  policy.periodMin = 50
  policy.periodMax = 1_000_000_000_000
  // The library calls the teardown callback only once, so it does not retry a teardown.
  policy.teardownRetries = 0
  policy.teardownTimeout = milliseconds(given.teardown_timeout_ms, default: policy.teardownTimeout)
  policy.payloadTimeout = milliseconds(given.payload_timeout_ms, default: policy.payloadTimeout)
  policy.keepAliveTimeout = given.heartbeat_timeout_ms == 0 ? nil : Milliseconds(given.heartbeat_timeout_ms)
  policy.jitter = choice(given.jitter_permille, default: policy.jitter) ?? 0
  policy.retry = choice(given.retry_permille, default: policy.retry) ?? 0
  try checkPermille(policy)
  policy.failuresMax = choice(given.keep_alive_failures_max, default: 10)
  policy.suspend = try suspendRule(given.suspend)
  policy.zapsAtOnce = given.zap_without_waiting == 1
  return policy
}

/// Returns nil if the host has set no callback. If the host has set any callback, it must also have set the licence
/// callback.
@inline(never)
private func customerCallbacks(
  _ given: usher_customer_callbacks, _ user: UnsafeMutableRawPointer?, _ reference: HostReference
) throws(UsherError) -> CustomerCallbacks? {
  guard let license = given.license else {
    if given.heartbeat == nil, given.teardown == nil, given.simple_heartbeat == nil { return nil }
    throw refused("license", isMissing)
  }
  guard given.heartbeat == nil || given.simple_heartbeat == nil else {
    throw refused("heartbeat: both heartbeat and simple_heartbeat")
  }
  return CustomerCallbacks(
    license: { ask, question, host in
      _ = reference
      var request = usher_customer_request()
      request.struct_size = MemoryLayout<usher_customer_request>.size
      request.completion = ask.number
      request.playback = OpaquePointer(bitPattern: host.handle)
      request.tag = host.tag
      request.key_system = UnsafeRawPointer(question.keySystem.identifier.utf8Start).assumingMemoryBound(
        to: CChar.self)
      request.type = question.isRenewal ? USHER_LICENSE_RENEWAL : USHER_LICENSE_REQUEST
      withBytes(question.assetID) { assetID in
        request.asset_id = assetID.baseAddress
        request.asset_id_size = assetID.count
        question.payload.withBytes { payload in
          request.payload = payload.baseAddress
          request.payload_size = payload.count
          license(&request, user)
        }
      }
    },
    heartbeat: customerCall(given.heartbeat, given.simple_heartbeat, user, reference),
    teardown: customerCall(given.teardown, nil, user, reference))
}

@inline(never)
private func customerCall(
  _ fn: usher_customer_call_fn?, _ simple: usher_customer_heartbeat_fn?, _ user: UnsafeMutableRawPointer?,
  _ reference: HostReference
) -> CustomerCallbacks.Call? {
  if fn == nil, simple == nil { return nil }
  return { ask, host in
    _ = reference
    let playback = OpaquePointer(bitPattern: host.handle)
    fn?(ask.number, playback, host.tag, user)
    guard let simple else { return }
    simple(playback, host.tag, user)
    _ = ask.reply(.builtin)
  }
}
