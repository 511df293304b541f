internal import UsherCore

/// Sends the context's requests: queues them by origin, limits their time, and decides which connections may be used
/// again. The dispatcher does not know playbacks; it returns each `Reply` to the engine, which passes it to the owner
/// of the request. Only the I/O thread uses this object.
final class RequestDispatcher {
  /// A request that has ended, with its outcome.
  struct Reply {
    let transfer: Transfer
    let outcome: HTTPOutcome
  }

  /// After this time without a reply a request loses its permit, so that other requests do not wait for it.
  private static var stallTime: Milliseconds { 1000 }
  /// A keep-alive waits in the queue for `keepAliveWait`. If its origin answers other requests meanwhile, the
  /// keep-alive waits longer, but at most `keepAliveWaitMax`.
  private static var keepAliveWait: Milliseconds { 100 }
  private static var keepAliveWaitMax: Milliseconds { 500 }
  /// The pause after which a request opens another connection; see `Transfer.connectsAgainFrom`.
  private static var connectPause: Milliseconds { 50 }
  /// How many additional connections the context opens within `connectPause` at most, so that a thousand requests do
  /// not flood the network. A few are enough: when the origin answers one request again, `networkIsBack` opens another
  /// connection for each other request that may open more.
  private static var connectionsAgainMost: Int { 10 }
  /// After the network changed, the servers have this time to acknowledge the requests in flight.
  private static var receiptTime: Milliseconds { 1000 }
  /// If a request has opened more than one connection, it has at least this time for its reply, counted from the
  /// moment when one of them was established.
  private static var lateConnectionTime: Milliseconds { 1000 }

  private let transport: any Transport
  private let timers: Timers
  private let clock: Clock
  private let meter: Meter
  private let httpTimeout: Milliseconds
  private(set) var transfers = Slots<Transfer>()
  /// A function that the dispatcher calls when it sends a request; nil: none.
  var onStart: ((Transfer) -> Void)?
  /// Makes the trace ids of the requests; nil: the requests have none.
  var traceContext: TraceContext?
  private var queue: RequestQueue
  /// The limit of `connections_max`. The queue's own limit is lower while the system lacks file descriptors.
  private let connectionsMax: Int
  /// How many calls of `withoutStartingQueued` are running, one inside another.
  private var pauses = 0
  /// How many additional connections were opened since `connectsAgainSince`.
  private var connectionsAgain = 0
  private var connectsAgainSince: Milliseconds = 0

  init(
    transport: any Transport, timers: Timers, clock: Clock, meter: Meter = Meter(), httpTimeout: Milliseconds,
    queue: RequestQueue
  ) {
    self.transport = transport
    self.timers = timers
    self.clock = clock
    self.meter = meter
    self.httpTimeout = httpTimeout
    self.queue = queue
    connectionsMax = queue.connectionsMax
  }

  var queuedCount: Int { queue.waitingCount }
  var inFlightCount: Int { transfers.count - queue.waitingCount }
  var pausedCount: Int { pauses }
  var connectionsOpened: UInt64 { transport.connectionsOpened }

  // MARK: Sending

  /// Sends a request, or queues it if its origin has no free permit.
  /// - Parameters:
  ///   - timeout: the time limit. If the context's time-out for requests is shorter, that time-out is the limit.
  ///   - longest: a longer time limit. It replaces `timeout` if the server has received the request. A value below
  ///     `timeout` has no effect.
  ///   - again: the instant from which the request opens more connections, until one is established.
  @discardableResult
  func send(
    _ request: HTTPRequest, for purpose: Transfer.Purpose, atMost timeout: Milliseconds = .never,
    ifReceived longest: Milliseconds = 0, connectingAgainFrom again: Milliseconds = .never
  ) -> TransferID {
    let now = clock.now
    let transfer = Transfer(
      purpose: purpose, request: request, now: now, timeout: min(httpTimeout, timeout),
      longestTimeout: min(httpTimeout, longest), connectsAgainFrom: again)
    let id = transfers.insert(transfer)
    transfer.number = Slots<Transfer>.number(id)
    transfer.isQueued = !queue.admit(id, request)
    transfer.hasPermit = !transfer.isQueued
    if transfer.isQueued {
      let keepAliveTurn = again <= now ? now : now.adding(Self.keepAliveWait)
      let at = transfer.isKeepAlive ? min(transfer.deadline, keepAliveTurn) : transfer.deadline
      transfer.timer = timers.set(at: at, .transfer(id))
    } else {
      setTimer(id, transfer, now)
      start(id, transfer)
    }
    return id
  }

