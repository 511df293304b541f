public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_ssp_delegate_new`; contract in `include/usher/delegate.h`.
@_cdecl("usher_ssp_delegate_new") @implementation
public func usher_ssp_delegate_new(
  _ context: OpaquePointer!, _ options: UnsafePointer<usher_ssp_options>!, _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    try give(try sspDelegate(options, insecure: object.allowsInsecureHTTP), object, out)
  }
}

/// Implements `usher_ssp_v2_delegate_new`; contract in `include/usher/delegate.h`.
@_cdecl("usher_ssp_v2_delegate_new") @implementation
public func usher_ssp_v2_delegate_new(
  _ context: OpaquePointer!, _ options: UnsafePointer<usher_ssp_v2_options>!,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    try give(try sspV2Delegate(options, insecure: object.allowsInsecureHTTP), object, out)
  }
}

/// Implements `usher_default_delegate_new`; contract in `include/usher/delegate.h`.
@_cdecl("usher_default_delegate_new") @implementation
public func usher_default_delegate_new(
  _ context: OpaquePointer!, _ options: UnsafePointer<usher_default_options>!,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    try give(try defaultDelegate(options, insecure: object.allowsInsecureHTTP, needsURL: true), object, out)
  }
}

/// Gives the host the handle of a new delegate.
func give(
  _ delegate: LicenseDelegate, _ context: ContextObject, _ out: UnsafeMutablePointer<OpaquePointer?>?
) throws(UsherError) {
  guard let out else { throw refused("out", isMissing) }
  try context.refuseIfClosing()
  out.pointee = OpaquePointer(bitPattern: try context.give(DelegateObject(context: context, delegate: delegate)))
}

/// Implements `usher_delegate_set_http_header`; contract in `include/usher/delegate.h`.
@_cdecl("usher_delegate_set_http_header") @implementation
public func usher_delegate_set_http_header(
  _ delegate: OpaquePointer!, _ name: UnsafePointer<CChar>!, _ value: UnsafePointer<CChar>!
) -> Int32 {
  report(delegate) { () throws(UsherError) in
    let object = try borrow(delegate, as: DelegateObject.self)
    guard name != nil else { throw refused("name", isMissing) }
    let name = try headerName(name, "name")
    let line = try headerValue(value, "value").map { value in
      Secret(count: name.count + 2 + value.count + 1) { target in
        for index in 0..<name.count { target[index] = name[index] }
        target[name.count] = 0x3A
        target[name.count + 1] = 0x20
        value.withBytes { for index in 0..<$0.count { target[name.count + 2 + index] = $0[index] } }
      }
    }
    object.context.engine.setLicenseHeader(object.delegate, name: name, line: line)
  }
}

/// Implements `usher_delegate_connect_ahead`; contract in `include/usher/delegate.h`.
@_cdecl("usher_delegate_connect_ahead") @implementation
public func usher_delegate_connect_ahead(_ delegate: OpaquePointer!, _ keep_ms: UInt32) -> Int32 {
  report(delegate) { () throws(UsherError) in
    let object = try borrow(delegate, as: DelegateObject.self)
    try object.context.refuseIfClosing()
    object.context.engine.connectAhead(object.delegate, keepingFor: Milliseconds(keep_ms))
  }
}

/// Implements `usher_delegate_free`; contract in `include/usher/delegate.h`.
@_cdecl("usher_delegate_free") @implementation
public func usher_delegate_free(_ delegate: OpaquePointer!) -> Int32 {
  report(delegate) { () throws(UsherError) in
    _ = try release(delegate, as: DelegateObject.self)
  }
}
