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
  /// The three Booleans below, one bit each. A smaller error needs less code, because each function that throws an
  /// error copies every field of the error.
  private var flags: UInt8 = 0

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
    flags = (mustStop ? 1 : 0) | (orphanPossible ? 2 : 0)
  }

  package var mustStop: Bool {
    get { flags & 1 != 0 }
    set { set(1, newValue) }
  }
  package var orphanPossible: Bool {
    get { flags & 2 != 0 }
    set { set(2, newValue) }
  }
  /// Whether an event of the playback has already reported this error: the request failed because its session failed.
  package var isAlreadyReported: Bool {
    get { flags & 4 != 0 }
    set { set(4, newValue) }
  }

  private mutating func set(_ bit: UInt8, _ isSet: Bool) { flags = isSet ? flags | bit : flags & ~bit }

  /// Makes an error from a status; all other fields get their default values. Most errors are made with this
  /// initialiser, because a call with one argument takes the least code.
  @inline(never)
  package init(_ status: Status) { self.init(status, origin: .local) }

  package func stopping() -> UsherError {
    var copy = self
    copy.mustStop = true
    return copy
  }
}
