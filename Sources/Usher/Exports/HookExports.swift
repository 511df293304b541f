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
  return report(owing: destroy, user_data) { () throws(UsherError) in
    let object = try ownedContext(context, user_data, destroy)
    let reference = hostReference(object.engine, user_data, destroy)
    let hooks = try delegateHooks(hooks, user_data, reference)
    let delegate = try defaultDelegate(options, insecure: object.allowsInsecureHTTP, needsURL: hooks.licenseURL == nil)
    try give(delegate, object, out)
    reference.accept()
    object.engine.setHooks(delegate, hooks)
  }
}

/// Implements `usher_delegate_set_hooks`; contract in `include/usher/hooks.h`.
@_cdecl("usher_delegate_set_hooks") @implementation
public func usher_delegate_set_hooks(
  _ delegate: OpaquePointer!, _ hooks: UnsafePointer<usher_delegate_hooks>!, _ user_data: UnsafeMutableRawPointer!,
  _ destroy: usher_destroy_fn!
) -> Int32 {
  report(owing: destroy, user_data) { () throws(UsherError) in
    let object = try owned(delegate, user_data, destroy, as: DelegateObject.self)
    let reference = hostReference(object.context.engine, user_data, destroy)
    guard !object.delegate.isCustomer else { throw UsherError(.state) }
    let read = hooks == nil ? nil : try delegateHooks(hooks, user_data, reference)
    reference.accept()
    object.context.engine.setHooks(object.delegate, read)
  }
}

private func delegateHooks(
  _ pointer: UnsafePointer<usher_delegate_hooks>?, _ user: UnsafeMutableRawPointer?, _ reference: HostReference
) throws(UsherError) -> DelegateHooks {
  let given = try options(pointer)
  var hooks = DelegateHooks()
  if let scheme = try schemeName(given.scheme) { hooks.scheme = scheme }
  hooks.contentID = hook(given.content_id, user, reference)
  hooks.certificate = hook(given.certificate, user, reference)
  hooks.headers = hook(given.http_headers, user, reference)
  hooks.licenseURL = hook(given.license_url, user, reference)
  hooks.licenseBody = hook(given.license_body, user, reference)
  hooks.license = hook(given.license, user, reference)
  return hooks
}

/// nil for NULL.
func schemeName(_ text: UnsafePointer<CChar>?) throws(UsherError) -> [UInt8]? {
  guard let scheme = try bytes(text, most: 64) else { return nil }
  guard let first = scheme.first, lowercased(first) >= 0x61, lowercased(first) <= 0x7A, scheme.allSatisfy(isSchemeByte)
  else {
    throw UsherError(.invalidArgument)
  }
  return scheme
}

private func isSchemeByte(_ byte: UInt8) -> Bool {
  let small = lowercased(byte)
  return isDigit(byte) || (small >= 0x61 && small <= 0x7A) || byte == 0x2B || byte == 0x2D || byte == 0x2E
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

/// NULL for none.
func withBytes(_ bytes: [UInt8], _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
  bytes.isEmpty ? body(UnsafeBufferPointer(start: nil, count: 0)) : bytes.withUnsafeBufferPointer(body)
}

func withBytes(_ secret: Secret?, _ body: (UnsafeBufferPointer<UInt8>?) -> Void) {
  if let secret { secret.withBytes { body($0) } } else { body(nil) }
}

/// Implements `usher_complete_hook`; contract in `include/usher/hooks.h`.
@_cdecl("usher_complete_hook") @implementation
public func usher_complete_hook(_ completion: usher_completion, _ bytes: UnsafePointer<UInt8>!, _ size: Int) -> Int32 {
  report { () throws(UsherError) in
    let ask = try question(completion)
    guard case .hook(let kind) = ask.kind, kind != .headers else { throw UsherError(.invalidCompletion) }
    let value = bytes == nil ? nil : try payload(bytes, size)
    if kind == .licenseURL, let value {
      guard let text = value.withBytes({ URLText(Array($0)) }),
        Endpoint.checked(text, insecure: ask.engine.options.allowsInsecureHTTP) != nil
      else {
        throw UsherError(.invalidArgument)
      }
    }
    guard ask.answer(value) else { throw UsherError(.invalidCompletion) }
  }
}

/// Implements `usher_complete_headers`; contract in `include/usher/hooks.h`.
@_cdecl("usher_complete_headers") @implementation
public func usher_complete_headers(_ completion: usher_completion, _ headers: UnsafePointer<CChar>!) -> Int32 {
  report { () throws(UsherError) in
    let ask = try question(completion)
    guard ask.kind == .hook(.headers) else { throw UsherError(.invalidCompletion) }
    _ = try headerLines(headers)
    guard ask.answer(try secretText(headers)) else { throw UsherError(.invalidCompletion) }
  }
}

/// Implements `usher_complete_builtin`; contract in `include/usher/hooks.h`.
@_cdecl("usher_complete_builtin") @implementation
public func usher_complete_builtin(_ completion: usher_completion) -> Int32 {
  report { () throws(UsherError) in
    let ask = try question(completion)
    guard ask.question != nil, ask.reply(.builtin) else { throw UsherError(.invalidCompletion) }
  }
}

/// Implements `usher_hook_builtin`; contract in `include/usher/hooks.h`.
@_cdecl("usher_hook_builtin") @implementation
public func usher_hook_builtin(_ completion: usher_completion, _ out: UnsafeMutablePointer<OpaquePointer?>!) -> Int32 {
  out?.pointee = nil
  return report { () throws(UsherError) in
    guard let out else { throw UsherError(.invalidArgument) }
    let ask = try question(completion)
    guard let asked = ask.question, ask.isOpen else { throw UsherError(.invalidCompletion) }
    let answer: Answer
    switch asked.builtin() {
    case .value(let value):
      answer = Answer(data: value, period: 0, renewType: .none, isRenewal: asked.isRenewal, error: UsherError(.ok))
    case .failed(let error):
      answer = Answer(data: nil, period: 0, renewType: .none, isRenewal: asked.isRenewal, error: error)
    }
    out.pointee = OpaquePointer(bitPattern: handles.give(ResponseObject(context: nil, answer: answer)))
    if answer.error.status != .ok { throw answer.error }
  }
}
