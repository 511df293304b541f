internal import CPlatform
public import CUsher
internal import UsherCore
internal import UsherEngine

/// A licence request as the host wrote it, checked.
private struct Request {
  let keySystem: KeySystem
  let isRenewal: Bool
  let payload: Secret
  /// nil: none.
  let timeout: Milliseconds?
  let assetID: [UInt8]

  @inline(never)
  init(_ pointer: UnsafePointer<usher_license_request>?) throws(UsherError) {
    let given = try options(pointer)
    guard let name = given.key_system else { throw UsherError(.invalidArgument) }
    let count = platform_strnlen(name, 256)
    let known = UnsafeRawPointer(name).withMemoryRebound(to: UInt8.self, capacity: max(count, 1)) {
      KeySystem(UnsafeBufferPointer(start: $0, count: count))
    }
    guard let known, given.type == USHER_LICENSE_REQUEST || given.type == USHER_LICENSE_RENEWAL else {
      throw UsherError(.invalidArgument)
    }
    keySystem = known
    isRenewal = given.type == USHER_LICENSE_RENEWAL
    payload = try Usher.payload(given.payload, given.payload_size)
    timeout = choice(given.timeout_ms, default: 20_000).map { Milliseconds($0) }
    assetID = try identifier(given.asset_id, given.asset_id_size)
  }
}

/// Implements `usher_playback_request_license`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_request_license") @implementation
public func usher_playback_request_license(
  _ playback: OpaquePointer!, _ request: UnsafePointer<usher_license_request>!, _ fn: usher_license_fn!,
  _ user_data: UnsafeMutableRawPointer!,
  _ destroy: usher_destroy_fn!
) -> Int32 {
  report(owing: destroy, user_data) { () throws(UsherError) in
    let object = try owned(playback, user_data, destroy, as: PlaybackObject.self)
    let reference = hostReference(object.engine, lane: object.id, user_data, destroy)
    let request = try Request(request)
    guard let fn else { throw UsherError(.invalidArgument) }
    if object.shared.isEnded { throw UsherError(.closed) }
    reference.accept()
    object.engine.requestLicense(
      object.id, request.keySystem, isRenewal: request.isRenewal, payload: request.payload, timeout: request.timeout,
      assetID: request.assetID,
      contentID: contentID(request.assetID, object.delegate), isBlocking: false,
      complete: completion(playback, object.tag, fn, user_data, reference))
  }
}

/// Implements `usher_playback_get_license`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_get_license") @implementation
public func usher_playback_get_license(
  _ playback: OpaquePointer!, _ request: UnsafePointer<usher_license_request>!,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    let request = try Request(request)
    try refuseToWait(object.engine)
    if object.shared.isEnded { throw UsherError(.closed) }
    let wait = Wait<Answer>()
    object.engine.requestLicense(
      object.id, request.keySystem, isRenewal: request.isRenewal, payload: request.payload, timeout: request.timeout,
      assetID: request.assetID,
      contentID: contentID(request.assetID, object.delegate), isBlocking: true, complete: { wait.end($0) })
    try handOut(wait.wait(), object.context, out)
  }
}

/// Implements `usher_playback_request_certificate`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_request_certificate") @implementation
public func usher_playback_request_certificate(
  _ playback: OpaquePointer!, _ fn: usher_license_fn!, _ user_data: UnsafeMutableRawPointer!,
  _ destroy: usher_destroy_fn!
) -> Int32 {
  report(owing: destroy, user_data) { () throws(UsherError) in
    let object = try owned(playback, user_data, destroy, as: PlaybackObject.self)
    let reference = hostReference(object.engine, lane: object.id, user_data, destroy)
    guard let fn else { throw UsherError(.invalidArgument) }
    try refuseWithoutCertificate(object)
    reference.accept()
    object.engine.requestCertificate(
      object.id, timeout: nil, isBlocking: false, complete: completion(playback, object.tag, fn, user_data, reference))
  }
}

/// Implements `usher_playback_get_certificate`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_get_certificate") @implementation
public func usher_playback_get_certificate(
  _ playback: OpaquePointer!, _ timeout_ms: UInt32, _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    try refuseToWait(object.engine)
    try refuseWithoutCertificate(object)
    let wait = Wait<Answer>()
    object.engine.requestCertificate(
      object.id, timeout: milliseconds(timeout_ms, default: certificateTimeout), isBlocking: true,
      complete: { wait.end($0) })
    try handOut(wait.wait(), object.context, out)
  }
}

