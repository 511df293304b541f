internal import CUsher
internal import UsherCore
internal import UsherEngine

/// A text that is part of the library, as one pointer. A call with it takes less code than a call with a StaticString.
struct StaticText: ExpressibleByStringLiteral {
  /// The first byte of the text. The compiler has put a NUL at the end of the text.
  fileprivate let start: UnsafePointer<UInt8>
  @inline(__always) init(stringLiteral text: StaticString) { start = text.utf8Start }

  @inline(never)
  fileprivate func add(to bytes: inout [UInt8]) {
    var next = start
    while next.pointee != 0 {
      bytes.append(next.pointee)
      next += 1
    }
  }
}

/// Makes the error with which a function refuses one of its arguments.
/// - Parameters:
///   - field: the name of the parameter or field in the header; or this name, a colon, and what is wrong.
///   - reason: a text with a colon at its beginning, which follows the name: what is wrong. Empty if `field` says it
///     already.
@inline(never)
func refused(_ field: StaticText, _ reason: StaticText = "", _ status: Status = .invalidArgument) -> UsherError {
  var text: [UInt8] = []
  field.add(to: &text)
  reason.add(to: &text)
  return UsherError(status, message: String(decoding: text, as: UTF8.self))
}

/// Returns the status of an error that an export throws. If the function refused the call, tells the host why; other
/// errors are not about the call.
@inline(never)
func status(of error: UsherError, refusing handle: OpaquePointer?) -> Int32 {
  switch error.status {
  case .invalidArgument, .state, .noDelegate, .wouldDeadlock:
    if !error.isAlreadyReported { handles.find(UInt(bitPattern: handle))?.teller?.tellRefusal(error) }
  default: break
  }
  return error.status.rawValue
}

/// Calls the host's `refusal`, if the host set one.
@inline(never)
func tell(_ refusal: usher_refusal_fn?, _ user: UnsafeMutableRawPointer?, _ status: Int32, _ text: String) {
  guard let refusal else { return }
  withCallbackMark { text.withCString { refusal(status, $0, user) } }
}

/// Converts a completion id to a handle: each completion id is a handle of the table `handles`.
func handle(of completion: usher_completion) -> OpaquePointer? { OpaquePointer(bitPattern: UInt(completion)) }
