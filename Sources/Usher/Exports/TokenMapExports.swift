internal import CPlatform
public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_multi_instance_delegate_new`; contract in `include/usher/tokens.h`.
@_cdecl("usher_multi_instance_delegate_new") @implementation
public func usher_multi_instance_delegate_new(
  _ context: OpaquePointer!, _ options: UnsafePointer<usher_ssp_options>!,
  _ map: UnsafePointer<usher_token_map_options>!,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    let given = map == nil ? nil : try Usher.options(map)
    let bound = given.map { Int(clamping: $0.tokens_max) } ?? 0
    let life = given?.time_to_live_ms ?? 0
    var seed: UInt64 = 0
    guard platform_random_bytes(&seed, MemoryLayout<UInt64>.size) == 0 else { throw UsherError(.system) }
    let tokens = object.engine.newTokenStore(
      bound: bound == 0 ? nil : bound, timeToLive: life == 0 ? nil : life, seed: seed)
    try give(try sspDelegate(options, insecure: object.allowsInsecureHTTP, map: tokens), object, out)
  }
}

/// Returns the multi-instance delegate of a handle, and its token map. Throws if the delegate has no map.
private func delegateWithMap(_ delegate: OpaquePointer?) throws(UsherError) -> (DelegateObject, TokenStore) {
  let object = try borrow(delegate, as: DelegateObject.self)
  guard let map = object.delegate.tokenMap else { throw refused("delegate", ": has no token map", .state) }
  return (object, map)
}

/// Checks the bytes of a key and returns a view of them, so that a look-up needs no copy.
private func key(_ pointer: UnsafePointer<UInt8>?, _ count: Int) throws(UsherError) -> UnsafeBufferPointer<UInt8> {
  guard let pointer, count > 0, count <= 1 << 16 else { throw refused("content_id: missing, empty or too long") }
  return UnsafeBufferPointer(start: pointer, count: count)
}

/// Implements `usher_delegate_set_stream_token`; contract in `include/usher/tokens.h`.
@_cdecl("usher_delegate_set_stream_token") @implementation
public func usher_delegate_set_stream_token(
  _ delegate: OpaquePointer!, _ content_id: UnsafePointer<UInt8>!, _ content_id_size: Int, _ text: UnsafePointer<CChar>!
) -> Int32 {
  report(delegate) { () throws(UsherError) in
    let (object, map) = try delegateWithMap(delegate)
    let key = try key(content_id, content_id_size)
    guard let token = try token(text, "token") else { throw refused("token", isMissing) }
    switch map.set(key, token) {
    case .added, .addedByPruning, .replaced: object.context.engine.tokenMapped(object.delegate, Array(key))
    case .full: throw UsherError(.full)
    case .badKey: throw refused("content_id: not a valid key")
    }
  }
}

/// Implements `usher_delegate_get_stream_token`; contract in `include/usher/tokens.h`.
@_cdecl("usher_delegate_get_stream_token") @implementation
public func usher_delegate_get_stream_token(
  _ delegate: OpaquePointer!, _ content_id: UnsafePointer<UInt8>!, _ content_id_size: Int,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report(delegate) { () throws(UsherError) in
    let (object, map) = try delegateWithMap(delegate)
    guard let token = map.get(try key(content_id, content_id_size)) else { throw UsherError(.noToken) }
    guard let out else { return }
    let answer = RequestResult(data: token, period: 0, renewType: .none, isRenewal: false, error: UsherError(.ok))
    out.pointee = OpaquePointer(
      bitPattern: try object.context.give(ResponseObject(context: object.context, answer: answer)))
  }
}

/// Implements `usher_delegate_remove_stream_token`; contract in `include/usher/tokens.h`.
@_cdecl("usher_delegate_remove_stream_token") @implementation
public func usher_delegate_remove_stream_token(
  _ delegate: OpaquePointer!, _ content_id: UnsafePointer<UInt8>!, _ content_id_size: Int
) -> Int32 {
  report(delegate) { () throws(UsherError) in
    let (_, map) = try delegateWithMap(delegate)
    guard map.remove(try key(content_id, content_id_size)) else { throw UsherError(.noToken) }
  }
}

/// Implements `usher_delegate_clear_stream_tokens`; contract in `include/usher/tokens.h`.
@_cdecl("usher_delegate_clear_stream_tokens") @implementation
public func usher_delegate_clear_stream_tokens(_ delegate: OpaquePointer!) -> Int32 {
  report(delegate) { () throws(UsherError) in try delegateWithMap(delegate).1.clear() }
}

/// Implements `usher_delegate_count_stream_tokens`; contract in `include/usher/tokens.h`.
@_cdecl("usher_delegate_count_stream_tokens") @implementation
public func usher_delegate_count_stream_tokens(
  _ delegate: OpaquePointer!, _ out_count: UnsafeMutablePointer<Int>!
) -> Int32 {
  report(delegate) { () throws(UsherError) in
    let (_, map) = try delegateWithMap(delegate)
    guard let out_count else { throw refused("out_count", isMissing) }
    out_count.pointee = map.count
  }
}