private let certificateTimeout: Milliseconds = 10_000

private func refuseWithoutCertificate(_ object: PlaybackObject) throws(UsherError) {
  guard object.delegate.certificates.canSupply else { throw UsherError(.state) }
  if object.shared.isEnded { throw UsherError(.closed) }
}

/// Tells the host's completion; holds its `user_data` until it has.
@inline(never)
func completion(
  _ playback: OpaquePointer?, _ tag: UInt64,
  _ fn:
    @escaping @convention(c) (OpaquePointer?, UnsafePointer<usher_response_info>?, UInt64, UnsafeMutableRawPointer?) ->
    Void,
  _ user: UnsafeMutableRawPointer?, _ reference: HostReference
) -> (Answer) -> Void {
  { answer in
    _ = reference
    withResponse(answer) { fn(playback, $0, tag, user) }
  }
}

@inline(never)
func handOut(
  _ answer: Answer, _ context: ContextObject, _ out: UnsafeMutablePointer<OpaquePointer?>?
) throws(UsherError) {
  if let out {
    out.pointee = OpaquePointer(bitPattern: try context.give(ResponseObject(context: context, answer: answer)))
  }
  if answer.error.status != .ok { throw answer.error }
}

/// Implements `usher_playback_get_content_id`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_get_content_id") @implementation
public func usher_playback_get_content_id(
  _ playback: OpaquePointer!, _ url: UnsafePointer<UInt8>!, _ url_size: Int, _ timeout_ms: UInt32,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    let text = try neededIdentifier(url, url_size)
    try refuseToWait(object.engine)
    if object.shared.isEnded { throw UsherError(.closed) }
    let wait = Wait<Answer>()
    object.engine.requestContentID(
      object.id, url: text, timeout: milliseconds(timeout_ms, default: certificateTimeout), isBlocking: true,
      complete: { wait.end($0) })
    try handOut(wait.wait(), object.context, out)
  }
}

/// Implements `usher_playback_request_content_id`; contract in `include/usher/license.h`.
@_cdecl("usher_playback_request_content_id") @implementation
public func usher_playback_request_content_id(
  _ playback: OpaquePointer!, _ url: UnsafePointer<UInt8>!, _ url_size: Int, _ fn: usher_license_fn!,
  _ user_data: UnsafeMutableRawPointer!,
  _ destroy: usher_destroy_fn!
) -> Int32 {
  report(owing: destroy, user_data) { () throws(UsherError) in
    let object = try owned(playback, user_data, destroy, as: PlaybackObject.self)
    let reference = hostReference(object.engine, lane: object.id, user_data, destroy)
    let text = try neededIdentifier(url, url_size)
    guard let fn else { throw UsherError(.invalidArgument) }
    if object.shared.isEnded { throw UsherError(.closed) }
    reference.accept()
    object.engine.requestContentID(
      object.id, url: text, timeout: certificateTimeout, isBlocking: false,
      complete: completion(playback, object.tag, fn, user_data, reference))
  }
}

/// What the token map knows an asset by; only where there is one.
private func contentID(_ assetID: [UInt8], _ delegate: LicenseDelegate) -> [UInt8] {
  guard delegate.tokenMap != nil, !assetID.isEmpty else { return [] }
  return sspContentID(assetID) ?? assetID
}

/// Implements `usher_response_get`; contract in `include/usher/license.h`.
@_cdecl("usher_response_get") @implementation
public func usher_response_get(_ response: OpaquePointer!, _ out: UnsafeMutablePointer<usher_response_info>!) -> Int32 {
  report { () throws(UsherError) in
    let object = try borrow(response, as: ResponseObject.self)
    guard let out else { throw UsherError(.invalidArgument) }
    _ = try roomFor(UnsafeRawPointer(out), first: MemoryLayout<usher_response_info>.size)
    object.message.withUnsafeBytes { message in
      // The array and the secret live as long as the response, and neither moves.
      let text = message.baseAddress?.assumingMemoryBound(to: CChar.self)
      if let data = object.answer.data {
        data.withBytes { out.pointee = mapResponse(object.answer, $0, text) }
      } else {
        out.pointee = mapResponse(object.answer, nil, text)
      }
    }
  }
}

/// Implements `usher_response_free`; contract in `include/usher/license.h`.
@_cdecl("usher_response_free") @implementation
public func usher_response_free(_ response: OpaquePointer!) -> Int32 {
  report { () throws(UsherError) in
    guard let object = try release(response, as: ResponseObject.self) else { return }
  }
}
