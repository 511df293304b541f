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
  /// For tests: whether requests use HTTP/2 without asking the server, also in plain http.
  package var speaksHTTP2WithoutTLS = false
  package var proxy: [UInt8]?
  package var userAgent: [UInt8] = []
  package init() {}
}

/// HTTP over libcurl's multi interface, driven by epoll.
final class CurlTransport: Transport {
  private let options: TransportOptions
  private let multi: OpaquePointer?
  private let epoll: Int32
  private let wakeFD: Int32
  private let timerFD: Int32
  private let watchdog = TurnWatchdog()
  /// How many handles without a request are kept: at most one for each connection that may be kept.
  private let handlesMax: Int
  private var idle: [CurlTransfer] = []
  /// The transfers in flight, by the index in their id.
  private var running: [CurlTransfer?] = []
  private var finished: [FinishedTransfer] = []
  private struct Watch {
    /// The events that libcurl asked for.
    var wanted: Int32 = 0
    /// The events that epoll watches. A kept connection stays registered between two requests, although libcurl does
    /// not ask for its events then: most connections are used again, so this saves two system calls for each request.
    var told: Int32 = 0
    /// Whether the server has answered once on this connection. libcurl closes such a connection with our callback, so
    /// the transport knows when the system may use the socket's number again. libcurl closes other connections without
    /// the callback.
    var isKept = false
    /// Whether epoll refused to watch the socket. Then the transport has dropped the connection, and libcurl does not
    /// know it yet.
    var isLost = false
    /// Whether the connection speaks HTTP/2: then the server may send frames between two requests.
    var isHTTP2 = false
    /// How many events of the socket libcurl has handled since it last had no interest in it, and for HTTP/2 since the
    /// last reply of any connection.
    var turns: UInt32 = 0
    /// How many bytes the kernel had received on it in the first turn that was counted; see `isFlooding`.
    var receivedBefore: UInt64 = 0
    /// The number of replies at that time.
    var repliesBefore: UInt64 = 0
  }
  /// Connections are not asked for their bytes before this turn: most replies take one or two.
  private static var uncountedTurns: UInt32 { 8 }
  /// How many replies the transport has received.
  private var replies: UInt64 = 0
  /// Whether requests were started whose connections the transport has not checked for unasked bytes.
  private var mustCheckKept = false
  /// When epoll last reported no ready socket, on the monotonic clock; 0 if libcurl has read sockets since.
  private var quietAt: Int64 = 0
  /// For this many milliseconds the transport does not check again.
  private static var quietTime: Int64 { 2 }
  /// Whether another thread has called `wake` since the wait began.
  private var wasWoken = false
  /// The watches, by socket number.
  private var watches: [Watch] = []
  /// When libcurl wants to be called, on the monotonic clock; nil if libcurl has not asked for a call.
  private var curlDue: Int64?
  private var timerSetTo: Int64 = 0
  /// When the timer should fire, on the monotonic clock, if the system did not set it. Then the limit of the wait does
  /// the timer's work.
  private var unsetTimer: Int64?
  /// The sockets that are lost; see `Watch.isLost`.
  private var lost: [Int32] = []
  private var names: NameTable
  /// Whether requests may go through a proxy. Then libcurl looks up names itself: the proxy's, and not the server's.
  private let mayUseProxy: Bool

  /// Whether the system gave every descriptor and libcurl its memory.
  private let isComplete: Bool

  /// - Parameters:
  ///   - keptMax: how many connections are kept.
  ///   - connectionsMax: how many connections there may be.
  /// - Returns: nil if the system gave too little; then no descriptor stays open.
  static func make(options: TransportOptions, keptMax: Int, connectionsMax: Int) -> CurlTransport? {
    let transport = CurlTransport(options: options, keptMax: keptMax, connectionsMax: connectionsMax)
    if transport.isComplete { return transport }
    transport.shutDown()
    return nil
  }

