package import UsherCore

/// Names one transfer of one context.
package typealias TransferID = UInt64

/// A NUL-terminated URL, checked when it was made, with the number of its origin in the process.
package final class Endpoint {
  package let url: [UInt8]
  /// `scheme://host:port`; what requests are bounded by.
  package let origin: [UInt8]
  /// Plain http, allowed because it does not leave this machine: no proxy may see it.
  package let isLoopback: Bool

  package init(url: [UInt8], origin: [UInt8], isLoopback: Bool) {
    self.url = url
    self.origin = origin
    self.isLoopback = isLoopback
  }
}

package struct HTTPRequest {
  package enum Method { case get, post }
  package let method: Method
  package let endpoint: Endpoint
  /// Whole lines "Name: value", NUL-terminated.
  package let headers: [Secret]
  package let body: Secret?
  /// Keep-alives and teardowns go before all else.
  package let isUrgent: Bool
  /// The tokens in it, kept from whatever the server says back.
  package let tokens: [Secret]
  /// A header of the reply that may carry the session token; NUL-terminated.
  package var replyHeader: [UInt8]?
}

package struct HTTPResponse {
  package var status: Int32
  package var body: Secret
  /// Seconds or nothing; dates are not used by the services in question.
  package var retryAfter: Milliseconds?
  /// The header that was asked for.
  package var header: Secret?
}

package enum HTTPOutcome {
  case response(HTTPResponse)
  case failure(WireFailure)
}

/// The seam below the engine: libcurl, or a model of the head-end. Used by the I/O thread only, but for `wake`.
package protocol Transport: AnyObject {
  /// - Parameter isFresh: not over a connection that was used before: those to this origin are not to be trusted.
  func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool)
  /// No outcome will be told, and its connection is not used again. Answers whether the server may have read the request.
  @discardableResult
  func cancel(_ id: TransferID) -> Bool
  /// Waits for I/O, for `wake()`, or for the instant (boot time in nanoseconds; nil: no timer).
  func wait(until instant: Int64?)
  /// Any thread: ends a wait.
  func wake()
  /// What has ended since the last call.
  func takeFinished() -> [FinishedTransfer]
  /// Ends all connections.
  func shutDown()
}

package struct FinishedTransfer {
  package let id: TransferID
  package let outcome: HTTPOutcome
  /// From the request's being sent to its answer; 0: not known.
  package var microseconds: Int64 = 0
}
