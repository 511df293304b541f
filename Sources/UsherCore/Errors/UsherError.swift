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
  package var mustStop: Bool
  package var orphanPossible: Bool

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
    self.mustStop = mustStop
    self.orphanPossible = orphanPossible
  }

  /// The same, with the default values. Most errors are made by this call, because it takes the least code.
  @inline(never)
  package init(_ status: Status) { self.init(status, origin: .local) }

  package func stopping() -> UsherError {
    var copy = self
    copy.mustStop = true
    return copy
  }
}
