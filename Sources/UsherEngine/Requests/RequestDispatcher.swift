internal import UsherCore

/// Sends the context's requests: queues them by origin, limits their time, and decides which connections may be used
/// again. It does not know playbacks; it returns each `Reply` to the engine, which passes it to the owner of the
/// request. Only the I/O thread uses it.
final class RequestDispatcher {
  /// A request that has ended, with its outcome.
  struct Reply {
    let transfer: Transfer
    let outcome: HTTPOutcome
  }

  /// After this time without a reply a request loses its permit, so that other requests do not wait for it.
  private static var stallTime: Milliseconds { 1000 }
  /// How long a keep-alive waits in the queue: `keepAliveWait` if its origin answers no request meanwhile, otherwise at
  /// most `keepAliveWaitMax`.
  private static var keepAliveWait: Milliseconds { 100 }
  private static var keepAliveWaitMax: Milliseconds { 500 }

  private let transport: any Transport
  private let timers: Timers
  private let clock: Clock
  private let httpTimeout: Milliseconds
  private(set) var transfers = Slots<Transfer>()
  private var queue: RequestQueue
  /// The number of running calls of `withoutStartingQueued`.
  private var pauses = 0
  /// Origins whose queued requests may start when the last call of `withoutStartingQueued` has ended.
  private var pausedOrigins: [[UInt8]] = []
  /// Origins whose last request failed. Their earlier connections are not used until a new connection has been
  /// answered.
  private var distrusted: [[UInt8]] = []

  init(transport: any Transport, timers: Timers, clock: Clock, httpTimeout: Milliseconds, queue: RequestQueue) {
    self.transport = transport
    self.timers = timers
    self.clock = clock
    self.httpTimeout = httpTimeout
    self.queue = queue
  }

  var queuedCount: Int { queue.waitingCount }
  var inFlightCount: Int { transfers.count - queue.waitingCount }
  var pausedCount: Int { pausedOrigins.count }

  // MARK: Sending

  /// Sends a request, or queues it if its origin has no free permit.
  /// - Parameter timeout: the time limit, if it is shorter than the context's time-out for requests.
  @discardableResult
  func send(_ request: HTTPRequest, for purpose: Transfer.Purpose, atMost timeout: Milliseconds = .never) -> TransferID
  {
    let now = clock.now
    let transfer = Transfer(purpose: purpose, request: request, now: now, timeout: min(httpTimeout, timeout))
    let id = transfers.insert(transfer)
    transfer.isQueued = !queue.admit(id, request)
    transfer.hasPermit = !transfer.isQueued
    if transfer.isQueued {
      let keepAliveTurn = now.adding(Self.keepAliveWait)
      let at = transfer.isKeepAlive ? min(transfer.deadline, keepAliveTurn) : transfer.deadline
      transfer.timer = timers.set(at: at, .transfer(id))
    } else {
      transfer.timer = timers.set(at: firstTimer(transfer, now), .transfer(id))
      start(id, transfer)
    }
    return id
  }

  private func start(_ id: TransferID, _ transfer: Transfer) {
    transport.start(id, transfer.request, isFresh: distrusted.contains(transfer.origin))
  }

  private func firstTimer(_ transfer: Transfer, _ now: Milliseconds) -> Milliseconds {
    min(now.adding(Self.stallTime), transfer.deadline)
  }

  /// Called when a keep-alive has waited in the queue for `keepAliveWait`. While the origin replies to other requests,
  /// it waits longer, up to `keepAliveWaitMax`, because more connections would only slow the server down. Otherwise it
  /// is sent without a permit.
  private func keepAliveWaited(_ id: TransferID, _ transfer: Transfer, _ now: Milliseconds) {
    let last = transfer.askedAt.adding(min(Self.keepAliveWaitMax, transfer.timeout / 4))
    guard now < last, queue.hasAnswered(transfer.origin, since: now.since(Self.keepAliveWait)) else {
      _ = queue.withdraw(id, transfer.origin)
      leaveQueue(transfer, now)
      transfer.timer = timers.set(at: transfer.deadline, .transfer(id))
      return start(id, transfer)
    }
    transfer.timer = timers.set(at: min(last, now.adding(Self.keepAliveWait)), .transfer(id))
  }

