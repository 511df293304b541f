package import UsherCore

/// Names one transfer of one context.
package typealias TransferID = UInt64

/// A NUL-terminated URL, checked when it was made, and its origin.
package final class Endpoint {
  package let url: [UInt8]
  /// `scheme://host:port`. Requests in flight are limited for each origin.
  package let origin: [UInt8]
  /// The host is this machine, so plain http is allowed; the request must not go through a proxy.
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
  /// Keep-alives and teardowns leave the queue before all other requests.
  package let isUrgent: Bool
  /// The tokens in the request; they are removed from every text of the reply before anybody sees it.
  package let tokens: [Secret]
  /// A header of the reply that may carry the session token; NUL-terminated.
  package var replyHeader: [UInt8]?
}

package struct HTTPResponse {
  package var status: Int32
  package var body: Secret
  /// What `Retry-After` asked for in seconds. Dates are ignored: the services in question do not send them.
  package var retryAfter: Milliseconds?
  /// The value of the header that `HTTPRequest.replyHeader` names.
  package var header: Secret?
}

package enum HTTPOutcome {
  case response(HTTPResponse)
  case failure(WireFailure)
}

/// What sends requests for the engine: libcurl, or in tests a model of the head-end. I/O thread only, except `wake`.
package protocol Transport: AnyObject {
  /// - Parameter isFresh: use a new connection, because earlier ones to this origin failed.
  func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool)
  /// Ends a request without an outcome; its connection is not used again.
  /// - Returns: whether the server may have read the request.
  @discardableResult
  func cancel(_ id: TransferID) -> Bool
  /// Returns after I/O, after `wake()`, or at the instant (boot time in nanoseconds; nil: no timer).
  func wait(until instant: Int64?)
  /// Any thread: ends a wait.
  func wake()
  /// The requests that have ended since the last call.
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