  private init(options: TransportOptions, keptMax: Int, connectionsMax: Int) {
    self.options = options
    handlesMax = min(keptMax, connectionsMax)
    multi = curl_multi_init().map { OpaquePointer($0) }
    epoll = platform_epoll_new()
    wakeFD = platform_eventfd_new()
    timerFD = platform_timerfd_new()
    names = NameTable(wakeFD: wakeFD)
    mayUseProxy = options.proxy.map { $0.count > 1 } ?? isProxyInEnvironment()
    isComplete =
      multi != nil && epoll >= 0 && wakeFD >= 0 && timerFD >= 0 && watchdog.start()
      && platform_epoll_watch(epoll, wakeFD, 0, PLATFORM_READABLE) == 0
      && platform_epoll_watch(epoll, timerFD, 0, PLATFORM_READABLE) == 0
    guard let multi else { return }
    curl_shim_close_wake_up_on_exec(UnsafeMutableRawPointer(multi))
    let me = Unmanaged.passUnretained(self).toOpaque()
    let handle = UnsafeMutableRawPointer(multi)
    _ = curl_shim_multi_set_socket_callback(handle, onSocket)
    _ = curl_shim_multi_set_pointer(handle, CURLMOPT_SOCKETDATA, me)
    _ = curl_shim_multi_set_timer_callback(handle, onTimer)
    _ = curl_shim_multi_set_pointer(handle, CURLMOPT_TIMERDATA, me)
    _ = curl_shim_multi_set_long(handle, CURLMOPT_MAXCONNECTS, handlesMax)
    limitConnections(connectionsMax)
  }

  func limitConnections(_ count: Int) {
    _ = curl_shim_multi_set_long(multiHandle, CURLMOPT_MAX_TOTAL_CONNECTIONS, count)
  }

  private var multiHandle: UnsafeMutableRawPointer? { multi.map { UnsafeMutableRawPointer($0) } }

