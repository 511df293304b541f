internal import CCurl
package import UsherCore

/// Names one transfer of one context.
package typealias TransferID = UInt64

/// A NUL-terminated URL, checked when it was made, and its origin.
package final class Endpoint {
  package let url: [UInt8]
  /// Identifies scheme, host and port in fewer bytes than the URL. The library limits the requests in flight to each
  /// origin.
  package let origin: [UInt8]
  /// Whether the URL is an http URL of this machine. Its requests do not go through a proxy that the environment names.
  package let isLoopback: Bool
  /// The name to look up before a connection; nil if there is none, or if libcurl looks it up.
  package let name: HostAndPort?
  /// The URL as libcurl has parsed it; nil: libcurl parses it for each request.
  let parsed: OpaquePointer?

  /// Whether requests to this endpoint use TLS.
  var isHTTPS: Bool { origin.first == 0x73 }

  /// - Parameter parsed: the endpoint frees it.
  init(url: [UInt8], origin: [UInt8], isLoopback: Bool, name: HostAndPort?, parsed: OpaquePointer?) {
    self.url = url
    self.origin = origin
    self.isLoopback = isLoopback
    self.name = name
    self.parsed = parsed
  }

  package convenience init(url: [UInt8], origin: [UInt8], isLoopback: Bool, name: HostAndPort? = nil) {
    self.init(url: url, origin: origin, isLoopback: isLoopback, name: name, parsed: nil)
  }

  deinit { curl_url_cleanup(parsed) }
}

/// One HTTP request. This type is a class, so that the dispatcher and the transport share one object. No code changes
/// the request after it was sent.
package final class HTTPRequest {
  package enum Method { case get, head, post }
  package let method: Method
  package let endpoint: Endpoint
  /// The header lines: complete lines "Name: value", each NUL-terminated.
  package let headers: [Secret]
  package let body: Secret?
  /// Whether the request leaves the queue before others: true for keep-alives and teardowns.
  package let isUrgent: Bool
  /// The tokens in the request. While the playback exists, no message contains these tokens.
  package let tokens: [Secret]
  /// The name of the reply header that may carry the session token; NUL-terminated.
  package let replyHeader: [UInt8]?
  /// Whether the request may open a session. If its reply is lost, the server may hold a session of which the library
  /// has no token. So the request uses kept connections only if its origin is known to keep connections.
  package var opensSession: Bool
  /// Whether the request repeats a keep-alive that failed. Such a request uses a kept connection only if the server has
  /// answered on that connection within the last two seconds.
  package var isRetry = false
  /// A number of seconds. The request uses a kept connection only if the connection was idle for at most this time. The
  /// dispatcher changes this limit if the server has said how long it keeps connections.
  package var idleSecondsMost: Int
  /// The header line `traceparent`, NUL-terminated; nil: the request has none. This line is no secret.
  package var traceParent: TraceParent?

  package init(
    method: Method, endpoint: Endpoint, headers: [Secret], body: Secret?, isUrgent: Bool, tokens: [Secret],
    replyHeader: [UInt8]? = nil, opensSession: Bool = false
  ) {
    self.method = method
    self.endpoint = endpoint
    self.headers = headers
    self.body = body
    self.isUrgent = isUrgent
    self.tokens = tokens
    self.replyHeader = replyHeader
    self.opensSession = opensSession
    idleSecondsMost = isUrgent ? Self.longestIdleSeconds : Self.usualIdleSeconds
  }

  /// The first values of `idleSecondsMost`. If a connection was idle for a long time, the server may be about to close
  /// it, or the network may no longer forward its packets. Urgent requests may use such a connection, because the
  /// session repeats an urgent request that fails. All other requests use only connections that were used a short time
  /// ago. If the server has said how long it keeps connections, this time sets the limit for all requests, at most
  /// `longestIdleSeconds`. libcurl counts whole seconds.
  package static var longestIdleSeconds: Int { 118 }
  package static var usualIdleSeconds: Int { 15 }
}

extension HTTPRequest {
  /// Adds the tokens, header values, URL and body of this request to the secrets, because the server may repeat them in
  /// its reply.
  func addSecrets(to hidden: HiddenSecrets) {
    for token in tokens { hidden.add(token) }
    for line in headers { hidden.addHeader(line) }
    endpoint.url.withUnsafeBufferPointer { hidden.addURL(UnsafeBufferPointer(rebasing: $0.dropLast())) }
    if let body { hidden.addBody(body) }
  }
}

/// A reply. This type is a class because the engine passes a reply on several times: each call then copies one
/// reference and not three.
package final class HTTPResponse {
  package let status: Int32
  package let body: Secret
  /// The pause that `Retry-After` asks for, as seconds or as a date.
  package let retryAfter: Milliseconds?
  /// The value of the header that `HTTPRequest.replyHeader` names.
  package let header: Secret?
  /// The `Location` of a redirect.
  package let location: Secret?
  /// What the `Content-Type` header says about the body. The library reads this header only if the body does not begin
  /// like a JSON object.
  package let media: MediaType
  /// Whether the reply has no body, and its headers do not say how long the body is. The connection may then have ended
  /// too early.
  package let mayBeCut: Bool

  package init(
    status: Int32, body: Secret, retryAfter: Milliseconds? = nil, header: Secret? = nil, location: Secret? = nil,
    media: MediaType = .other, mayBeCut: Bool = false
  ) {
    self.status = status
    self.body = body
    self.retryAfter = retryAfter
    self.header = header
    self.location = location
    self.media = media
    self.mayBeCut = mayBeCut
  }
}

