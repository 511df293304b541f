internal import CPlatform
public import CUsher
internal import UsherCore
internal import UsherEngine

/// The checked form of a host's `usher_license_request`.
private struct Request {
  let keySystem: KeySystem
  let isRenewal: Bool
  let payload: Secret
  /// nil: no limit.
  let timeout: Milliseconds?
  let assetID: [UInt8]

  @inline(never)
  init(_ pointer: UnsafePointer<usher_license_request>?) throws(UsherError) {
    let given = try options(pointer)
    guard let name = given.key_system else { throw refused("key_system", isMissing) }
    let count = platform_strnlen(name, 256)
    let known = UnsafeRawPointer(name).withMemoryRebound(to: UInt8.self, capacity: max(count, 1)) {
      KeySystem(UnsafeBufferPointer(start: $0, count: count))
    }
    guard let known else { throw refused("key_system", isUnknown) }
    guard given.type == USHER_LICENSE_REQUEST || given.type == USHER_LICENSE_RENEWAL else {
      throw refused("type", isUnknown)
    }
    keySystem = known
    isRenewal = given.type == USHER_LICENSE_RENEWAL
    payload = try Usher.payload(given.payload, given.payload_size, "payload")
    timeout = choice(given.timeout_ms, default: 20_000).map { Milliseconds($0) }
    assetID = try identifier(given.asset_id, given.asset_id_size, "asset_id")
  }
}

/// Implements `usher_playback_request_license`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_request_license") @implementation
public func usher_playback_request_license(
  _ playback: OpaquePointer!, _ request: UnsafePointer<usher_license_request>!, _ fn: usher_license_fn!,
  _ user_data: UnsafeMutableRawPointer!, _ destroy: usher_destroy_fn!
) -> Int32 {
  startRequest(playback, fn, user_data, destroy) { caller throws(UsherError) in try license(request, caller) }
}

/// Implements `usher_playback_get_license`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_get_license") @implementation
public func usher_playback_get_license(
  _ playback: OpaquePointer!, _ request: UnsafePointer<usher_license_request>!,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  waitForRequest(playback, out) { caller throws(UsherError) in try license(request, caller) }
}

private func license(
  _ pointer: UnsafePointer<usher_license_request>?, _ caller: RequestCaller
) throws(UsherError) -> RequestStart {
  let request = try Request(pointer)
  try caller.refuseToWait()
  try caller.refuseIfClosed()
  let playback = caller.playback
  let content = contentID(request.assetID, playback.delegate)
  return { isBlocking, complete in
    playback.engine.requestLicense(
      playback.shared, request.keySystem, isRenewal: request.isRenewal, payload: request.payload,
      timeout: request.timeout,
      assetID: request.assetID, contentID: content, isBlocking: isBlocking, complete: complete)
  }
}

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

/// Returns the content identifier by which the token map finds the token of an asset; empty for a delegate without a
/// map.
private func contentID(_ assetID: [UInt8], _ delegate: LicenseDelegate) -> [UInt8] {
  guard delegate.tokenMap != nil, !assetID.isEmpty else { return [] }
  return sspContentID(assetID) ?? assetID
}

/// Implements `usher_response_get`; contract in `include/usher/license.h`.
@_cdecl("usher_response_get") @implementation
public func usher_response_get(_ response: OpaquePointer!, _ out: UnsafeMutablePointer<usher_response_info>!) -> Int32 {
  report(response) { () throws(UsherError) in
    let object = try borrow(response, as: ResponseObject.self)
    guard let out else { throw refused("out", isMissing) }
    let info = object.message.withUnsafeBytes { message in
      // The host may keep these pointers: the array and the secret live as long as the response, and neither moves.
      let text = message.baseAddress?.assumingMemoryBound(to: CChar.self)
      return object.answer.data?.withBytes { mapResponse(object.answer, $0, text) }
        ?? mapResponse(object.answer, nil, text)
    }
    try fill(out, info)
  }
}

/// Implements `usher_response_free`; contract in `include/usher/license.h`.
@_cdecl("usher_response_free") @implementation
public func usher_response_free(_ response: OpaquePointer!) -> Int32 {
  report(response) { () throws(UsherError) in
    _ = try release(response, as: ResponseObject.self)
  }
}