  func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool) {
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

  private func start(_ id: TransferID, _ request: HTTPRequest, _ isFresh: Bool, addresses: [UInt8]?) {
    guard let transfer = takeIdle(request.endpoint) ?? newTransfer() else { return fail(id) }
    guard
      transfer.prepare(
        id, request, isFresh: isFresh, avoidsProxy: request.endpoint.isLoopback && options.proxy == nil,
        addresses: addresses),
      curl_multi_add_handle(multiHandle, transfer.easy) == CURLM_OK
    else {
      discard(transfer)
      return fail(id)
    }
    transfer.setMoreTimeToConnect(0, besides: options.connectTimeout)
    let place = Slots<Transfer>.place(id)
    while running.count <= place { running.append(nil) }
    running[place] = transfer
    watchdog.requestStarted()
    mustCheckKept = true
  }

  private func transfer(_ id: TransferID) -> CurlTransfer? {
    let place = Slots<Transfer>.place(id)
    guard place < running.count, let transfer = running[place], transfer.id == id else { return nil }
    return transfer
  }

  private func takeRunning(_ id: TransferID) -> CurlTransfer? {
    guard let transfer = transfer(id) else { return nil }
    running[Slots<Transfer>.place(id)] = nil
    return transfer
  }

  private func fail(_ id: TransferID) {
    finished.append(FinishedTransfer(id: id, outcome: .failure(WireFailure(.system))))
  }

  func cancel(_ id: TransferID) -> Bool {
    guard let transfer = takeRunning(id) else {
      names.withdraw(id)
      return false
    }
    // Close the connection: otherwise libcurl would only reset the stream on a dead HTTP/2 connection, and send the
    // next request over that connection.
    _ = curl_shim_set_long(transfer.easy, CURLOPT_FORBID_REUSE, 1)
    let mayHaveReachedServer = transfer.mayHaveReachedServer
    if let socket = socket(of: transfer) { platform_socket_abort_at_close(socket) }
    remove(transfer.easy)
    discard(transfer)
    return mayHaveReachedServer
  }

  func isReceived(_ id: TransferID) -> Bool {
    guard let transfer = transfer(id), transfer.mayHaveReachedServer, let socket = socket(of: transfer) else {
      return false
    }
    return platform_socket_unacknowledged(socket) == 0
  }

  /// The socket of a request in flight. libcurl does not tell it, but the local port.
  private func socket(of transfer: CurlTransfer) -> Int32? {
    guard transfer.localPort > 0 else { return nil }
    for (socket, watch) in watches.enumerated() where watch.wanted != 0 {
      let socket = Int32(truncatingIfNeeded: socket)
      if platform_socket_local_port(socket) == transfer.localPort { return socket }
    }
    return nil
  }

  func wake() { platform_eventfd_signal(wakeFD) }

  func takeFinished() -> [FinishedTransfer] {
    guard !finished.isEmpty else { return [] }
    defer { finished.removeAll(keepingCapacity: true) }
    return finished
  }

  func wait(until instant: Int64?) -> Bool {
    arm(instant)
    let armed = timerSetTo
    wasWoken = false
    var now = platform_monotonic_ms()
    if now &- quietAt <= Self.quietTime { mustCheckKept = false }
    // libcurl may send a new request on a kept connection as soon as it is called. First close those connections on
    // which the server has sent something that no request asked for.
    let hasRead = mustCheckKept
    var hasFired = mustCheckKept ? readSockets(until: 0, isExhaustive: false) : false
    if hasRead { now = platform_monotonic_ms() }
    // Run libcurl's timers first, so that libcurl sends requests that were just added, before this thread waits for
    // replies.
    allowForLateness(now)
    callWhereDue(now)
    failLost()
    if finished.isEmpty { collect() }
    let mayWait = finished.isEmpty && !hasFired && !wasWoken
    if mayWait || !hasRead, readSockets(until: mayWait ? nextCall : 0, isExhaustive: false) { hasFired = true }
    failOverdueNames()
    return hasFired && armed == instant
  }

  func read() { _ = readSockets(until: 0, isExhaustive: true) }

  /// Waits for ready sockets and lets libcurl read them, in rounds, because one call of epoll reports only a part of
  /// many ready sockets.
  /// - Parameters:
  ///   - instant: the monotonic instant until which it waits; 0: it does not wait; negative: without a limit.
  ///   - isExhaustive: whether to read until no socket is ready. The number of rounds is bounded in any case, because a
  ///     server may send all the time.
  /// - Returns: whether the timer has fired; then it has read all replies that had arrived before.
  private func readSockets(until instant: Int64, isExhaustive: Bool) -> Bool {
    mustCheckKept = false
    var (until, hasFired, hasMore) = (instant, false, true)
    // Each ready socket gets its turn before any socket gets a second one; a long reply needs several.
    var rounds = watches.count / Int(PLATFORM_READY_MAX) + 8
    withUnsafeTemporaryAllocation(of: platform_ready_fd.self, capacity: Int(PLATFORM_READY_MAX)) { ready in
      while hasMore, rounds > 0 {
        let count = Int(platform_epoll_wait(epoll, ready.baseAddress, until))
        let now = platform_monotonic_ms()
        allowForLateness(now)
        var sockets = 0
        for index in 0..<count {
          switch ready[index].fd {
          case wakeFD:
            platform_fd_drain(wakeFD)
            wasWoken = true
            takeAnsweredNames()
          case timerFD:
            platform_fd_drain(timerFD)
            timerSetTo = 0
            hasFired = true
          default:
            handle(ready[index])
            sockets += 1
          }
        }
        if let due = unsetTimer, due <= now {
          unsetTimer = nil
          timerSetTo = 0
          hasFired = true
        }
        failLost()
        collect()
        if sockets == 0 { quietAt = now }
        hasMore = sockets > 0 && (isExhaustive || hasFired || count == Int(PLATFORM_READY_MAX))
        until = 0
        rounds -= 1
      }
    }
    // Run libcurl's timers after the sockets, since a timer may be the time-out of what a socket has brought.
    callWhereDue(platform_monotonic_ms())
    collect()
    return hasFired
  }

  /// Continues the requests whose lookup has ended.
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
      FinishedTransfer(id: id, outcome: .failure(WireFailure(.transport, message: CurlTransfer.words(code)))))
  }

  func networkChanged() {
    names.forgetAll(now: platform_monotonic_ms())
    // libcurl cannot be told to close idle connections, but it drops those whose reads have ended.
    for (socket, watch) in watches.enumerated() where watch.isKept && watch.wanted == 0 {
      platform_socket_end_reads(Int32(truncatingIfNeeded: socket))
    }
  }

  /// When libcurl, a request that waits for an address, or the engine must be called; negative: only after I/O.
  private var nextCall: Int64 {
    let next = min(curlDue ?? .max, names.nextDeadline ?? .max, unsetTimer ?? .max)
    return next == .max ? -1 : next
  }

  /// libcurl judges the time-out of a connection before it looks at the socket. If this thread was late, the connection
  /// may be ready: gives libcurl the lost time back, and a second.
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

  /// Sets the timer only if it would fire too late. A wake-up that comes too early costs less than a system call for
  /// each wait.
  private func arm(_ instant: Int64?) {
    guard let instant, timerSetTo == 0 || instant < timerSetTo else { return }
    timerSetTo = instant
    let isSet = platform_timerfd_set(timerFD, instant) == 0
    unsetTimer =
      isSet ? nil : platform_monotonic_ms() &+ max(0, instant &- platform_boottime_ns() &+ 999_999) / 1_000_000
  }

  private func handle(_ ready: platform_ready_fd) {
    let index = Int(ready.fd)
    guard index < watches.count, watches[index].wanted != 0 else { return closeUnasked(ready.fd) }
    var flags: Int32 = 0
    if ready.readable != 0 { flags |= CURL_CSELECT_IN }
    if ready.writable != 0 { flags |= CURL_CSELECT_OUT }
    if ready.failed != 0 { flags |= CURL_CSELECT_ERR }
    let floods = isFlooding(ready.fd)
    if floods {
      // What other connections have brought must not count as this flood.
      collect()
      platform_socket_drop(ready.fd)
    }
    callCurl(ready.fd, flags, reason: floods ? .floodInReply : nil)
  }

  /// Lets the requests fail whose sockets epoll does not watch: nobody would notice their replies.
  private func failLost() {
    while let socket = lost.popLast() {
      let index = Int(socket)
      guard index < watches.count, watches[index].isLost else { continue }
      watches[index].isLost = false
      collect()
      callCurl(socket, CURL_CSELECT_IN | CURL_CSELECT_OUT | CURL_CSELECT_ERR, reason: .unwatched)
    }
  }

  /// Whether the server has sent far more than a reply may have. libcurl reads parts of a reply that are never stored,
  /// for example extensions of chunks, so the kernel's count is the only one.
  private func isFlooding(_ socket: Int32) -> Bool {
    let index = Int(socket)
    watches[index].turns &+= 1
    guard watches[index].turns >= Self.uncountedTurns else { return false }
    let received = platform_socket_received(socket)
    let isNew = watches[index].isHTTP2 && watches[index].repliesBefore != replies
    if watches[index].turns == Self.uncountedTurns || isNew {
      watches[index].receivedBefore = received
      watches[index].repliesBefore = replies
    }
    return received &- watches[index].receivedBefore > UInt64(2 &* options.maxResponseBytes &+ 1 << 16)
  }

  /// A server has sent something, or has closed the connection, while no request was in flight on it. Over HTTP/1.1 the
  /// bytes would be read as the reply to the next request, so the connection is closed.
  private func closeUnasked(_ socket: Int32) {
    tell(socket, 0)
    let index = Int(socket)
    if index < watches.count, watches[index].isKept, !watches[index].isHTTP2 { platform_socket_drop(socket) }
  }

  /// - Parameter dropped: why a connection was dropped in this turn; the requests on it have failed.
  private func collect(dropped: CurlTransfer.Dropped? = nil) {
    var code = CURLE_OK
    while let easy = curl_shim_next_finished(multiHandle, &code) {
      guard let pointer = curl_shim_private_pointer(easy) else { continue }
      let transfer = Unmanaged<CurlTransfer>.fromOpaque(pointer).takeUnretainedValue()
      guard takeRunning(transfer.id) != nil else { continue }
      let outcome = transfer.outcome(code, dropped: dropped)
      replies &+= 1
      let microseconds = curl_shim_reply_time(easy)
      if code == CURLE_OK { keep(curl_shim_socket_made(easy), easy) }
      remove(easy)
      finished.append(FinishedTransfer(id: transfer.id, outcome: outcome, microseconds: microseconds))
      if code == CURLE_OK { recycle(transfer) } else { discard(transfer) }
    }
  }

  /// Ends libcurl's work on a handle of `running`. When libcurl closes a connection, it first reads it once more.
  private func remove(_ easy: UnsafeMutableRawPointer) {
    _ = watchdog.turn { curl_multi_remove_handle(multiHandle, easy) }
    watchdog.requestEnded()
  }

  /// Returns a handle that already has this endpoint's settings, otherwise any idle one.
  private func takeIdle(_ endpoint: Endpoint) -> CurlTransfer? {
    var index = idle.count - 1
    while index >= 0 {
      if idle[index].endpoint === endpoint {
        idle.swapAt(index, idle.count - 1)
        break
      }
      index -= 1
    }
    return idle.popLast()
  }

  private func recycle(_ transfer: CurlTransfer) {
    transfer.release()
    if idle.count < handlesMax { idle.append(transfer) } else { curl_easy_cleanup(transfer.easy) }
  }

  /// Closes a handle whose request failed, because it may keep state of that request.
  private func discard(_ transfer: CurlTransfer) {
    transfer.release()
    curl_easy_cleanup(transfer.easy)
  }

  /// Makes an easy handle and sets all options that never change.
  private func newTransfer() -> CurlTransfer? {
    guard let easy = curl_easy_init() else { return nil }
    let transfer = CurlTransfer(easy: easy, limit: options.maxResponseBytes)
    let pointer = Unmanaged.passUnretained(transfer).toOpaque()
    _ = curl_shim_set_long(easy, CURLOPT_QUICK_EXIT, 1)
    // Without one of these options, libcurl would reveal a secret or repeat a request. If libcurl refuses an option,
    // the handle is not used.
    let isSafe =
      curl_shim_set_long(easy, CURLOPT_NOSIGNAL, 1) == CURLE_OK
      && curl_shim_set_long(easy, CURLOPT_FOLLOWLOCATION, 0) == CURLE_OK
      && curl_shim_set_long(easy, CURLOPT_NETRC, 0) == CURLE_OK
      && curl_shim_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK
      && setTLS(easy) && set(easy, CURLOPT_PROXY, options.proxy)
      && set(easy, CURLOPT_USERAGENT, options.userAgent)
      && curl_shim_set_prerequest_callback(easy, onPrerequest) == CURLE_OK
      && curl_shim_set_pointer(easy, CURLOPT_PREREQDATA, pointer) == CURLE_OK
      && curl_shim_set_open_callback(easy, onOpen, pointer) == CURLE_OK
      && curl_shim_set_socket_made_callback(easy, onSocketMade, Unmanaged.passUnretained(self).toOpaque()) == CURLE_OK
      && curl_shim_set_close_callback(easy, onClose, Unmanaged.passUnretained(self).toOpaque()) == CURLE_OK
      && curl_shim_set_data_callback(easy, CURLOPT_WRITEFUNCTION, onBody) == CURLE_OK
      && curl_shim_set_pointer(easy, CURLOPT_WRITEDATA, pointer) == CURLE_OK
      && curl_shim_set_pointer(easy, CURLOPT_PRIVATE, pointer) == CURLE_OK && transfer.limitHeaders()
    guard isSafe else {
      curl_easy_cleanup(easy)
      return nil
    }
    let version = options.allowsHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1
    _ = curl_shim_set_long(
      easy, CURLOPT_HTTP_VERSION, options.speaksHTTP2WithoutTLS ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : version)
    _ = curl_shim_set_long(easy, CURLOPT_TCP_NODELAY, 1)
    _ = curl_shim_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: options.connectTimeout))
    return transfer
  }

  private func setTLS(_ easy: UnsafeMutableRawPointer) -> Bool {
    if let tls = options.tls { return tls.set(easy) }
    var defaults = curl_shim_tls()
    return curl_shim_set_tls(easy, &defaults) == 0
  }

  private func set(_ easy: UnsafeMutableRawPointer, _ option: CURLoption, _ value: [UInt8]?) -> Bool {
    guard let value else { return true }
    return value.withUnsafeBytes { bytes in
      curl_shim_set_string(easy, option, bytes.baseAddress?.assumingMemoryBound(to: CChar.self)) == CURLE_OK
    }
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
    // libcurl made this descriptor itself if it belongs to a name look-up.
    if watches[index].told == 0, interest != 0 { curl_shim_close_on_exec(socket) }
    watches[index].wanted = interest
    if interest == 0 {
      watches[index].turns = 0
      watches[index].isLost = false
    }
    if interest == 0, watches[index].isKept, watches[index].told == PLATFORM_READABLE { return }
    tell(socket, interest)
  }

  private func tell(_ socket: Int32, _ interest: Int32) {
    let index = Int(socket)
    guard index < watches.count, watches[index].told != interest else { return }
    let isWatched = platform_epoll_watch(epoll, socket, watches[index].told, interest) == 0
    watches[index].told = interest
    guard !isWatched, interest != 0 else { return }
    // Nobody would notice a reply. If no request is in flight on the connection, libcurl sees that it has ended.
    platform_socket_drop(socket)
    guard watches[index].wanted != 0, !watches[index].isLost else { return }
    watches[index].isLost = true
    lost.append(socket)
  }

  private func keep(_ socket: Int32, _ easy: UnsafeMutableRawPointer) {
    guard socket >= 0, Int(socket) < watches.count else { return }
    watches[Int(socket)].isKept = true
    watches[Int(socket)].isHTTP2 = options.allowsHTTP2 && curl_shim_was_http2(easy) != 0
    // From now on epoll watches the connection also while no request is in flight; see `closeUnasked`.
    if watches[Int(socket)].wanted == 0 { tell(socket, PLATFORM_READABLE) }
  }

  fileprivate func opened(_ socket: Int32) { watchdog.opened(socket) }

  /// Takes the socket out of epoll first, because closing does not do so while a forked child still has the socket
  /// open.
  fileprivate func close(_ socket: Int32) {
    tell(socket, 0)
    watchdog.closed(socket)
    if Int(socket) < watches.count { watches[Int(socket)] = Watch() }
    platform_fd_close(socket)
  }

  fileprivate func wantsCall(in milliseconds: Int) {
    curlDue = milliseconds < 0 ? nil : platform_monotonic_ms() &+ Int64(milliseconds)
  }

  func shutDown() {
    for case let transfer? in running {
      remove(transfer.easy)
      transfer.release()
      curl_easy_cleanup(transfer.easy)
    }
    running.removeAll()
    for transfer in idle { curl_easy_cleanup(transfer.easy) }
    idle.removeAll()
    watchdog.requestStarted()
    _ = watchdog.turn { curl_multi_cleanup(multiHandle) }
    watchdog.stop()
    names.close()
    platform_fd_close(epoll)
    platform_fd_close(wakeFD)
    platform_fd_close(timerFD)
  }
}

