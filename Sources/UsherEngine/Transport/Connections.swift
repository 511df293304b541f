internal import CCurl
internal import CPlatform

/// The sockets of libcurl: the events that epoll watches on them, and how many bytes their servers send.
final class Connections {
  private struct Watch {
    /// The events that libcurl asked for.
    var wanted: Int32 = 0
    /// The events that epoll watches. A kept connection stays registered between two requests, although libcurl does
    /// not ask for its events then: most connections are used again, so this saves two system calls for each request.
    var registered: Int32 = 0
    /// Whether the server has answered on this connection at least once. Only then does the socket stay registered
    /// between two requests. libcurl calls `close` for such a socket, so the table removes the socket from epoll before
    /// the system can use its number again.
    var isKept = false
    /// Whether epoll refused to watch the socket. If so, this table has dropped the connection, but libcurl does not
    /// know this yet.
    var isLost = false
    /// Whether the connection speaks HTTP/2: then the server may send frames between two requests.
    var isHTTP2 = false
    /// The origin of the server, if the connection is kept.
    var origin: [UInt8] = []
    /// When the first reply on the connection ended, on the monotonic clock.
    var keptSince: Int64 = 0
    /// The local port; 0 if the table has not read it since epoll began to watch the socket.
    var localPort: Int32 = 0
    /// How many turns (see `Sweep`) the socket has had since libcurl last began to wait for it.
    var turns: UInt32 = 0
    /// How many bytes the kernel had received on the socket when `isFlooding` began to count. Counting begins at turn
    /// `uncountedTurns`. Over HTTP/2 it begins again after each reply on any connection.
    var receivedBefore: UInt64 = 0
    /// The value of `replies` when `isFlooding` began to count.
    var repliesBefore: UInt64 = 0
    /// The number of the sweep in which the socket had its last turn.
    var sweep: UInt32 = 0
    /// A number for the server's address; 0 if the socket has had no turn since epoll began to watch it.
    var server: UInt64 = 0
  }
  /// How many turns a connection must have had before the table reads the connection's byte count. Most replies take
  /// one or two turns.
  private static var uncountedTurns: UInt32 { 8 }

  private let poller: Poller
  let watchdog: TurnWatchdog
  private let allowsHTTP2: Bool
  /// How many bytes a server may send on a connection for one reply.
  private let bytesMost: UInt64
  /// The watches, by socket number.
  private var watches: [Watch] = []
  /// The sockets that epoll refused to watch; see `Watch.isLost`.
  private var lost: [Int32] = []
  /// How many replies the connections have brought.
  private var replies: UInt64 = 0
  /// How many sockets libcurl has begun to use.
  private(set) var openedCount: UInt64 = 0
  /// The servers for which one call of libcurl (a turn, see `Sweep`) took the I/O thread a long time. Until
  /// `slowUntil`, their sockets get their turns after the sockets of all other servers.
  private var slow: [UInt64] = []
  private var slowUntil: Int64 = 0
  private static var slowTime: Int64 { 2000 }
  private static var slowMost: Int { 64 }

  init(poller: Poller, watchdog: TurnWatchdog, options: TransportOptions) {
    self.poller = poller
    self.watchdog = watchdog
    allowsHTTP2 = options.allowsHTTP2
    bytesMost = UInt64(clamping: 2 &* options.maxResponseBytes &+ 1 << 16)
  }

  /// All socket numbers in the table are below this number.
  var limit: Int { watches.count }

  /// How many connections libcurl has.
  var count: Int {
    var count = 0
    for watch in watches where watch.wanted != 0 || watch.isKept { count += 1 }
    return count
  }

  // MARK: Called by libcurl