package enum HTTPOutcome {
  case response(HTTPResponse)
  case failure(WireFailure)

  /// Whether the server may have read the request.
  var mayHaveReachedServer: Bool {
    if case .failure(let failure) = self { return failure.mayHaveTakenEffect }
    return true
  }
}

/// Sends requests for the engine: libcurl, or in tests a model of the head-end. Only the I/O thread calls these
/// methods; any thread may call `wake`.
package protocol Transport: AnyObject {
  /// Begins to send a request.
  /// - Parameter isFresh: whether to use a new connection, because earlier connections to this origin failed.
  func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool)
  /// Ends a request without reporting an outcome. Does not use its connection again. If the server has received only a
  /// part of the request, the transport does not send the rest: if it did, the complete request could reach the server
  /// after the engine's retry, and the server would replace the token that it issued for the retry.
  /// - Returns: whether the server may have read the request.
  @discardableResult
  func cancel(_ id: TransferID) -> Bool
  /// Limits the number of connections to `count`: a kept connection closes if a new one would exceed the limit.
  func limitConnections(_ count: Int)
  /// Whether the server's system has acknowledged the whole request, so that only the reply is missing.
  func isReceived(_ id: TransferID) -> Bool
  /// Whether a request waits for a connection.
  func isConnecting(_ id: TransferID) -> Bool
  /// Opens another connection for a request that waits for one. The request uses the first one that is established.
  /// - Parameter isNetworkBack: whether the server has just replied. If so, the request gets a new connection even if
  ///   the limit of connections is reached: the new connection then replaces the request's old one.
  func connectAgain(_ id: TransferID, isNetworkBack: Bool)
  /// Waits until a reply can be read, another thread calls `wake()`, or the instant has passed (boot time in
  /// nanoseconds; nil: no timer). Then reads the replies that have arrived.
  /// - Returns: true if the instant had passed before this function read the replies. The function has then read all
  ///   replies that had arrived by this instant.
  func wait(until instant: Int64?) -> Bool
  /// Reads the replies that have arrived, without waiting.
  /// - Returns: false if the reading took so long that keep-alives may be due: the caller sends them and calls this
  ///   function again. True: this function has read all replies that had arrived when the first of these calls began.
  func read() -> Bool
  /// Any thread: makes the I/O thread return from `wait`.
  func wake()
  /// Whether a connection to the origin has stayed open for some time after its first reply.
  func hasLastingConnection(to origin: [UInt8]) -> Bool
  /// Returns the requests that have ended since the last call. The I/O thread needs some time for a long reply.
  /// Therefore this function returns long replies one at a time, after all other replies.
  func takeFinished() -> [FinishedTransfer]
  /// How many long replies `takeFinished` has not returned yet.
  var longCount: Int { get }
  /// How many connections the transport has begun to open.
  var connectionsOpened: UInt64 { get }
  /// Called when the network changed: from now on the transport uses neither the connections that are idle now nor the
  /// addresses of servers that it knows. If this machine no longer has the local address of a connection, the request
  /// on this connection fails.
  func networkChanged()
  /// From now on the transport does not use the connections that are idle now.
  func dropIdleConnections()
  /// The addresses of an endpoint's host that the transport knows, as CURLOPT_RESOLVE reads them, NUL-terminated.
  func addresses(of endpoint: Endpoint) -> [UInt8]?
  /// The cookies that the transport sends to an endpoint's origin, as CURLINFO_COOKIELIST writes them, each
  /// NUL-terminated.
  func cookies(of endpoint: Endpoint) -> [Secret]
  /// Calls `onEnd` once, in `wait` or `read`, after the other end of this socket's pair was closed. `onEnd` may close
  /// the descriptor `socket`.
  func watch(_ socket: Int32, onEnd: @escaping () -> Void)
  /// Ends all connections.
  func shutDown()
}

extension Transport {
  package var connectionsOpened: UInt64 { 0 }
  package func limitConnections(_ count: Int) {}
  package func hasLastingConnection(to origin: [UInt8]) -> Bool { false }
  package func isConnecting(_ id: TransferID) -> Bool { false }
  package func dropIdleConnections() {}
  package func connectAgain(_ id: TransferID, isNetworkBack: Bool) {}
  package var longCount: Int { 0 }
  package func watch(_ socket: Int32, onEnd: @escaping () -> Void) {}
  package func addresses(of endpoint: Endpoint) -> [UInt8]? { nil }
  package func cookies(of endpoint: Endpoint) -> [Secret] { [] }
}

package struct FinishedTransfer {
  package let id: TransferID
  package let outcome: HTTPOutcome
  /// The time from sending the request to its reply, in µs; 0 if it is not known.
  package var microseconds: Int64 = 0
  /// Whether an earlier request had received a reply over the same connection.
  package var wasOnKeptConnection = false
  /// Whether the engine may need some time to handle the reply.
  package var isLong = false
  /// How many seconds the server keeps an idle connection, as the reply says; nil: the reply does not say it.
  package var idleSeconds: Int?
}
