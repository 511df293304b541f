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

/// Returns the content identifier by which the token map finds the token of an asset; empty for a delegate without a
/// map.
private func contentID(_ assetID: [UInt8], _ delegate: LicenseDelegate) -> [UInt8] {
  guard delegate.tokenMap != nil, !assetID.isEmpty else { return [] }
  return sspContentID(assetID) ?? assetID
}

// Each request has two functions in C: one returns at once and calls a completion later, the other waits for the
// answer.

/// Starts a checked request; `complete` receives its answer. Returns false if the host has asked to close the playback.
typealias RequestStart = (_ isBlocking: Bool, _ complete: @escaping (RequestResult) -> Void) -> Bool

/// The playback that a request is for, and whether the calling function waits.
struct RequestCaller {
  let playback: PlaybackObject
  fileprivate let isBlocking: Bool

  /// Throws if the calling function waits for work that only the calling thread can do.
  func refuseToWait() throws(UsherError) {
    if isBlocking { try Usher.refuseToWait(playback.engine) }
  }

  func refuseIfClosed() throws(UsherError) {
    if !playback.engine.isOpen(playback.shared) { throw UsherError(.closed) }
  }
}

/// For the functions that call a completion later: checks the request, starts it and returns.
@inline(never)
func startRequest(
  _ playback: OpaquePointer?, _ fn: usher_license_fn?, _ user: UnsafeMutableRawPointer?, _ destroy: usher_destroy_fn?,
  check: (RequestCaller) throws(UsherError) -> RequestStart
) -> Int32 {
  report(playback, owing: destroy, user) { () throws(UsherError) in
    let object = try owned(playback, user, destroy, as: PlaybackObject.self)
    let reference = hostReference(object.engine, lane: object.id, user, destroy)
    guard let fn else { throw refused("fn", isMissing) }
    let start = try check(RequestCaller(playback: object, isBlocking: false))
    try begin(start, playback, object.tag, fn, user, reference)
  }
}

/// Starts the request. The compiler makes a copy of `startRequest` for each of its callers. This part is a function of
/// its own, so that the library has it only once.
@inline(never)
private func begin(
  _ start: RequestStart, _ playback: OpaquePointer?, _ tag: UInt64, _ fn: @escaping usher_license_fn,
  _ user: UnsafeMutableRawPointer?, _ reference: HostReference
) throws(UsherError) {
  try reference.accept()
  let isStarted = start(false) { answer in
    withResponse(answer) { fn(playback, $0, tag, user) }
    // Runs `destroy` directly after `fn`, so that it comes before PLAYBACK_CLOSED.
    reference.end()
  }
  if isStarted { return }
  reference.end()
  throw UsherError(.closed)
}

/// For the functions that wait: checks the request, starts it, waits, and gives the host a response.
@inline(never)
func waitForRequest(
  _ playback: OpaquePointer?, _ out: UnsafeMutablePointer<OpaquePointer?>?,
  check: (RequestCaller) throws(UsherError) -> RequestStart
) -> Int32 {
  out?.pointee = nil
  return report(playback) { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    let start = try check(RequestCaller(playback: object, isBlocking: true))
    try waitForAnswer(start, object, out)
  }
}

@inline(never)
private func waitForAnswer(
  _ start: RequestStart, _ object: PlaybackObject, _ out: UnsafeMutablePointer<OpaquePointer?>?
) throws(UsherError) {
  let wait = Wait<RequestResult>()
  guard start(true, { wait.end($0) }) else { throw UsherError(.closed) }
  try giveResponse(wait.wait(), object.context, out)
}

/// Gives the host a response, if the host wants one. Throws the error of the answer; this error is not a refusal of the
/// call.
@inline(never)
func giveResponse(
  _ answer: RequestResult, _ context: ContextObject, _ out: UnsafeMutablePointer<OpaquePointer?>?
) throws(UsherError) {
  if let out {
    out.pointee = OpaquePointer(bitPattern: try context.give(ResponseObject(context: context, answer: answer)))
  }
  guard answer.error.status == .ok else {
    var error = answer.error
    error.isAlreadyReported = true
    throw error
  }
}