  /// Lets libcurl call this table for the sockets of all requests.
  func attach(multi: UnsafeMutableRawPointer) {
    _ = curl_shim_multi_set_socket_callback(multi, onSocket)
    _ = curl_shim_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, Unmanaged.passUnretained(self).toOpaque())
  }

  /// Lets libcurl call this table when it opens or closes a socket for this handle. Returns false if libcurl refuses.
  func attach(easy: UnsafeMutableRawPointer) -> Bool {
    let me = Unmanaged.passUnretained(self).toOpaque()
    return curl_shim_set_socket_made_callback(easy, onSocketMade, me) == CURLE_OK
      && curl_shim_set_close_callback(easy, onClose, me) == CURLE_OK
  }

  /// Returns whether libcurl must still connect the socket, as a constant CURL_SOCKOPT_….
  fileprivate func opened(_ socket: Int32) -> Int32 {
    openedCount &+= 1
    watchdog.opened(socket)
    return curl_shim_is_connected(socket) != 0 ? CURL_SOCKOPT_ALREADY_CONNECTED : CURL_SOCKOPT_OK
  }

  fileprivate func watch(_ socket: Int32, _ what: Int32) {
    let interest: Int32
    switch what {
    case CURL_POLL_IN: interest = PLATFORM_READABLE
    case CURL_POLL_OUT: interest = PLATFORM_WRITABLE
    case CURL_POLL_INOUT: interest = PLATFORM_READABLE | PLATFORM_WRITABLE
    default: interest = 0
    }
    guard socket >= 0 else { return }
    let index = Int(socket)
    while watches.count <= index { watches.append(Watch()) }
    if watches[index].registered == 0, interest != 0 {
      // This may be a new socket to which the system has given the number of a closed one. So forget the local port.
      watches[index].localPort = 0
      watches[index].server = 0
      // libcurl makes some descriptors without close-on-exec: those of its name look-ups.
      curl_shim_close_on_exec(socket)
    }
    watches[index].wanted = interest
    if interest == 0 {
      watches[index].turns = 0
      watches[index].isLost = false
    }
    if interest == 0, watches[index].isKept, watches[index].registered == PLATFORM_READABLE { return }
    register(socket, interest)
  }

  /// Removes the socket from epoll, then closes it. If this function only closed the socket, epoll would still report
  /// it while a forked child has the socket open.
  fileprivate func close(_ socket: Int32) {
    register(socket, 0)
    watchdog.closed(socket)
    if Int(socket) < watches.count { watches[Int(socket)] = Watch() }
    platform_fd_close(socket)
  }

  private func register(_ socket: Int32, _ interest: Int32) {
    let index = Int(socket)
    guard index < watches.count, watches[index].registered != interest else { return }
    let isWatched = poller.watch(socket, was: watches[index].registered, interest)
    watches[index].registered = interest
    guard !isWatched, interest != 0 else { return }
    // Without epoll, the library would not notice a reply on this connection, so end the connection. If no request is
    // in flight on it, libcurl notices the end before it would use the connection again.
    platform_socket_drop(socket)
    guard watches[index].wanted != 0, !watches[index].isLost else { return }
    watches[index].isLost = true
    lost.append(socket)
  }

  // MARK: Called by the transport

  /// Called when a reply has ended.
  /// - Parameter transfer: the transfer of the request if the reply is complete, otherwise nil. After a complete reply,
  ///   libcurl keeps the connection that it made for the request.
  /// - Returns: whether libcurl made a connection for the request. True also if libcurl has closed this connection
  ///   because the server asked for that.
  func replyEnded(_ transfer: CurlTransfer?) -> Bool {
    replies &+= 1
    guard let transfer else { return false }
    let socket = curl_shim_socket_made(transfer.easy)
    guard socket >= 0, Int(socket) < watches.count else { return socket != CURL_SHIM_NONE_MADE }
    watches[Int(socket)].isKept = true
    watches[Int(socket)].isHTTP2 = allowsHTTP2 && curl_shim_was_http2(transfer.easy) != 0
    watches[Int(socket)].origin = transfer.endpoint?.origin ?? []
    watches[Int(socket)].keptSince = platform_monotonic_ms()
    // From now on epoll watches the connection also while no request is in flight; see `dropUnasked`.
    if watches[Int(socket)].wanted == 0 { register(socket, PLATFORM_READABLE) }
    return true
  }

  /// What a socket is ready for.
  enum Event {
    /// libcurl waits for this event.
    case wanted
    /// libcurl waits for this event, but the server has sent far more bytes than a reply may have.
    case flood
    /// The transport need not do anything.
    case unasked
  }

  /// Called when epoll reports that a socket is ready. Returns what the transport must do with it.
  func ready(_ socket: Int32, isSlow: Bool, _ sweep: inout Sweep) -> Event {
    let index = Int(socket)
    guard index < watches.count, watches[index].wanted != 0 else {
      dropUnasked(socket)
      return .unasked
    }
    guard sweep.givesTurn(last: watches[index].sweep, isSlow: isSlow) else { return .unasked }
    watches[index].sweep = sweep.number
    if watches[index].server == 0 { watches[index].server = platform_socket_peer(socket) }
    watches[index].turns &+= 1
    return watches[index].turns >= Self.uncountedTurns && isFlooding(socket) ? .flood : .wanted
  }

  // MARK: Slow servers

  var hasSlow: Bool { !slow.isEmpty }

  /// A number for the server of a socket; 0 if the socket has had no turn.
  func server(_ socket: Int32) -> UInt64 { Int(socket) < watches.count ? watches[Int(socket)].server : 0 }

  func isSlow(_ socket: Int32) -> Bool {
    let server = server(socket)
    return server != 0 && slow.contains(server)
  }

  /// Called when one call of libcurl for this server took the I/O thread a long time.
  func noteSlow(_ server: UInt64) {
    if !slow.contains(server), slow.count < Self.slowMost { slow.append(server) }
    slowUntil = platform_monotonic_ms() &+ Self.slowTime
  }

  func forgetSlow(_ now: Int64) { if hasSlow, now >= slowUntil { slow = [] } }

  /// Called when a server has sent something or has closed the connection, while no request was in flight on it. Over
  /// HTTP/1.1 libcurl would read the bytes as the reply to the next request, so this function closes the connection.
  private func dropUnasked(_ socket: Int32) {
    // If libcurl has read the reply after epoll reported the socket, nothing is left to read: keep the connection.
    guard platform_socket_is_readable(socket) != 0 else { return }
    register(socket, 0)
    let index = Int(socket)
    if index < watches.count, watches[index].isKept, !watches[index].isHTTP2 { platform_socket_drop(socket) }
  }

  /// Returns whether the server has sent far more than a reply may have. libcurl reads and drops some parts of a reply,
  /// for example the extensions of chunks. Only the kernel counts those bytes.
  private func isFlooding(_ socket: Int32) -> Bool {
    let index = Int(socket)
    let received = platform_socket_received(socket)
    let isNew = watches[index].isHTTP2 && watches[index].repliesBefore != replies
    if watches[index].turns == Self.uncountedTurns || isNew {
      watches[index].receivedBefore = received
      watches[index].repliesBefore = replies
    }
    return received &- watches[index].receivedBefore > bytesMost
  }

  /// Takes a socket out of `lost`, and returns it; nil if there is none. libcurl waits for a reply on this socket, but
  /// epoll does not watch it, so the library would not notice the reply.
  func takeLost() -> Int32? {
    while let socket = lost.popLast() {
      let index = Int(socket)
      guard index < watches.count, watches[index].isLost else { continue }
      watches[index].isLost = false
      return socket
    }
    return nil
  }

  /// Returns the socket of a request in flight, by its local port. libcurl reports the port of a request, but not the
  /// socket.
  func find(localPort: Int32) -> Int32? {
    guard localPort > 0 else { return nil }
    for index in watches.indices where watches[index].wanted != 0 {
      let socket = Int32(truncatingIfNeeded: index)
      if watches[index].localPort == 0 { watches[index].localPort = platform_socket_local_port(socket) }
      if watches[index].localPort == localPort { return socket }
    }
    return nil
  }

  /// A time in milliseconds. If a connection is still open this long after its first reply, the server does not close
  /// each connection after one reply.
  private static var lastingTime: Int64 { 20 }

  /// Whether a connection to the origin has stayed open for some time after its first reply.
  func hasLasting(to origin: [UInt8]) -> Bool {
    let latest = platform_monotonic_ms() &- Self.lastingTime
    return watches.contains { $0.isKept && $0.registered != 0 && $0.keptSince <= latest && $0.origin == origin }
  }

  /// Drops the connections whose local address this machine no longer has: the requests on these connections fail at
  /// once, since no reply can arrive.
  func dropAddressless() {
    for (index, watch) in watches.enumerated() where watch.wanted != 0 {
      let socket = Int32(truncatingIfNeeded: index)
      if platform_socket_lacks_address(socket) != 0 { platform_socket_drop(socket) }
    }
  }

  /// Ends reading on all idle connections. libcurl has no function that closes idle connections, but it drops a
  /// connection on which reading has ended.
  func endIdle() {
    for (socket, watch) in watches.enumerated() where watch.isKept && watch.wanted == 0 {
      platform_socket_end_reads(Int32(truncatingIfNeeded: socket))
    }
  }
}

private func onSocket(
  _ easy: UnsafeMutableRawPointer?, _ socket: Int32, _ what: Int32, _ data: UnsafeMutableRawPointer?,
  _ own: UnsafeMutableRawPointer?
) -> Int32 {
  if let data { Unmanaged<Connections>.fromOpaque(data).takeUnretainedValue().watch(socket, what) }
  return 0
}

private func onSocketMade(_ data: UnsafeMutableRawPointer?, _ socket: Int32, _: curlsocktype) -> Int32 {
  guard let data else { return CURL_SOCKOPT_OK }
  return Unmanaged<Connections>.fromOpaque(data).takeUnretainedValue().opened(socket)
}

private func onClose(_ data: UnsafeMutableRawPointer?, _ socket: Int32) -> Int32 {
  if let data { Unmanaged<Connections>.fromOpaque(data).takeUnretainedValue().close(socket) }
  return 0
}