  private func start(_ id: TransferID, _ transfer: Transfer) {
    // If the system had no file descriptor for the first attempt, the meter has counted the request already.
    if !transfer.lacksDescriptor { meter.sent(transfer) }
    transfer.request.traceParent = traceContext?.line(of: transfer)
    if let seconds = queue.usableIdleSeconds(transfer.origin) { transfer.request.idleSecondsMost = max(seconds, 1) }
    onStart?(transfer)
    transport.start(id, transfer.request, isFresh: needsNewConnection(transfer))
  }

  /// Whether the request must use a new connection. There are two reasons: the kept connections to its origin may be
  /// dead; or the library must not repeat the request, and the origin has not shown that it keeps connections open.
  private func needsNewConnection(_ transfer: Transfer) -> Bool {
    let origin = transfer.origin
    if queue.isDistrusted(origin) { return true }
    // The origin is not distrusted. So if the system has no descriptor for a new connection, use a kept connection.
    guard transfer.request.opensSession, !transfer.lacksDescriptor else { return false }
    if queue.usableIdleSeconds(origin) == 0 { return true }
    guard !queue.keepsConnections(origin) else { return false }
    return !transport.hasLastingConnection(to: origin)
  }

  /// Sets the timer of a request in flight.
  private func setTimer(_ id: TransferID, _ transfer: Transfer, _ now: Milliseconds) {
    let stallsAt = transfer.sentAt.adding(Self.stallTime)
    let again = max(transfer.connectsAgainFrom, now.adding(Self.connectPause))
    let first = min(transfer.deadline, transfer.mustBeReceivedAt)
    transfer.timer = timers.set(at: min(first, now < stallsAt ? stallsAt : .never, again), .transfer(id))
  }

  /// Called when a keep-alive has waited in the queue for `keepAliveWait`. If the origin has replied to other requests
  /// meanwhile, the keep-alive waits longer, up to `keepAliveWaitMax`: the server is only slow, and more connections
  /// would make it slower. If the origin has not replied, this function sends the keep-alive without a permit. If there
  /// is no free connection for it, this function ends a stalled request, and the keep-alive uses the connection of that
  /// request; see `makeRoom`. If there is no such request either, the keep-alive waits for the next free connection.
  /// - Returns: the failure of the request that this function has ended; nil if it has ended none.
  private func keepAliveWaited(_ id: TransferID, _ transfer: Transfer, _ now: Milliseconds) -> Reply? {
    let last = transfer.askedAt.adding(min(Self.keepAliveWaitMax, transfer.timeout / 4))
    if now < last, queue.hasAnswered(transfer.origin, since: now.since(Self.keepAliveWait)) {
      transfer.timer = timers.set(at: min(last, now.adding(Self.keepAliveWait)), .transfer(id))
      return nil
    }
    if queue.sendsWithoutPermit(id, transfer.origin) {
      startWithoutPermit(id, transfer, now)
      return nil
    }
    transfer.timer = timers.set(at: transfer.deadline, .transfer(id))
    return makeRoom(for: transfer.origin, now)
  }

  private func startWithoutPermit(_ id: TransferID, _ transfer: Transfer, _ now: Milliseconds) {
    leaveQueue(transfer, now)
    timers.cancel(transfer.timer)
    setTimer(id, transfer, now)
    start(id, transfer)
  }

