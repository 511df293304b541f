internal import CCurl
internal import CPlatform
package import UsherCore

/// The settings of libcurl that hold for all requests of a context.
package struct TransportOptions {
  package var connectTimeout: Milliseconds = 5000
  package var httpTimeout: Milliseconds = 10_000
  package var maxResponseBytes = 1 << 20
  package var tls: TLSOptions?
  /// Whether https requests may use HTTP/2.
  package var allowsHTTP2 = false
  /// Whether the context keeps the cookies of replies and sends them back to their origin.
  package var keepsCookies = false
  /// For tests: whether requests use HTTP/2 without asking the server, also in plain http.
  package var speaksHTTP2WithoutTLS = false
  /// The proxy's URL with a NUL at its end; this URL may have a password. nil: the proxy that the environment names.
  package var proxy: Secret?
  package var userAgent: [UInt8] = []
  package init() {}
}

/// HTTP over libcurl's multi interface, driven by epoll.
final class CurlTransport: Transport {
  private let options: TransportOptions
  private let multi: OpaquePointer?
  private let poller = Poller()
  private let watchdog = TurnWatchdog()
  private let connections: Connections
  private let pool: TransferPool
  private var contenders: Contenders
  private var connectionsMax: Int
  /// The transfers in flight, by the index in their id.
  private var running: [CurlTransfer?] = []
  private var finished: [FinishedTransfer] = []
  /// The long replies that `takeFinished` has not returned yet, in the order in which they ended.
  private var long: [FinishedTransfer] = []
  private var sweep = Sweep()
  /// Whether the last call of `read` has left ready sockets.
  private var isReading = false
  /// Whether requests were started since the transport last read the kept connections; see `wait`.
  private var mustCheckKept = false
  /// When epoll last reported no ready socket, on the monotonic clock; 0 if libcurl has worked on a socket, or on its
  /// timers, since then.
  private var quietAt: Int64 = 0
  /// After epoll has reported no ready socket, the transport does not read kept connections again for this many
  /// milliseconds.
  private static var quietTime: Int64 { 2 }
  /// When libcurl wants to be called, on the monotonic clock; nil if libcurl has not asked for a call.
  private var curlDue: Int64?
  private var names: NameTable
  /// Whether requests may go through a proxy. If so, libcurl looks up the name of the proxy, and the library need not
  /// look up the names of servers.
  private let mayUseProxy: Bool
  /// Whether this thread has entered `CurlUsers`. The thread leaves `CurlUsers` while it waits.
  private var isUser = false
  /// Whether `CurlUsers` has refused this thread. If so, all requests fail, and the transport does not call libcurl.
  private var isRefused = false

  /// Whether the transport has all its descriptors and all its objects of libcurl.
  private let isComplete: Bool

  /// - Parameters:
  ///   - keptMax: how many idle handles of libcurl the transport keeps at most.
  ///   - connectionsMax: how many connections libcurl may have, in use or idle.
  /// - Returns: nil if the system or libcurl refused one of the parts; then no descriptor stays open.
  static func make(options: TransportOptions, keptMax: Int, connectionsMax: Int) -> CurlTransport? {
    guard CurlUsers.enter() else { return nil }
    defer { CurlUsers.leave() }
    let transport = CurlTransport(options: options, keptMax: keptMax, connectionsMax: connectionsMax)
    if transport.isComplete { return transport }
    transport.shutDown()
    return nil
  }

