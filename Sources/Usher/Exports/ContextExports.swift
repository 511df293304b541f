public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_context_new`; contract in `include/usher/context.h`.
@_cdecl("usher_context_new") @implementation
public func usher_context_new(
  _ options: UnsafePointer<usher_context_options>!, _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report(owing: readable(options)?.pointee.log_destroy, readable(options)?.pointee.log_user_data) {
    () throws(UsherError) in
    let destroy = try logDestroy(options)
    let engine: Engine
    do throws(UsherError) {
      guard out != nil else { throw refused("out", isMissing) }
      engine = try startedEngine(options)
    } catch {
      if let options = readable(options) { tellRefusal(options, error.status.rawValue, error.message) }
      if let destroy { withCallbackMark(destroy) }
      throw error
    }
    let logReference = HostReference(engine.calls.userData, lane: 0, destroy: destroy)
    try logReference.accept()
    if let options, let log = options.pointee.log {
      let user = options.pointee.log_user_data
      engine.setLog { level, line in
        _ = logReference
        line.withCString { log(level.rawValue, $0, user) }
      }
    }
    engine.superviseGuardian()
    let context = ContextObject(engine: engine, allowsInsecureHTTP: options?.pointee.allow_insecure_http == 1)
    out?.pointee = OpaquePointer(bitPattern: handles.give(context))
  }
}

/// Tells the host why it gets no context. Calls the host's `refusal` and the host's log function, both on the calling
/// thread.
@inline(never)
private func tellRefusal(_ options: UnsafePointer<usher_context_options>, _ status: Int32, _ text: String) {
  tell(options.pointee.refusal, options.pointee.refusal_user_data, status, text)
  // A log callback has the same parameters as `refusal`, so `tell` can call it too.
  tell(options.pointee.log, options.pointee.log_user_data, USHER_LOG_WARNING, text)
}

/// Starts the guardian if the options ask for one.
private func addGuardian(
  to chosen: inout EngineOptions, _ options: UnsafePointer<usher_context_options>
) throws(UsherError) {
  let mode = options.pointee.guardian
  guard mode != USHER_GUARDIAN_OFF else { return }
  let path = try cString(options.pointee.guardian_path, "guardian_path")
  do throws(UsherError) {
    let guardian = try Guardian.start(path, chosen.transport)
    chosen.guardian = guardian
    chosen.recordKeeper = guardian.records
  } catch {
    if mode == USHER_GUARDIAN_REQUIRED { throw error }
    guard chosen.logLevel >= USHER_LOG_WARNING else { return }
    tell(options.pointee.log, options.pointee.log_user_data, USHER_LOG_WARNING, error.message)
  }
}

private func startedEngine(_ options: UnsafePointer<usher_context_options>?) throws(UsherError) -> Engine {
  guard guardAgainstFork(), ensureCallbackMark() else { throw UsherError(.system) }
  // Initialise libcurl first, because contextOptions() calls OpenSSL to check the certificate files.
  try ensureCurl(wiping: try wipesFreedMemory(options))
  var chosen = try contextOptions(options)
  if let options { try addGuardian(to: &chosen, options) }
  if chosen.closeAtExit > 0 {
    guard ClosingAtExit.prepare() else { throw UsherError(.system) }
    chosen.onEnd = { ClosingAtExit.remove($0) }
  }
  guard let engine = Engine.make(chosen), engine.start() else { throw UsherError(.system) }
  if chosen.closeAtExit > 0 { ClosingAtExit.add(engine) }
  return engine
}

/// Implements `usher_context_close`; contract in `include/usher/context.h`.
@_cdecl("usher_context_close") @implementation
public func usher_context_close(
  _ context: OpaquePointer!, _ timeout_ms: UInt32, _ out_open: UnsafeMutablePointer<UInt32>!
) -> Int32 {
  report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    object.beginClosing(within: Milliseconds(timeout_ms))
    try refuseToWait(object.engine)
    let open = object.engine.waitUntilClosed(atMost: Milliseconds(timeout_ms))
    out_open?.pointee = UInt32(clamping: open)
    if open > 0 { throw UsherError(.timeout) }
    object.engine.settleCallbacks()
  }
}

/// Implements `usher_context_begin_close`; contract in `include/usher/context.h`.
@_cdecl("usher_context_begin_close") @implementation
public func usher_context_begin_close(_ context: OpaquePointer!, _ timeout_ms: UInt32) -> Int32 {
  report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    object.beginClosing(within: Milliseconds(timeout_ms))
    object.engine.reportClosed(within: Milliseconds(timeout_ms))
  }
}

/// Implements `usher_context_free`; contract in `include/usher/context.h`.
@_cdecl("usher_context_free") @implementation
public func usher_context_free(_ context: OpaquePointer!) -> Int32 {
  report(context) { () throws(UsherError) in
    guard let object = try release(context, as: ContextObject.self) else { return }
    object.endHandles()
    object.beginClosing()
    guard isCallbackThread() else { return object.engine.end() }
    let engine = object.engine
    if let pump = engine.calls.pump {
      // The calling thread is inside a callback, so it must not wait here. If a thread pumps this context now, that
      // thread ends the engine after its pump. Otherwise, if a pump of another context runs this callback, the engine
      // ends after that pump.
      let work = { engine.end() }
      if pump.afterThisTurn(work) || PumpedExecutor.ofThisCallback?.afterThisTurn(work) == true { return }
    }
    engine.endInBackground()
  }
}

/// Implements `usher_context_add_observer`; contract in `include/usher/context.h`.
@_cdecl("usher_context_add_observer") @implementation
public func usher_context_add_observer(
  _ context: OpaquePointer!, _ fn: usher_event_fn!, _ user_data: UnsafeMutableRawPointer!, _ destroy: usher_destroy_fn!,
  _ out_id: UnsafeMutablePointer<UInt64>!
) -> Int32 {
  report(context, owing: destroy, user_data) { () throws(UsherError) in
    let object = try ownedContext(context, user_data, destroy)
    let user = user_data
    try addObserver(object, 0, hasFunction: fn != nil, user_data, destroy, out_id) { id, reference in
      object.engine.addObserver(id) { event in
        _ = reference
        withEvent(event) { fn?($0, user) }
      }
    }
  }
}

/// Adds an observer of a context, or of a player.
/// - Parameters:
///   - player: 0 for an observer of the context.
///   - add: passes the observer to the engine.
@inline(never)
func addObserver(
  _ context: ContextObject, _ player: PlayerID, hasFunction: Bool, _ user: UnsafeMutableRawPointer?,
  _ destroy: usher_destroy_fn?,
  _ out: UnsafeMutablePointer<UInt64>?, _ add: (UInt64, HostReference) -> Void
) throws(UsherError) {
  let reference = hostReference(context.engine, user, destroy)
  guard hasFunction else { throw refused("fn", isMissing) }
  try context.refuseIfClosing()
  try reference.accept()
  let id = context.newID()
  context.addObserver(id, of: player)
  add(id, reference)
  out?.pointee = id
}

/// Implements `usher_context_remove_observer`; contract in `include/usher/context.h`.
@_cdecl("usher_context_remove_observer") @implementation
public func usher_context_remove_observer(_ context: OpaquePointer!, _ id: UInt64) -> Int32 {
  report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    guard object.removeObserver(id) else { throw refused("id: unknown") }
    object.engine.removeObserver(id)
  }
}

/// Implements `usher_context_set_delegate`; contract in `include/usher/context.h`.
@_cdecl("usher_context_set_delegate") @implementation
public func usher_context_set_delegate(_ context: OpaquePointer!, _ delegate: OpaquePointer!) -> Int32 {
  report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    guard let delegate else {
      object.delegate = nil
      return
    }
    let chosen = try borrow(delegate, as: DelegateObject.self)
    guard chosen.context === object else { throw refused("delegate: of another context") }
    object.delegate = chosen.delegate
  }
}

/// Implements `usher_context_pump`; contract in `include/usher/context.h`.
@_cdecl("usher_context_pump") @implementation
public func usher_context_pump(_ context: OpaquePointer!, _ out_ran: UnsafeMutablePointer<UInt32>!) -> Int32 {
  out_ran?.pointee = 0
  return report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    guard let pump = object.engine.calls.pump else { throw refused("context", ": is not pumped", .state) }
    switch pump.pump() {
    case .ran(let count): out_ran?.pointee = UInt32(clamping: count)
    case .busy: throw refused("context", ": another thread pumps", .state)
    case .reentered: throw UsherError(.wouldDeadlock)
    }
  }
}

/// Implements `usher_context_pump_fd`; contract in `include/usher/context.h`.
@_cdecl("usher_context_pump_fd") @implementation
public func usher_context_pump_fd(_ context: OpaquePointer!, _ out_fd: UnsafeMutablePointer<Int32>!) -> Int32 {
  out_fd?.pointee = -1
  return report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    guard let out_fd else { throw refused("out_fd", isMissing) }
    guard let pump = object.engine.calls.pump else { throw refused("context", ": is not pumped", .state) }
    out_fd.pointee = pump.fileDescriptor
  }
}

/// Implements `usher_context_suspend`; contract in `include/usher/context.h`.
@_cdecl("usher_context_suspend") @implementation
public func usher_context_suspend(_ context: OpaquePointer!) -> Int32 {
  report(context) { () throws(UsherError) in try borrow(context, as: ContextObject.self).engine.suspend(nil) }
}

/// Implements `usher_context_resume`; contract in `include/usher/context.h`.
@_cdecl("usher_context_resume") @implementation
public func usher_context_resume(_ context: OpaquePointer!) -> Int32 {
  report(context) { () throws(UsherError) in try borrow(context, as: ContextObject.self).engine.resume(nil) }
}

/// Implements `usher_context_network_changed`; contract in `include/usher/context.h`.
@_cdecl("usher_context_network_changed") @implementation
public func usher_context_network_changed(_ context: OpaquePointer!) -> Int32 {
  report(context) { () throws(UsherError) in try borrow(context, as: ContextObject.self).engine.networkChanged() }
}