  /// Ends a stalled request, and sends an overdue keep-alive of `origin` over the connection that becomes free. This
  /// function ends a request that is not urgent. If there is none, it ends a keep-alive of the origin with the most
  /// connections. Among several such requests, the function ends the one whose time-out is nearest. It never ends a
  /// teardown.
  private func makeRoom(for origin: [UInt8], _ now: Milliseconds) -> Reply? {
    var found = transfers.lowest { transfer in
      let isStalled = transfer.isStalled && !transfer.request.isUrgent
      return isStalled && queue.mayTakeOver(origin, from: transfer.origin) ? transfer.deadline : nil
    }
    if found == nil, let other = queue.largest(besides: origin) {
      found = transfers.lowest { transfer in
        let isOld = now.since(transfer.sentAt) >= Self.stallTime
        return transfer.isStalled && transfer.isKeepAlive && isOld && transfer.origin == other ? transfer.deadline : nil
      }
    }
    guard let id = found, let transfer = transfers.remove(id) else { return nil }
    timers.cancel(transfer.timer)
    let mayHaveReachedServer = transport.cancel(id)
    distrust(transfer.origin)
    queue.ended(transfer.origin, hadPermit: false)
    if let next = queue.takeOverdue(origin), let keepAlive = transfers[next] {
      startWithoutPermit(next, keepAlive, now)
    }
    let waited = now.since(transfer.sentAt)
    return unanswered(transfer, after: waited, mayHaveTakenEffect: mayHaveReachedServer)
  }

  /// Called when a request leaves the queue: its time-out starts now.
  private func leaveQueue(_ transfer: Transfer, _ now: Milliseconds) {
    transfer.isQueued = false
    transfer.queueDelay = now.since(transfer.askedAt)
    transfer.deadline = now.adding(transfer.timeout)
  }

  // MARK: Outcomes

  /// Called when the transport has finished a request. Returns nil if the request is queued again.
  func ended(_ finished: FinishedTransfer) -> Reply? {
    guard let transfer = transfers[finished.id] else { return nil }
    timers.cancel(transfer.timer)
    switch finished.outcome {
    case .response(let response):
      if finished.wasOnKeptConnection { meter.connectionReused() }
      let now = clock.now
      let isGood = (200..<300).contains(response.status)
      let wasDistrusted = queue.answered(
        transfer.origin, after: isGood ? finished.microseconds : nil, onKeptConnection: finished.wasOnKeptConnection,
        idleSeconds: finished.idleSeconds, now: now)
      if wasDistrusted { networkIsBack(transfer.origin, now) }
      if queue.connectionsMax < connectionsMax { limitConnections(queue.connectionsMax + 1) }
    case .failure(let failure):
      if failure.status == .system, !failure.mayHaveTakenEffect, putBack(finished.id, transfer) { return nil }
      if failure.endedKeptConnection { distrust(transfer.origin) } else { suspect(transfer) }
    }
    transfers.remove(finished.id)
    giveBack(transfer)
    return Reply(transfer: transfer, outcome: finished.outcome)
  }

  /// Called when the system had no file descriptor for a request. Queues the request until another one ends, and lowers
  /// the limit of connections. If no other request is in flight, this function sends the request again immediately:
  /// libcurl then closes a kept connection, which frees a descriptor.
  /// - Returns: false if the request has failed.
  private func putBack(_ id: TransferID, _ transfer: Transfer) -> Bool {
    let others = inFlightCount - 1
    guard others > 0 || !transfer.lacksDescriptor else { return false }
    transfer.lacksDescriptor = true
    queue.ended(transfer.origin, hadPermit: transfer.hasPermit)
    transfer.hasPermit = false
    transfer.isQueued = true
    transfer.timer = timers.set(at: transfer.deadline, .transfer(id))
    queue.putBack(id, transfer.request)
    limitConnections(max(1, others))
    startQueued()
    return true
  }

  private func limitConnections(_ count: Int) {
    queue.connectionsMax = count
    transport.limitConnections(count)
  }