private func onSocket(
  _ easy: UnsafeMutableRawPointer?, _ socket: Int32, _ what: Int32, _ data: UnsafeMutableRawPointer?,
  _ own: UnsafeMutableRawPointer?
) -> Int32 {
  if let data { Unmanaged<CurlTransport>.fromOpaque(data).takeUnretainedValue().watch(socket, what) }
  return 0
}

private func onOpen(
  _ data: UnsafeMutableRawPointer?, _: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
)
  -> Int32
{
  guard let address, let data else { return -1 }
  return Unmanaged<CurlTransfer>.fromOpaque(data).takeUnretainedValue().open(address)
}

private func onSocketMade(_ data: UnsafeMutableRawPointer?, _ socket: Int32, _: curlsocktype) -> Int32 {
  if let data { Unmanaged<CurlTransport>.fromOpaque(data).takeUnretainedValue().opened(socket) }
  return CURL_SOCKOPT_OK
}

private func onClose(_ data: UnsafeMutableRawPointer?, _ socket: Int32) -> Int32 {
  if let data { Unmanaged<CurlTransport>.fromOpaque(data).takeUnretainedValue().close(socket) }
  return 0
}

private func onTimer(_ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ data: UnsafeMutableRawPointer?) -> Int32
{
  if let data { Unmanaged<CurlTransport>.fromOpaque(data).takeUnretainedValue().wantsCall(in: milliseconds) }
  return 0
}

private func onBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ data: UnsafeMutableRawPointer?
) -> Int {
  guard let bytes, let data else { return 0 }
  let (total, overflow) = size.multipliedReportingOverflow(by: count)
  guard !overflow else { return 0 }
  let raw = UnsafeRawBufferPointer(start: bytes, count: total)
  return Unmanaged<CurlTransfer>.fromOpaque(data).takeUnretainedValue().take(raw.bindMemory(to: UInt8.self)) ? total : 0
}

private func onPrerequest(
  _ data: UnsafeMutableRawPointer?, _ theirs: UnsafeMutablePointer<CChar>?, _ ours: UnsafeMutablePointer<CChar>?,
  _ theirPort: Int32, _ ourPort: Int32
) -> Int32 {
  guard let data, Unmanaged<CurlTransfer>.fromOpaque(data).takeUnretainedValue().maySend(localPort: ourPort) else {
    return CURL_PREREQFUNC_ABORT
  }
  return CURL_PREREQFUNC_OK
}

/// Whether libcurl would find a proxy in the environment.
private func isProxyInEnvironment() -> Bool {
  for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
    if name.withCString({ platform_is_in_environment($0) }) != 0 { return true }
  }
  return false
}