  private init(options: TransportOptions, keptMax: Int, connectionsMax: Int) {
    self.options = options
    multi = curl_multi_init().map { OpaquePointer($0) }
    connections = Connections(poller: poller, watchdog: watchdog, options: options)
    let handlesMax = min(keptMax, connectionsMax)
    pool = TransferPool(options: options, connections: connections, keptMax: handlesMax)
    contenders = Contenders(poller: poller)
    self.connectionsMax = connectionsMax
    names = NameTable(wakeFD: poller.wakeFD)
    mayUseProxy = options.proxy.map { $0.count > 1 } ?? isProxyInEnvironment()
    isComplete = multi != nil && poller.start() && watchdog.start()
    guard let multi else { return }
    curl_shim_close_wake_up_on_exec(UnsafeMutableRawPointer(multi))
    let handle = UnsafeMutableRawPointer(multi)
    connections.attach(multi: handle)
    _ = curl_shim_multi_set_timer_callback(handle, onTimer)
    _ = curl_shim_multi_set_pointer(handle, CURLMOPT_TIMERDATA, Unmanaged.passUnretained(self).toOpaque())
    // If libcurl kept fewer connections, many requests to one server would make it close the kept connections of other
    // servers.
    _ = curl_shim_multi_set_long(handle, CURLMOPT_MAXCONNECTS, connectionsMax)
    limitConnections(connectionsMax)
  }

  func hasLastingConnection(to origin: [UInt8]) -> Bool { connections.hasLasting(to: origin) }

  func limitConnections(_ count: Int) {
    connectionsMax = count
    _ = curl_shim_multi_set_long(multiHandle, CURLMOPT_MAX_TOTAL_CONNECTIONS, count)
  }

  private var multiHandle: UnsafeMutableRawPointer? { multi.map { UnsafeMutableRawPointer($0) } }

  /// Returns whether this thread may use libcurl until its next wait. If it may not, all requests in flight fail.
  private func mayUseCurl() -> Bool { isUser || becomesUser() }

  @inline(never)
  private func becomesUser() -> Bool {
    if isRefused { return false }
    isUser = CurlUsers.enter()
    if !isUser { giveUp() }
    return isUser
  }

  private func giveUp() {
    isRefused = true
    for case let transfer? in running {
      fail(transfer.id, .closed)
      watchdog.requestEnded()
    }
    running.removeAll()
    contenders.removeAll()
    // To free its objects, libcurl would call OpenSSL, which may have ended. So the library never frees libcurl's
    // objects and this object.
    _ = Unmanaged.passRetained(self)
  }

