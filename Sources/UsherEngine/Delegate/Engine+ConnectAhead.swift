package import UsherCore

/// A server to which the library keeps connections ready, before a request needs them.
package final class ReadyOrigin {
  /// The root of the server: scheme, host and port.
  let endpoint: Endpoint
  /// How many connections to keep ready.
  fileprivate var count = 1
  /// How many requests for connections are in flight.
  fileprivate var asked = 0
  /// Until when the library keeps the connections ready.
  fileprivate var until: Milliseconds = 0
  /// When the last request for a connection was answered; nil: it failed, or no such request has ended yet.
  fileprivate var readyAt: Milliseconds?
  fileprivate var timer: UInt64?

  fileprivate init(_ endpoint: Endpoint) { self.endpoint = endpoint }
}

/// Connections that are open before the first request needs them.
///
/// libcurl cannot open a connection for later requests without sending a request. So the engine sends `HEAD /`, without
/// tokens, and ignores the reply. This has two advantages: the reply shows that the server keeps the connection open,
/// so a request that must not be repeated may use it; and further `HEAD` requests keep the connection from becoming
/// idle.
extension Engine {
  /// Any thread: opens connections to the servers of a delegate, and keeps them ready for `time`.
  package func connectAhead(_ delegate: LicenseDelegate, keepingFor time: Milliseconds) {
    submit { self.connectNow(delegate, keepingFor: time) }
  }

  /// Does the same as `connectAhead`; only the I/O thread may call this function.
  /// - Parameter mayShorten: if false, and an earlier call has asked for a time that ends later, the later end stays
  ///   valid.
  func connectNow(_ delegate: LicenseDelegate, keepingFor time: Milliseconds, mayShorten: Bool = true) {
    let servers = delegate.endpoints
    for case let endpoint? in [servers.teardown, servers.setup, servers.license] {
      let origin = readyOrigin(of: endpoint)
      // A zap that does not wait sends a teardown and another request at the same time.
      if endpoint === servers.teardown { origin.count = delegate.policy.zapsAtOnce ? 2 : 1 }
      origin.until = max(clock.now.adding(time), mayShorten ? 0 : origin.until)
      if origin.asked == 0 { tend(origin) }
    }
  }

  /// How many servers the engine remembers at most. If the engine forgets a server, the timer of that server still
  /// runs.
  private static var readyOriginsMost: Int { 64 }

  private func readyOrigin(of endpoint: Endpoint) -> ReadyOrigin {
    if let known = readyOrigins.first(where: { $0.endpoint.origin == endpoint.origin }) { return known }
    if readyOrigins.count >= Self.readyOriginsMost { readyOrigins.remove(at: 0) }
    let new = ReadyOrigin(endpoint.root)
    readyOrigins.append(new)
    return new
  }

  /// Opens the connections to a server. If kept connections to it have brought replies a short time ago, only sets the
  /// timer for the next call of this function.
  func tend(_ origin: ReadyOrigin) {
    timers.cancel(origin.timer)
    guard !closing.hasBegun else { return }
    // The replies to other requests show that one connection is ready, but not that several are.
    let ready = requests.readySince(origin.endpoint.origin).flatMap { origin.count == 1 ? $0 : origin.readyAt }
    if let due = ready?.adding(pause(origin)), clock.now < due { return schedule(origin, at: due) }
    origin.asked = origin.count
    for _ in 0..<origin.count {
      let head = HTTPRequest(
        method: .head, endpoint: origin.endpoint, headers: [], body: nil, isUrgent: false, tokens: [])
      requests.send(head, for: .connection(origin))
    }
  }

  /// Called when a request for a connection has ended. A failure changes nothing: the request that needs the connection
  /// opens one itself, and reports its error.
  func originAnswered(_ origin: ReadyOrigin, _ outcome: HTTPOutcome) {
    origin.asked -= 1
    if case .response = outcome { origin.readyAt = clock.now } else { origin.readyAt = nil }
    if origin.asked == 0 { schedule(origin, at: clock.now.adding(pause(origin))) }
  }

  private func schedule(_ origin: ReadyOrigin, at instant: Milliseconds) {
    if instant < origin.until, !closing.hasBegun { origin.timer = timers.set(at: instant, .connection(origin)) }
  }

  /// Called when the context begins to close.
  func endConnectingAhead() { for origin in readyOrigins { timers.cancel(origin.timer) } }

  /// The time after which the engine uses an idle connection again, so that it stays ready.
  private func pause(_ origin: ReadyOrigin) -> Milliseconds {
    max(requests.idleTime(origin.endpoint.origin) * 3 / 4, 2000)
  }
}

extension Endpoint {
  /// The endpoint with the same scheme, host and port, and with the path `/`.
  fileprivate var root: Endpoint {
    var slashes = 0
    var base: [UInt8] = []
    for byte in url {
      if byte == 0x2F { slashes += 1 }
      if slashes == 3 || byte == 0x3F || byte == 0x23 || byte == 0 { break }
      base.append(byte)
    }
    base.append(0x2F)
    base.append(0)
    return Endpoint(url: base, origin: origin, isLoopback: isLoopback, name: name)
  }
}
