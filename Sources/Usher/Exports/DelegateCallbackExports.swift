public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_common_delegate_new`; contract in `include/usher/hooks.h`.
@_cdecl("usher_common_delegate_new") @implementation
public func usher_common_delegate_new(
  _ context: OpaquePointer!, _ options: UnsafePointer<usher_default_options>!,
  _ hooks: UnsafePointer<usher_delegate_hooks>!,
  _ user_data: UnsafeMutableRawPointer!, _ destroy: usher_destroy_fn!, _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report(context, owing: destroy, user_data) { () throws(UsherError) in
    let object = try ownedContext(context, user_data, destroy)
    let reference = hostReference(object.engine, user_data, destroy)
    let hooks = try delegateHooks(hooks, user_data, reference)
    let delegate = try defaultDelegate(options, insecure: object.allowsInsecureHTTP, needsURL: hooks.licenseURL == nil)
    try give(delegate, object, out)
    try reference.accept()
    object.engine.setHooks(delegate, hooks)
  }
}

/// Implements `usher_delegate_set_token_callback`; contract in `include/usher/delegate.h`.
@_cdecl("usher_delegate_set_token_callback") @implementation
public func usher_delegate_set_token_callback(
  _ delegate: OpaquePointer!, _ fn: usher_token_fn!, _ user_data: UnsafeMutableRawPointer!, _ destroy: usher_destroy_fn!
) -> Int32 {
  report(delegate, owing: destroy, user_data) { () throws(UsherError) in
    let object = try owned(delegate, user_data, destroy, as: DelegateObject.self)
    let engine = object.context.engine
    let reference = hostReference(engine, user_data, destroy)
    guard let fn else {
      try reference.accept()
      return engine.setTokenCallback(object.delegate, nil)
    }
    try reference.accept()
    let user = user_data
    engine.setTokenCallback(object.delegate) { ask, host in
      _ = reference
      fn(ask.number, OpaquePointer(bitPattern: host.handle), host.tag, user)
    }
  }
}

/// Implements `usher_delegate_set_hooks`; contract in `include/usher/hooks.h`.
@_cdecl("usher_delegate_set_hooks") @implementation
public func usher_delegate_set_hooks(
  _ delegate: OpaquePointer!, _ hooks: UnsafePointer<usher_delegate_hooks>!, _ user_data: UnsafeMutableRawPointer!,
  _ destroy: usher_destroy_fn!
) -> Int32 {
  report(delegate, owing: destroy, user_data) { () throws(UsherError) in
    let object = try owned(delegate, user_data, destroy, as: DelegateObject.self)
    let reference = hostReference(object.context.engine, user_data, destroy)
    guard !object.delegate.isCustomer else { throw refused("delegate", ": is a customer delegate", .state) }
    let read = hooks == nil ? nil : try delegateHooks(hooks, user_data, reference)
    try reference.accept()
    object.context.engine.setHooks(object.delegate, read)
  }
}

private func delegateHooks(
  _ pointer: UnsafePointer<usher_delegate_hooks>?, _ user: UnsafeMutableRawPointer?, _ reference: HostReference
) throws(UsherError) -> DelegateHooks {
  let given = try options(pointer)
  var hooks = DelegateHooks()
  if let scheme = try schemeName(given.scheme, "scheme") { hooks.scheme = scheme }
  hooks.contentID = hook(given.content_id, user, reference)
  hooks.certificate = hook(given.certificate, user, reference)
  hooks.headers = hook(given.http_headers, user, reference)
  hooks.licenseURL = hook(given.license_url, user, reference)
  hooks.licenseBody = hook(given.license_body, user, reference)
  hooks.license = hook(given.license, user, reference)
  return hooks
}

private func hook(
  _ fn: usher_hook_fn?, _ user: UnsafeMutableRawPointer?, _ reference: HostReference
) -> DelegateHooks.Hook? {
  guard let fn else { return nil }
  return { ask, question, host in
    _ = reference
    var call = usher_hook_call()
    call.struct_size = MemoryLayout<usher_hook_call>.size
    call.completion = ask.number
    call.hook = question.kind.rawValue
    call.type = question.isRenewal ? USHER_LICENSE_RENEWAL : USHER_LICENSE_REQUEST
    call.playback = OpaquePointer(bitPattern: host.handle)
    call.tag = host.tag
    call.key_system = question.keySystem.map {
      UnsafeRawPointer($0.identifier.utf8Start).assumingMemoryBound(to: CChar.self)
    }
    call.http_status = question.httpStatus
    withBytes(question.assetID) { assetID in
      call.asset_id = assetID.baseAddress
      call.asset_id_size = assetID.count
      withBytes(question.data) { data in
        call.data = data?.baseAddress
        call.data_size = data?.count ?? 0
        fn(&call, user)
      }
    }
  }
}
