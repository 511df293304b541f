public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_playback_request_certificate`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_request_certificate") @implementation
public func usher_playback_request_certificate(
  _ playback: OpaquePointer!, _ fn: usher_license_fn!, _ user_data: UnsafeMutableRawPointer!,
  _ destroy: usher_destroy_fn!
) -> Int32 {
  startRequest(playback, fn, user_data, destroy) { caller throws(UsherError) in
    try certificate(caller, timeout: nil)
  }
}

/// Implements `usher_playback_get_certificate`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_get_certificate") @implementation
public func usher_playback_get_certificate(
  _ playback: OpaquePointer!, _ timeout_ms: UInt32, _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  waitForRequest(playback, out) { caller throws(UsherError) in
    try certificate(caller, timeout: milliseconds(timeout_ms, default: standardTimeout))
  }
}

private func certificate(_ caller: RequestCaller, timeout: Milliseconds?) throws(UsherError) -> RequestStart {
  try caller.refuseToWait()
  let playback = caller.playback
  guard playback.delegate.certificates.canSupply else { throw refused("delegate", ": has no certificate", .state) }
  try caller.refuseIfClosed()
  return { isBlocking, complete in
    playback.engine.requestCertificate(playback.shared, timeout: timeout, isBlocking: isBlocking, complete: complete)
  }
}

/// Implements `usher_playback_request_content_id`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_request_content_id") @implementation
public func usher_playback_request_content_id(
  _ playback: OpaquePointer!, _ url: UnsafePointer<UInt8>!, _ url_size: Int, _ fn: usher_license_fn!,
  _ user_data: UnsafeMutableRawPointer!, _ destroy: usher_destroy_fn!
) -> Int32 {
  startRequest(playback, fn, user_data, destroy) { caller throws(UsherError) in
    try contentID(url, url_size, caller, timeout: standardTimeout)
  }
}

/// Implements `usher_playback_get_content_id`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_get_content_id") @implementation
public func usher_playback_get_content_id(
  _ playback: OpaquePointer!, _ url: UnsafePointer<UInt8>!, _ url_size: Int, _ timeout_ms: UInt32,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  waitForRequest(playback, out) { caller throws(UsherError) in
    try contentID(url, url_size, caller, timeout: milliseconds(timeout_ms, default: standardTimeout))
  }
}

private func contentID(
  _ url: UnsafePointer<UInt8>?, _ size: Int, _ caller: RequestCaller, timeout: Milliseconds
) throws(UsherError) -> RequestStart {
  let text = try neededIdentifier(url, size, "url")
  try caller.refuseToWait()
  try caller.refuseIfClosed()
  let playback = caller.playback
  return { isBlocking, complete in
    playback.engine.requestContentID(
      playback.shared, url: text, timeout: timeout, isBlocking: isBlocking, complete: complete)
  }
}

/// The default time limit of a request for a certificate or a content identifier.
private let standardTimeout: Milliseconds = 10_000