  /// Called when the timer of a request has fired. Returns nil if no request has ended.
  func timerFired(_ id: TransferID) -> Reply? {
    guard let transfer = transfers[id] else { return nil }
    let now = clock.now
    if now >= transfer.mustBeReceivedAt {
      transfer.mustBeReceivedAt = .never
      if !transport.isReceived(id) { return lost(id, transfer, after: now.since(transfer.sentAt)) }
    }
    if now < transfer.deadline {
      if transfer.isQueued { return keepAliveWaited(id, transfer, now) }
      if now >= transfer.connectsAgainFrom { connectAgain(id, transfer, now) }
      let isOld = now.since(transfer.sentAt) >= Self.stallTime
      let hasStalled = isOld && transfer.hasPermit
      if hasStalled { transfer.hasPermit = false }
      setTimer(id, transfer, now)
      if hasStalled { stalled(transfer.origin) }
      // This request has stalled. If an overdue keep-alive waits for a connection, end a stalled request, so that the
      // keep-alive gets its connection.
      return isOld ? queue.overdueOrigin.flatMap { makeRoom(for: $0, now) } : nil
    }
    if !transfer.isQueued, now >= transfer.connectsAgainFrom, !transport.isConnecting(id) {
      transfer.connected(now: now, atLeast: Self.lateConnectionTime)
      if now < transfer.deadline {
        setTimer(id, transfer, now)
        return nil
      }
    }
    let extensionMax = transfer.isQueued ? transfer.timeout : Timers.extensionMax
    if !transfer.isExtended, let again = Timers.extended(transfer.deadline, now: now, atMost: extensionMax) {
      // The I/O thread was late. Meanwhile libcurl could send and read nothing: the reply may have arrived, or the
      // request may have stayed in the queue only for this reason. So the request gets more time.
      transfer.isExtended = true
      transfer.deadline = again
      transfer.timer = timers.set(at: transfer.deadline, .transfer(id))
      return nil
    }
    // The server has received the request. If a packet of the reply was lost, TCP sends it again, so wait longer. A
    // retry would make the server issue another token.
    if transfer.isExtensible, transport.isReceived(id) {
      transfer.extend()
      transfer.timer = timers.set(at: transfer.deadline, .transfer(id))
      return nil
    }
    guard transfer.isQueued else { return lost(id, transfer, after: transfer.timeout) }
    transfer.timer = nil
    abandon(id)
    let failure =
      transfer.lacksDescriptor
      ? WireFailure(.system, message: "no file descriptor for a connection")
      : WireFailure(.timeout, message: "the request waited in the queue until its time-out")
    return Reply(transfer: transfer, outcome: .failure(failure))
  }

  /// Ends a request in flight that has got no reply.
  private func lost(_ id: TransferID, _ transfer: Transfer, after time: Milliseconds) -> Reply {
    transfer.timer = nil
    let mayHaveReachedServer = abandon(id)
    suspect(transfer)
    return unanswered(transfer, after: time, mayHaveTakenEffect: mayHaveReachedServer)
  }

  private func unanswered(_ transfer: Transfer, after time: Milliseconds, mayHaveTakenEffect: Bool) -> Reply {
    var message = LogLine("no answer within ")
    message.add(time)
    message.add(" ms")
    return Reply(
      transfer: transfer,
      outcome: .failure(WireFailure(.timeout, message: message.text(), mayHaveTakenEffect: mayHaveTakenEffect)))
  }

  /// Ends a request, and does not report an outcome.
  /// - Returns: whether the server may have read the request.
  @discardableResult
  func abandon(_ id: TransferID) -> Bool {
    guard let transfer = transfers.remove(id) else { return false }
    timers.cancel(transfer.timer)
    if transfer.isQueued {
      _ = queue.withdraw(id, transfer.origin)
      return false
    }
    let mayHaveReachedServer = transport.cancel(id)
    giveBack(transfer)
    return mayHaveReachedServer
  }

  /// Takes a request of a closing playback out of the queue. Returns nil if it is not queued.
  func withdrawQueued(_ id: TransferID) -> Reply? {
    guard let transfer = transfers[id], transfer.isQueued else { return nil }
    abandon(id)
    return Reply(transfer: transfer, outcome: .failure(WireFailure(.closed)))
  }

  // MARK: Permits

  /// Frees the permit of a request of `origin` that has been in flight for too long.
  private func stalled(_ origin: [UInt8]) {
    queue.stalled(origin)
    queue.free(origin)
    startQueued()
  }

  /// Called when a request in flight has ended: queued requests may use its connection and its permit.
  private func giveBack(_ transfer: Transfer) {
    queue.ended(transfer.origin, hadPermit: transfer.hasPermit)
    transfer.hasPermit = false
    startQueued()
  }

