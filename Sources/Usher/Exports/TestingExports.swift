public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_context_advance`; contract in `include/usher/testing.h`.
@_cdecl("usher_context_advance") @implementation
public func usher_context_advance(_ context: OpaquePointer!, _ ms: UInt64, _ settle_ms: UInt32) -> Int32 {
  report(context) { () throws(UsherError) in
    let object = try manualContext(context)
    if !object.engine.advance(ms, settlingWithin: settle_ms) { throw UsherError(.timeout) }
  }
}

/// Implements `usher_context_jump`; contract in `include/usher/testing.h`.
@_cdecl("usher_context_jump") @implementation
public func usher_context_jump(_ context: OpaquePointer!, _ ms: UInt64) -> Int32 {
  report(context) { () throws(UsherError) in try manualContext(context).engine.jump(ms) }
}

private func manualContext(_ context: OpaquePointer?) throws(UsherError) -> ContextObject {
  let object = try borrow(context, as: ContextObject.self)
  try refuseInCallbacks()
  guard object.engine.options.isManualClock else { throw refused("context", ": has no manual clock", .state) }
  return object
}

/// Implements `usher_context_settle`; contract in `include/usher/testing.h`.
@_cdecl("usher_context_settle") @implementation
public func usher_context_settle(
  _ context: OpaquePointer!, _ transfers: UInt32, _ callbacks: UInt32, _ timeout_ms: UInt32
) -> Int32 {
  report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    try refuseInCallbacks()
    guard object.engine.settle(transfers: Int(transfers), callbacks: Int(callbacks), within: timeout_ms) else {
      throw UsherError(.timeout)
    }
  }
}

/// Implements `usher_context_pending`; contract in `include/usher/testing.h`.
@_cdecl("usher_context_pending") @implementation
public func usher_context_pending(_ context: OpaquePointer!, _ out: UnsafeMutablePointer<usher_pending>!) -> Int32 {
  report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    guard let out else { throw refused("out", isMissing) }
    try refuseInCallbacks()
    let pending = object.engine.pending()
    try fill(
      out,
      usher_pending(
        struct_size: MemoryLayout<usher_pending>.size, transfers: UInt32(clamping: pending.transfers),
        callbacks: UInt32(clamping: pending.callbacks), queued: UInt32(clamping: pending.queued), reserved: 0,
        next_timer_ms: pending.next ?? .max, now_ms: pending.now))
  }
}
