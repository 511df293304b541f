public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_ssp_delegate_new`; contract in `include/usher/delegate.h`.
@_cdecl("usher_ssp_delegate_new") @implementation
public func usher_ssp_delegate_new(_ context: OpaquePointer!, _ options: UnsafePointer<usher_ssp_options>!, _ out: UnsafeMutablePointer<OpaquePointer?>!) -> Int32 {
  out?.pointee = nil
  return report { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    guard let out else { throw UsherError(.invalidArgument) }
    let delegate = try sspDelegate(options, insecure: object.allowsInsecureHTTP)
    try object.refuseIfClosing()
    out.pointee = OpaquePointer(bitPattern: try object.give(DelegateObject(context: object, delegate: delegate)))
  }
}

/// Implements `usher_delegate_set_token_callback`; contract in `include/usher/delegate.h`.
@_cdecl("usher_delegate_set_token_callback") @implementation
public func usher_delegate_set_token_callback(
  _ delegate: OpaquePointer!, _ fn: usher_token_fn!, _ user_data: UnsafeMutableRawPointer!, _ destroy: usher_destroy_fn!
) -> Int32 {
  report(owing: destroy, user_data) { () throws(UsherError) in
    let object = try owned(delegate, user_data, destroy, as: DelegateObject.self)
    let engine = object.context.engine
    let reference = hostReference(engine, user_data, destroy)
    guard let fn else {
      reference.accept()
      return engine.setTokenCallback(object.delegate, nil)
    }
    reference.accept()
    let user = user_data
    engine.setTokenCallback(object.delegate) { ask, host in
      _ = reference
      fn(ask.number, OpaquePointer(bitPattern: host.handle), host.tag, user)
    }
  }
}

/// Implements `usher_delegate_free`; contract in `include/usher/delegate.h`.
@_cdecl("usher_delegate_free") @implementation
public func usher_delegate_free(_ delegate: OpaquePointer!) -> Int32 {
  report { () throws(UsherError) in
    guard let object = try release(delegate, as: DelegateObject.self) else { return }
    object.context.forget(UInt(bitPattern: delegate))
  }
}

/// Implements `usher_complete_token`; contract in `include/usher/delegate.h`.
@_cdecl("usher_complete_token") @implementation
public func usher_complete_token(_ completion: usher_completion, _ text: UnsafePointer<CChar>!) -> Int32 {
  report { () throws(UsherError) in try answer(completion, .token, with: token(text)) }
}

/// Implements `usher_complete_payload`; contract in `include/usher/player.h`.
@_cdecl("usher_complete_payload") @implementation
public func usher_complete_payload(_ completion: usher_completion, _ bytes: UnsafePointer<UInt8>!, _ size: Int) -> Int32 {
  report { () throws(UsherError) in try answer(completion, .payload, with: bytes == nil ? nil : payload(bytes, size)) }
}

private func answer(_ completion: usher_completion, _ kind: Ask.Kind, with value: Secret?) throws(UsherError) {
  guard let object = handles.find(UInt(completion)) as? CompletionObject, object.ask.kind == kind, object.ask.answer(value) else {
    throw UsherError(.invalidCompletion)
  }
}