  /// Runs `body`, which may close several playbacks. No queued request starts until `body` has ended, because `body`
  /// may withdraw that request.
  func withoutStartingQueued(_ body: () -> Void) {
    pauses += 1
    body()
    pauses -= 1
    startQueued()
  }

  private func startQueued() {
    while pauses == 0, let next = queue.next() {
      guard let transfer = transfers[next.id] else { continue }
      let now = clock.now
      guard next.hasPermit else {
        startWithoutPermit(next.id, transfer, now)
        continue
      }
      leaveQueue(transfer, now)
      transfer.hasPermit = true
      timers.cancel(transfer.timer)
      setTimer(next.id, transfer, now)
      start(next.id, transfer)
    }
  }

  // MARK: Connections

  /// Called at the first reply after a failure, which shows that the network is back. Some keep-alive retries to this
  /// origin may still be connecting. This function opens a new connection at once for each of them that may open more
  /// connections (`Transfer.connectsAgainFrom`), and does not wait for the old attempts.
  private func networkIsBack(_ origin: [UInt8], _ now: Milliseconds) {
    for id in transfers.ids {
      if let transfer = transfers[id], !transfer.isQueued, now >= transfer.connectsAgainFrom, transfer.origin == origin
      {
        connectAgain(id, transfer, now, isNetworkBack: true)
      }
    }
  }

  /// Starts one more attempt to connect for a request whose earlier attempts have not succeeded yet.
  private func connectAgain(_ id: TransferID, _ transfer: Transfer, _ now: Milliseconds, isNetworkBack: Bool = false) {
    guard transport.isConnecting(id) else { return transfer.connected(now: now, atLeast: Self.lateConnectionTime) }
    if now.since(connectsAgainSince) >= Self.connectPause { (connectsAgainSince, connectionsAgain) = (now, 0) }
    guard isNetworkBack || connectionsAgain < Self.connectionsAgainMost else { return }
    connectionsAgain &+= 1
    transfer.hasConnectedAgain = true
    transport.connectAgain(id, isNetworkBack: isNetworkBack)
  }

  /// Called when a request failed. If the origin has answered no other request since the library sent the failed one,
  /// the other connections to the origin may be dead too, so later requests do not use them.
  private func suspect(_ transfer: Transfer) {
    if !queue.hasAnswered(transfer.origin, since: transfer.sentAt.adding(1)) { distrust(transfer.origin) }
  }

  /// Drops the addresses of servers and the idle connections (see `Transport.networkChanged`), and does not wait for
  /// old connections: a keep-alive or teardown in flight fails after `receiptTime`, unless its server has acknowledged
  /// it. The sessions repeat these requests over new connections.
  func networkChanged() {
    transport.networkChanged()
    let now = clock.now
    for id in transfers.ids {
      guard let transfer = transfers[id], !transfer.isQueued, transfer.isRepeatable else { continue }
      transfer.mustBeReceivedAt = now.adding(Self.receiptTime)
      timers.cancel(transfer.timer)
      setTimer(id, transfer, now)
    }
  }

  /// Called when this thread did not run for some time: the connections that were idle may be dead, although libcurl
  /// has not noticed it. All requests use new connections, until their origin has answered one of them.
  func hasStopped() {
    transport.dropIdleConnections()
    queue.distrustAll()
  }

  /// Makes all requests to an origin use new connections, until the origin has answered one of them.
  func distrust(_ origin: [UInt8]) { queue.distrust(origin) }

  /// For how long a connection to the origin may have been idle before a request that must not be repeated uses it.
  func idleTime(_ origin: [UInt8]) -> Milliseconds {
    Milliseconds(1000 &* (queue.usableIdleSeconds(origin) ?? HTTPRequest.usualIdleSeconds))
  }

  /// When the origin last answered, if a request that must not be repeated could use one of its kept connections;
  /// otherwise nil.
  func readySince(_ origin: [UInt8]) -> Milliseconds? {
    queue.isDistrusted(origin) || !transport.hasLastingConnection(to: origin) ? nil : queue.answeredAt(origin)
  }
}
