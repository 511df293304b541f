internal import CUsher
internal import UsherCore
internal import UsherEngine

// Each request has two functions in C: one returns at once and calls a completion later, the other waits for the
// answer.

/// Starts a checked request; `complete` receives its answer.
typealias RequestStart = (_ isBlocking: Bool, _ complete: @escaping (Answer) -> Void) -> Void

/// The playback that makes a request, and whether the calling function waits.
struct RequestCaller {
  let playback: PlaybackObject
  fileprivate let isBlocking: Bool

  /// Throws if the calling function waits for work that only the calling thread can do.
  func refuseToWait() throws(UsherError) {
    if isBlocking { try Usher.refuseToWait(playback.engine) }
  }

  func refuseIfClosed() throws(UsherError) {
    if playback.shared.isEnded { throw UsherError(.closed) }
  }
}

/// For the functions that call a completion later: checks the request, starts it and returns.
@inline(never)
func startRequest(
  _ playback: OpaquePointer?, _ fn: usher_license_fn?, _ user: UnsafeMutableRawPointer?, _ destroy: usher_destroy_fn?,
  check: (RequestCaller) throws(UsherError) -> RequestStart
) -> Int32 {
  report(owing: destroy, user) { () throws(UsherError) in
    let object = try owned(playback, user, destroy, as: PlaybackObject.self)
    let reference = hostReference(object.engine, lane: object.id, user, destroy)
    guard let fn else { throw UsherError(.invalidArgument) }
    let start = try check(RequestCaller(playback: object, isBlocking: false))
    reference.accept()
    let tag = object.tag
    start(false) { answer in
      _ = reference  // The completion keeps `user_data` alive.
      withResponse(answer) { fn(playback, $0, tag, user) }
    }
  }
}

/// For the functions that wait: checks the request, starts it, waits, and gives the host a response.
@inline(never)
func waitForRequest(
  _ playback: OpaquePointer?, _ out: UnsafeMutablePointer<OpaquePointer?>?,
  check: (RequestCaller) throws(UsherError) -> RequestStart
) -> Int32 {
  out?.pointee = nil
  return report { () throws(UsherError) in
    let object = try borrow(playback, as: PlaybackObject.self)
    let start = try check(RequestCaller(playback: object, isBlocking: true))
    let wait = Wait<Answer>()
    start(true) { wait.end($0) }
    let answer = wait.wait()
    if let out {
      out.pointee = OpaquePointer(
        bitPattern: try object.context.give(ResponseObject(context: object.context, answer: answer)))
    }
    if answer.error.status != .ok { throw answer.error }
  }
}
