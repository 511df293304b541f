internal import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_playback_close`; contract in `include/usher/playback.h`.
@_cdecl("usher_playback_close") @implementation
public func usher_playback_close(_ playback: OpaquePointer!, _ mode: Int32) -> Int32 {
  report(playback) { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    guard object.engine.closePlayback(object.shared, try closeMode(mode), waiting: object.longestWait) else {
      throw refused("mode", isTooLateToTearDown, .state)
    }
  }
}

/// Implements `usher_playback_free`; contract in `include/usher/playback.h`.
@_cdecl("usher_playback_free") @implementation
public func usher_playback_free(_ playback: OpaquePointer!) -> Int32 {
  report(playback) { () throws(UsherError) in
    guard let object = try release(playback, as: PlaybackObject.self) else { return }
    _ = object.engine.closePlayback(object.shared, nil, freeing: true, waiting: object.longestWait)
  }
}

/// Implements `usher_playback_wait_session`; contract in `include/usher/playback.h`.
@_cdecl("usher_playback_wait_session") @implementation
public func usher_playback_wait_session(
  _ playback: OpaquePointer!, _ timeout_ms: UInt32, _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report(playback) { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    try refuseToWait(object.engine)
    let error = object.engine.waitForSession(
      object.id, milliseconds(timeout_ms, default: object.delegate.policy.setupTimeout))
    try giveResponse(RequestResult(data: nil, error: error), object.context, out)
  }
}

/// Implements `usher_playback_wait_closed`; contract in `include/usher/playback.h`.
@_cdecl("usher_playback_wait_closed") @implementation
public func usher_playback_wait_closed(_ playback: OpaquePointer!, _ timeout_ms: UInt32) -> Int32 {
  report(playback) { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    try refuseToWait(object.engine)
    let status = object.engine.waitForClose(object.id, timeout_ms == UInt32.max ? nil : Milliseconds(timeout_ms))
    if status != .ok { throw UsherError(status) }
  }
}

/// Implements `usher_playback_session_state`; contract in `include/usher/playback.h`.
@_cdecl("usher_playback_session_state") @implementation
public func usher_playback_session_state(_ playback: OpaquePointer!, _ out_state: UnsafeMutablePointer<Int32>!) -> Int32
{
  report(playback) { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    guard let out_state else { throw refused("out_state", isMissing) }
    out_state.pointee = object.shared.sessionState
  }
}

/// Implements `usher_playback_set_content_token`; contract in `include/usher/playback.h`.
@_cdecl("usher_playback_set_content_token") @implementation
public func usher_playback_set_content_token(_ playback: OpaquePointer!, _ text: UnsafePointer<CChar>!) -> Int32 {
  report(playback) { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    guard let token = try token(text, "token") else { throw refused("token", isMissing) }
    if !object.engine.isOpen(object.shared) { throw UsherError(.closed) }
    guard object.engine.giveToken(object.id, token) else {
      throw refused("playback", ": needs no content token now", .state)
    }
  }
}

/// Implements `usher_playback_suspend`; contract in `include/usher/playback.h`.
@_cdecl("usher_playback_suspend") @implementation
public func usher_playback_suspend(_ playback: OpaquePointer!) -> Int32 {
  report(playback) { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    object.engine.suspend(object.id)
  }
}

/// Implements `usher_playback_resume`; contract in `include/usher/playback.h`.
@_cdecl("usher_playback_resume") @implementation
public func usher_playback_resume(_ playback: OpaquePointer!) -> Int32 {
  report(playback) { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    object.engine.resume(object.id)
  }
}
