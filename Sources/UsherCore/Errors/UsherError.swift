/// The full description of an error. Its message never contains a token: the code that makes the error removes tokens
/// first.
package struct UsherError: Error, Equatable, Sendable {
  package var status: Status
  package var origin: Origin
  package var operation: Operation
  /// The status of the HTTP reply; -1 if the request got no HTTP reply.
  package var httpStatus: Int32
  /// The server's `errorCode`; 0 if the reply had no code.
  package var serviceCode: Int64
  package var message: String
  /// The values of the computed properties below, in one number: bits 0 to 2 are `mustStop`, `orphanPossible` and
  /// `isAlreadyReported`; `tlsFault` begins at bit 8 and `retryAfter` at bit 32. With one field instead of five the
  /// library has less code, because each function that throws an error copies every field of the error.
  private var details: UInt64 = 0

  @inline(never)
  package init(
    _ status: Status, origin: Origin = .local, operation: Operation = .none, httpStatus: Int32 = -1,
    serviceCode: Int64 = 0,
    message: String = "", mustStop: Bool = false, orphanPossible: Bool = false
  ) {
    self.status = status
    self.origin = origin
    self.operation = operation
    self.httpStatus = httpStatus
    self.serviceCode = serviceCode
    self.message = message.isEmpty ? status.message : message
    details = (mustStop ? 1 : 0) | (orphanPossible ? 2 : 0)
  }

  package var mustStop: Bool {
    get { details & 1 != 0 }
    set { set(1, newValue) }
  }
  package var orphanPossible: Bool {
    get { details & 2 != 0 }
    set { set(2, newValue) }
  }
  /// Whether an event of the playback has already reported this error: the request failed because its session failed.
  package var isAlreadyReported: Bool {
    get { details & 4 != 0 }
    set { set(4, newValue) }
  }

  /// How long the server asks the client to wait before a retry, in milliseconds; 0: the server did not say.
  package var retryAfter: UInt32 { UInt32(truncatingIfNeeded: details >> 32) }
  /// Why there was no secure connection; `none` if this is not the cause of the error.
  package var tlsFault: TLSFault { TLSFault(rawValue: UInt8(truncatingIfNeeded: details >> 8)) ?? .none }

  package func adding(_ fault: TLSFault, retryAfter: Milliseconds) -> UsherError {
    var copy = self
    copy.details |= UInt64(fault.rawValue) << 8 | UInt64(UInt32(clamping: retryAfter)) << 32
    return copy
  }

  private mutating func set(_ bit: UInt64, _ isSet: Bool) { details = isSet ? details | bit : details & ~bit }

  /// Makes an error from a status; all other fields get their default values. Most callers use this initialiser,
  /// because a call with one argument takes the least code.
  @inline(never)
  package init(_ status: Status) { self.init(status, origin: .local) }

  package func stopping() -> UsherError {
    var copy = self
    copy.mustStop = true
    return copy
  }
}
