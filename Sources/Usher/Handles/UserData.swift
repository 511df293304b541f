internal import CUsher
internal import UsherCore
internal import UsherEngine

/// Returns an object that runs the host's `destroy` when no callback can receive the host's `user_data` any more.
/// - Parameter lane: the playback whose callbacks must run before `destroy`; 0 if `destroy` need not wait for a
///   playback.
@inline(never)
func hostReference(
  _ engine: Engine, lane: UInt64 = 0, _ user: UnsafeMutableRawPointer?, _ destroy: usher_destroy_fn?
) -> HostReference {
  HostReference(engine.calls.userData, lane: lane, destroy: destroy.map { fn in { fn(user) } })
}

/// Returns the context of a handle. If the handle is invalid, runs `destroy` at once and throws.
func ownedContext(
  _ handle: OpaquePointer?, _ user: UnsafeMutableRawPointer?, _ destroy: usher_destroy_fn?
) throws(UsherError) -> ContextObject {
  try owned(handle, user, destroy, as: ContextObject.self)
}

/// Returns the object of a handle. If the handle is invalid, runs `destroy` at once and throws.
func owned<Object: HandleObject>(
  _ handle: OpaquePointer?, _ user: UnsafeMutableRawPointer?, _ destroy: usher_destroy_fn?, as kind: Object.Type
) throws(UsherError) -> Object {
  do {
    return try borrow(handle, as: kind)
  } catch {
    if let destroy { withCallbackMark { destroy(user) } }
    throw error
  }
}