  /// Called when a request leaves the queue: its time-out starts now.
  private func leaveQueue(_ transfer: Transfer, _ now: Milliseconds) {
    transfer.isQueued = false
    transfer.queueDelay = now.since(transfer.askedAt)
    transfer.deadline = now.adding(transfer.timeout)
  }

  // MARK: Outcomes

  /// Called when the transport has finished a request.
  func ended(_ finished: FinishedTransfer) -> Reply? {
    guard let transfer = transfers.remove(finished.id) else { return nil }
    timers.cancel(transfer.timer)
    switch finished.outcome {
    case .response(let response):
      trust(transfer.origin)
      let isGood = (200..<300).contains(response.status)
      queue.answered(transfer.origin, after: isGood ? finished.microseconds : nil, now: clock.now)
    case .failure: distrust(transfer.origin)
    }
    releasePermit(transfer)
    return Reply(transfer: transfer, outcome: finished.outcome)
  }

  /// Called when the timer of a request has fired. Returns nil if the request continues.
  func timerFired(_ id: TransferID) -> Reply? {
    guard let transfer = transfers[id] else { return nil }
    let now = clock.now
    if now < transfer.deadline {
      if transfer.isQueued {
        keepAliveWaited(id, transfer, now)
      } else {
        transfer.timer = timers.set(at: transfer.deadline, .transfer(id))
        queue.stalled(transfer.origin)
        releasePermit(transfer)
      }
      return nil
    }
    transfer.timer = nil
    let wasQueued = transfer.isQueued
    let mayHaveReachedServer = abandon(id)
    if !wasQueued { distrust(transfer.origin) }
    let message =
      wasQueued ? "the request waited in the queue until its time-out" : "no answer within \(transfer.timeout) ms"
    return Reply(
      transfer: transfer,
      outcome: .failure(WireFailure(.timeout, message: message, mayHaveTakenEffect: mayHaveReachedServer)))
  }

  /// Ends a request without a reply.
  /// - Returns: whether the server may have read it.
  @discardableResult
  func abandon(_ id: TransferID) -> Bool {
    guard let transfer = transfers.remove(id) else { return false }
    timers.cancel(transfer.timer)
    if transfer.isQueued {
      _ = queue.withdraw(id, transfer.origin)
      return false
    }
    let mayHaveReachedServer = transport.cancel(id)
    releasePermit(transfer)
    return mayHaveReachedServer
  }

  /// Takes a request of a closing playback out of the queue. Returns nil if it is not queued.
  func withdrawQueued(_ id: TransferID) -> Reply? {
    guard let transfer = transfers[id], transfer.isQueued else { return nil }
    abandon(id)
    return Reply(transfer: transfer, outcome: .failure(WireFailure(.closed)))
  }

  // MARK: Permits

  private func releasePermit(_ transfer: Transfer) {
    if transfer.hasPermit {
      transfer.hasPermit = false
      queue.free(transfer.origin)
    }
    // Do this even if the request had no permit, because its reply may have raised the origin's limit.
    startQueued(transfer.origin)
  }

  /// Runs `body`, during which several playbacks may close. Starts no queued request before `body` has ended, because
  /// `body` may withdraw it.
  func withoutStartingQueued(_ body: () -> Void) {
    pauses += 1
    body()
    pauses -= 1
    guard pauses == 0 else { return }
    let origins = pausedOrigins
    pausedOrigins = []
    for origin in origins { startQueued(origin) }
  }

  private func startQueued(_ origin: [UInt8]) {
    guard pauses == 0 else {
      if !pausedOrigins.contains(origin) { pausedOrigins.append(origin) }
      return
    }
    while let next = queue.next(origin) {
      guard let transfer = transfers[next] else {
        queue.free(origin)
        continue
      }
      let now = clock.now
      leaveQueue(transfer, now)
      transfer.hasPermit = true
      timers.cancel(transfer.timer)
      transfer.timer = timers.set(at: firstTimer(transfer, now), .transfer(next))
      start(next, transfer)
    }
  }

  // MARK: Connections

  private func trust(_ origin: [UInt8]) { if !distrusted.isEmpty { distrusted.removeAll { $0 == origin } } }

  /// Requests to an origin use new connections from now on, until one of them is answered.
  func distrust(_ origin: [UInt8]) { if !distrusted.contains(origin) { distrusted.append(origin) } }
}