  func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool) {
    guard mayUseCurl() else { return fail(id, .closed) }
    guard let name = request.endpoint.name, !mayUseProxy else { return start(id, request, isFresh, addresses: nil) }
    let now = platform_monotonic_ms()
    switch names.find(name, now: now) {
    case .ready(let addresses): start(id, request, isFresh, addresses: addresses)
    case .unknown:
      let deadline = now &+ Int64(clamping: options.connectTimeout)
      names.wait(name, NameTable.Waiting(id: id, request: request, isFresh: isFresh, deadline: deadline))
    case .noThread: fail(id)
    }
  }

  /// Begins to send a request.
  /// - Parameter socket: a connected socket for the request; negative: libcurl opens a socket itself.
  private func start(
    _ id: TransferID, _ request: HTTPRequest, _ isFresh: Bool, addresses: [UInt8]?, over socket: Int32 = -1
  ) {
    guard let transfer = pool.take(request.endpoint) else {
      platform_fd_close(socket)
      return fail(id)
    }
    transfer.use(socket)
    guard
      transfer.prepare(
        id, request, isFresh: isFresh, avoidsProxy: request.endpoint.isLoopback && options.proxy == nil,
        addresses: addresses, version: names.version),
      curl_multi_add_handle(multiHandle, transfer.easy) == CURLM_OK
    else {
      pool.discard(transfer)
      return fail(id)
    }
    transfer.setMoreTimeToConnect(0, besides: options.connectTimeout)
    let place = Slots<Transfer>.place(id)
    while running.count <= place { running.append(nil) }
    running[place] = transfer
    watchdog.requestStarted()
    mustCheckKept = true
    KillPoint.pass("request")
  }

  private func transfer(_ id: TransferID) -> CurlTransfer? {
    let place = Slots<Transfer>.place(id)
    guard place < running.count, let transfer = running[place], transfer.id == id else { return nil }
    return transfer
  }

  private func takeRunning(_ id: TransferID) -> CurlTransfer? {
    guard let transfer = transfer(id) else { return nil }
    contenders.remove(id)
    running[Slots<Transfer>.place(id)] = nil
    return transfer
  }

  private func fail(_ id: TransferID, _ status: Status = .system) {
    finished.append(FinishedTransfer(id: id, outcome: .failure(WireFailure(status))))
  }

  func cancel(_ id: TransferID) -> Bool {
    guard let transfer = takeRunning(id) else {
      names.withdraw(id)
      // The request has no transfer. Either it waits for the address of its server, so it was not sent; or it has
      // ended, and is in one of these two lists.
      return mayHaveReachedServer(id, finished) || mayHaveReachedServer(id, long)
    }
    // Close the connection. Otherwise libcurl would only reset the HTTP/2 stream and send the next request over the
    // same connection, which may be dead.
    _ = curl_shim_set_long(transfer.easy, CURLOPT_FORBID_REUSE, 1)
    let mayHaveReachedServer = transfer.mayHaveReachedServer
    if let socket = connections.find(localPort: transfer.localPort) { platform_socket_abort_at_close(socket) }
    remove(transfer.easy)
    pool.discard(transfer)
    return mayHaveReachedServer
  }

  private func mayHaveReachedServer(_ id: TransferID, _ ended: [FinishedTransfer]) -> Bool {
    ended.contains { $0.id == id && $0.outcome.mayHaveReachedServer }
  }

  func isConnecting(_ id: TransferID) -> Bool {
    // A request without a transfer has no connection: it waits for the address of its server, or it has just failed.
    guard let transfer = transfer(id), !transfer.isConnecting else { return true }
    contenders.remove(id)
    return false
  }

  func connectAgain(_ id: TransferID, isNetworkBack: Bool) {
    guard let address = transfer(id)?.takeAddress() else { return }
    let hasRoom = contenders.hasRoom && connections.count &+ contenders.count < connectionsMax
    // One more socket would replace the oldest one, which may be about to connect. So start the request again instead.
    if isNetworkBack, !hasRoom { return restart(id, over: -1) }
    contenders.add(id, to: address, hasRoom: hasRoom)
  }

  /// Starts a request again over an additional socket of the request. If the server has refused the socket, this
  /// function only closes it: libcurl's socket or another additional socket may still connect, also to another address.
  /// - Parameter socket: the additional socket; negative: there is none, and libcurl makes a new connection.
  private func restart(_ id: TransferID, over socket: Int32) {
    guard socket < 0 || curl_shim_is_connected(socket) != 0, let before = transfer(id), before.isConnecting,
      let request = before.request
    else { return platform_fd_close(socket) }
    _ = takeRunning(id)
    remove(before.easy)
    names.version &+= 1
    start(id, request, true, addresses: before.addresses, over: socket)
    pool.discard(before)
  }

  func isReceived(_ id: TransferID) -> Bool {
    guard let transfer = transfer(id), transfer.mayHaveReachedServer,
      let socket = connections.find(localPort: transfer.localPort)
    else { return false }
    return platform_socket_unacknowledged(socket) == 0
  }

  func addresses(of endpoint: Endpoint) -> [UInt8]? { endpoint.name.flatMap { names.known($0) } }

  func cookies(of endpoint: Endpoint) -> [Secret] { mayUseCurl() ? pool.cookies(of: endpoint) : [] }

  func watch(_ socket: Int32, onEnd: @escaping () -> Void) { poller.watch(socket, onEnd: onEnd) }

  func wake() { platform_eventfd_signal(poller.wakeFD) }

  func takeFinished() -> [FinishedTransfer] {
    guard !finished.isEmpty else { return takeLong() }
    defer { finished.removeAll(keepingCapacity: true) }
    return finished
  }

  private func takeLong() -> [FinishedTransfer] {
    // Removing the first element moves all others. This takes far less time than handling a long reply.
    long.isEmpty ? [] : [long.remove(at: 0)]
  }

  var longCount: Int { long.count }

  func wait(until instant: Int64?) -> Bool {
    poller.begin(timer: instant)
    guard mayUseCurl() else {
      waitWithoutCurl()
      return poller.hasFired
    }
    var now = platform_monotonic_ms()
    if now &- quietAt <= Self.quietTime { mustCheckKept = false }
    // When the transport calls libcurl below, libcurl may at once send a new request over a kept connection. So first
    // close the connections on which the server has sent bytes that no request asked for.
    let hasRead = mustCheckKept
    var isRead = true
    if hasRead {
      isRead = readSockets(until: 0, isExhaustive: false)
      now = platform_monotonic_ms()
    }
    // Run libcurl's timers first, so that libcurl sends requests that were just added, before this thread waits for
    // replies.
    allowForLateness(now)
    callWhereDue(now)
    failLost()
    if finished.isEmpty { collect() }
    let mayWait =
      isRead && finished.isEmpty
      && longCount == 0 && !poller.hasFired && !poller.wasWoken
    if mayWait { watchdog.rest(for: poller.timeLeft) }
    if mayWait || !hasRead { isRead = readSockets(until: mayWait ? nextCall : 0, isExhaustive: false) }
    failOverdueNames()
    return isRead && poller.hasFired
  }

  private func waitWithoutCurl() {
    let round = poller.wait(until: finished.isEmpty ? names.nextDeadline ?? -1 : 0)
    // The I/O thread no longer reads these sockets, so epoll need not report them.
    for socket in round.sockets { _ = poller.watch(socket.fd, was: PLATFORM_READABLE, 0) }
    failOverdueNames()
  }

  func read() -> Bool {
    guard mayUseCurl() else { return true }
    if !isReading { sweep.restart() }
    isReading = !readSockets(until: 0, isExhaustive: true)
    return !isReading
  }

  /// Waits for ready sockets and lets libcurl read them, in rounds, because one call of epoll reports only a part of
  /// many ready sockets. If the timer fires, reads all replies that had arrived before.
  /// - Parameters:
  ///   - instant: the monotonic instant until which the function waits; 0: it does not wait; negative: it waits without
  ///     a limit.
  ///   - isExhaustive: whether to read until no socket is ready. The number of rounds is bounded in any case, because a
  ///     server may send all the time.
  /// - Returns: false if the time for this call was over while sockets were still ready; the next call reads those.
  private func readSockets(until instant: Int64, isExhaustive: Bool) -> Bool {
    mustCheckKept = false
    var isBegun = false
    var (until, hasMore) = (instant, true)
    // In each round, every ready socket is read once. A long reply needs several rounds.
    var rounds = connections.limit / Int(PLATFORM_READY_MAX) + 8
    while hasMore, rounds > 0 {
      if until != 0 {
        CurlUsers.leave()
        isUser = false
      }
      let round = poller.wait(until: until)
      guard mayUseCurl() else { return true }
      allowForLateness(round.now)
      if !isBegun { beginPart(round.now) }
      isBegun = true
      if round.isWoken { takeAnsweredNames() }
      for socket in round.sockets { handle(socket, ofSlow: false) }
      if connections.hasSlow { for socket in round.sockets { handle(socket, ofSlow: true) } }
      failLost()
      collect()
      if round.sockets.isEmpty { quietAt = round.now }
      // If the time of this part is over, the transport makes another round only if epoll may have more ready sockets.
      // In such a round it calls libcurl only for the sockets of slow servers. For the other sockets it still finds
      // bytes that no request asked for; see `ready`.
      let mayHaveMore = round.isFull || (!sweep.isPartOver && (isExhaustive || poller.hasFired))
      hasMore = !round.sockets.isEmpty && mayHaveMore
      until = 0
      rounds -= 1
    }
    // Run libcurl's timers after the sockets. If a reply has arrived, its time-out must not fire first.
    callWhereDue(platform_monotonic_ms())
    collect()
    return sweep.endPart()
  }

  private func beginPart(_ now: Int64) {
    sweep.beginPart(now: now, looks: watchdog.lookCount)
    connections.forgetSlow(now)
  }

  /// Starts the requests whose name look-up has ended.
  private func takeAnsweredNames() {
    for waiting in names.takeAnswered(now: platform_monotonic_ms()) {
      guard let addresses = waiting.addresses else {
        fail(waiting.id, CURLE_COULDNT_RESOLVE_HOST)
        continue
      }
      start(waiting.id, waiting.request, waiting.isFresh, addresses: addresses)
    }
  }

  private func failOverdueNames() {
    guard names.nextDeadline != nil else { return }
    for waiting in names.takeOverdue(now: platform_monotonic_ms()) { fail(waiting.id, CURLE_OPERATION_TIMEDOUT) }
  }

  private func fail(_ id: TransferID, _ code: CURLcode) {
    finished.append(
      FinishedTransfer(
        id: id, outcome: .failure(WireFailure(CurlTransfer.status(code), message: CurlTransfer.words(code)))))
  }

  func networkChanged() {
    names.forgetAll(now: platform_monotonic_ms())
    connections.endIdle()
    connections.dropAddressless()
  }

  func dropIdleConnections() { connections.endIdle() }

  /// When the transport must act next without I/O: for libcurl's timer, or because a request has waited too long for an
  /// address. Negative: no such instant.
  private var nextCall: Int64 {
    let next = min(curlDue ?? .max, names.nextDeadline ?? .max)
    return next == .max ? -1 : next
  }

  /// libcurl checks the time-out of a connection attempt before libcurl reads the socket. If this thread was late, the
  /// connection may be ready. So libcurl gets the lost time back, plus a second.
  private func allowForLateness(_ now: Int64) {
    guard let due = curlDue, now &- due > 100 else { return }
    let lost = Milliseconds(now &- due &+ 1000)
    for case let transfer? in running { transfer.setMoreTimeToConnect(lost, besides: options.connectTimeout) }
  }

  private func callWhereDue(_ now: Int64) {
    guard let due = curlDue, due <= now else { return }
    curlDue = nil
    callCurl(-1, 0)
  }

  /// Lets libcurl work on a socket, or on its timers (-1).
  /// - Parameter reason: why the transport has dropped this connection; nil if it has not.
  private func callCurl(_ socket: Int32, _ flags: Int32, reason: CurlTransfer.Dropped? = nil) {
    let before = watchdog.droppedCount
    quietAt = 0
    var left: Int32 = 0
    _ = watchdog.turn { curl_multi_socket_action(multiHandle, socket, flags, &left) }
    if let reason {
      collect(dropped: reason)
    } else if watchdog.droppedCount != before {
      collect(dropped: .floodInTurn)
    }
  }

  /// Handles one ready descriptor.
  /// - Parameter ofSlow: true: handles only the sockets of slow servers; false: handles only the sockets of all other
  ///   servers.
  private func handle(_ ready: platform_ready_fd, ofSlow: Bool) {
    if connections.hasSlow, connections.isSlow(ready.fd) != ofSlow { return }
    if contenders.count > 0, let request = contenders.take(ready.fd) { return restart(request, over: ready.fd) }
    let event = connections.ready(ready.fd, isSlow: ofSlow, &sweep)
    guard event != .unasked else { return }
    let server = connections.server(ready.fd)
    var flags: Int32 = 0
    if ready.readable != 0 { flags |= CURL_CSELECT_IN }
    if ready.writable != 0 { flags |= CURL_CSELECT_OUT }
    if ready.failed != 0 { flags |= CURL_CSELECT_ERR }
    if event == .flood {
      // Collect the replies of other connections first: those replies do not belong to this flood.
      collect()
      platform_socket_drop(ready.fd)
    }
    let turns = watchdog.turnCount
    callCurl(ready.fd, flags, reason: event == .flood ? .floodInReply : nil)
    if sweep.turnEnded(looks: watchdog.lookCount, clock: platform_monotonic_ms),
      watchdog.hasSeenLongTurn(since: turns)
    {
      connections.noteSlow(server)
    }
  }

  /// Ends the requests whose sockets epoll does not watch, because the library would not notice their replies.
  private func failLost() {
    while let socket = connections.takeLost() {
      collect()
      callCurl(socket, CURL_CSELECT_IN | CURL_CSELECT_OUT | CURL_CSELECT_ERR, reason: .unwatched)
    }
  }

  /// Takes the requests that libcurl has finished.
  /// - Parameter dropped: why a connection was dropped in this turn; the requests on it have failed. nil: no connection
  ///   was dropped.
  private func collect(dropped: CurlTransfer.Dropped? = nil) {
    var code = CURLE_OK
    while let easy = curl_shim_next_finished(multiHandle, &code) {
      guard let pointer = curl_shim_private_pointer(easy) else { continue }
      let transfer = Unmanaged<CurlTransfer>.fromOpaque(pointer).takeUnretainedValue()
      guard takeRunning(transfer.id) != nil else { continue }
      let outcome = transfer.outcome(code, dropped: dropped)
      let microseconds = curl_shim_reply_time(easy)
      let isNew = connections.replyEnded(code == CURLE_OK ? transfer : nil)
      remove(easy)
      let ended = FinishedTransfer(
        id: transfer.id, outcome: outcome, microseconds: microseconds, wasOnKeptConnection: code == CURLE_OK && !isNew,
        isLong: transfer.isReplyLong, idleSeconds: code == CURLE_OK ? transfer.idleSeconds : nil)
      if ended.isLong { long.append(ended) } else { finished.append(ended) }
      if code == CURLE_OK, transfer.isReusable { pool.recycle(transfer) } else { pool.discard(transfer) }
    }
  }

  /// Removes a handle of `running` from libcurl. If libcurl closes the handle's connection, it first reads once more
  /// from the connection.
  private func remove(_ easy: UnsafeMutableRawPointer) {
    _ = watchdog.turn { curl_multi_remove_handle(multiHandle, easy) }
    watchdog.requestEnded()
  }

  fileprivate func wantsCall(in milliseconds: Int) {
    curlDue = milliseconds < 0 ? nil : platform_monotonic_ms() &+ Int64(milliseconds)
  }

  var connectionsOpened: UInt64 { connections.openedCount }

  func shutDown() {
    if mayUseCurl() {
      endUse()
      CurlUsers.leave()
    }
    watchdog.stop()
    names.close()
    poller.close()
  }

  private func endUse() {
    let hasStarted = !running.isEmpty
    for case let transfer? in running {
      remove(transfer.easy)
      pool.discard(transfer)
    }
    running.removeAll()
    contenders.removeAll()
    pool.close()
    watchdog.requestStarted()
    _ = watchdog.turn { curl_multi_cleanup(multiHandle) }
    // Only the I/O thread starts requests. This thread ends now, so free the data that OpenSSL keeps for it. If no
    // request was started, a thread of the host may run this function, and that thread still needs OpenSSL's data.
    if hasStarted { curl_shim_end_thread() }
  }
}

private func onTimer(_ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ data: UnsafeMutableRawPointer?) -> Int32
{
  if let data { Unmanaged<CurlTransport>.fromOpaque(data).takeUnretainedValue().wantsCall(in: milliseconds) }
  return 0
}

/// Whether libcurl would find a proxy in the environment.
private func isProxyInEnvironment() -> Bool {
  for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
    if name.withCString({ platform_is_in_environment($0) }) != 0 { return true }
  }
  return false
}
