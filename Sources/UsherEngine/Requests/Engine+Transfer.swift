internal import UsherCore

/// One request of the context, sent or waiting for its place.
final class Transfer {
  enum Purpose {
    case ssm(PlaybackID, RequestID, SSMSession.Call)
    case license(PlaybackID, RequestID, LicenseID)
    case certificate(CertificateSource)
    case load(PlaybackID, LoadingJob, LoadingJob.Step)
  }
  let purpose: Purpose
  let request: HTTPRequest
  let askedAt: Milliseconds
  let timeout: Milliseconds
  var timer: UInt64?
  var deadline: Milliseconds
  /// Waits for a place at its origin.
  var isWaiting = false
  /// How long it did.
  var waited: Milliseconds = 0
  /// False: it gave its place at the origin up, or never had one.
  var hasPlace = true

  init(purpose: Purpose, request: HTTPRequest, now: Milliseconds, timeout: Milliseconds) {
    self.purpose = purpose
    self.request = request
    askedAt = now
    self.timeout = timeout
    deadline = now.adding(timeout)
  }
}

/// How long a request may take before others stop waiting for its place.
private let stallTime: Milliseconds = 1000

/// How long a keep-alive waits for a place: where no answers come, and where they do. Requests that are not answered must not make it late.
private let keepAlivePatience: Milliseconds = 100
private let keepAlivePatienceMax: Milliseconds = 500

extension Transfer.Purpose {
  func isKeepAlive(_ request: HTTPRequest) -> Bool {
    switch self {
    case .ssm(_, _, let call): return call == .heartbeat
    case .license: return request.isUrgent
    case .certificate, .load: return false
    }
  }
}

extension Engine {
  /// - Parameter atMost: how long it may take where that is less than the context's bound.
  @discardableResult
  func send(_ request: HTTPRequest, for purpose: Transfer.Purpose, atMost: Milliseconds = .never) -> TransferID {
    let now = clock.now
    let transfer = Transfer(
      purpose: purpose, request: request, now: now, timeout: min(options.transport.httpTimeout, atMost))
    let id = transfers.insert(transfer)
    transfer.isWaiting = !queue.admit(id, request)
    transfer.hasPlace = !transfer.isWaiting
    if transfer.isWaiting {
      transfer.timer = timers.set(
        at: purpose.isKeepAlive(request) ? min(transfer.deadline, now.adding(keepAlivePatience)) : transfer.deadline,
        .transfer(id))
    } else {
      transfer.timer = timers.set(at: firstTimer(transfer, now), .transfer(id))
      startTransfer(id, request)
    }
    return id
  }

  /// A keep-alive has waited for long. Where answers come, it waits on for a while: it has only others before it, and a burst that the origin is getting
  /// through would be made slower by more connections. Then, or where none come, it goes although every place is taken.
  private func waitedLong(_ id: TransferID, _ transfer: Transfer, _ now: Milliseconds) {
    let last = transfer.askedAt.adding(min(keepAlivePatienceMax, transfer.timeout / 4))
    guard now < last, queue.hasAnswered(transfer.request.endpoint.origin, since: now.since(keepAlivePatience)) else {
      return startWithoutPlace(id, transfer, now)
    }
    transfer.timer = timers.set(at: min(last, now.adding(keepAlivePatience)), .transfer(id))
  }

  /// It waited long enough: it goes although every place is taken.
  private func startWithoutPlace(_ id: TransferID, _ transfer: Transfer, _ now: Milliseconds) {
    _ = queue.withdraw(id, transfer.request.endpoint.origin)
    transfer.isWaiting = false
    transfer.waited = now.since(transfer.askedAt)
    transfer.deadline = now.adding(transfer.timeout)
    transfer.timer = timers.set(at: transfer.deadline, .transfer(id))
    startTransfer(id, transfer.request)
  }

  /// Connections of an origin that let a request down are not used again until a fresh one was answered.
  private func startTransfer(_ id: TransferID, _ request: HTTPRequest) {
    startTransfer(id, request, isFresh: suspects.contains(request.endpoint.origin))
  }

  private func judge(_ transfer: Transfer, isTrusted: Bool) {
    let origin = transfer.request.endpoint.origin
    if isTrusted {
      if !suspects.isEmpty { suspects.removeAll { $0 == origin } }
    } else if !suspects.contains(origin) {
      suspects.append(origin)
    }
  }

  private func firstTimer(_ transfer: Transfer, _ now: Milliseconds) -> Milliseconds {
    min(now.adding(stallTime), transfer.deadline)
  }

  func transferTimerFired(_ id: TransferID) {
    guard let transfer = transfers[id] else { return }
    let now = clock.now
    if now < transfer.deadline {
      if transfer.isWaiting { return waitedLong(id, transfer, now) }
      transfer.timer = timers.set(at: transfer.deadline, .transfer(id))
      queue.stalled(transfer.request.endpoint.origin)
      giveUpPlace(transfer)
      return
    }
    transfer.timer = nil
    let wasWaiting = transfer.isWaiting
    let mayHaveReachedServer = abandonTransfer(id)
    if !wasWaiting { judge(transfer, isTrusted: false) }
    let message =
      wasWaiting ? "the request found no place among those under way" : "no answer within \(transfer.timeout) ms"
    reply(transfer, .failure(WireFailure(.timeout, message: message, mayHaveTakenEffect: mayHaveReachedServer)))
  }

  /// Ends a request without telling anybody. Answers whether the server may have read it.
  @discardableResult
  func abandonTransfer(_ id: TransferID) -> Bool {
    guard let transfer = transfers.remove(id) else { return false }
    timers.cancel(transfer.timer)
    if transfer.isWaiting {
      _ = queue.withdraw(id, transfer.request.endpoint.origin)
      return false
    }
    let mayHaveReachedServer = cancelTransfer(id)
    giveUpPlace(transfer)
    return mayHaveReachedServer
  }

  func transferEnded(_ finished: FinishedTransfer) {
    guard let transfer = transfers.remove(finished.id) else { return }
    timers.cancel(transfer.timer)
    switch finished.outcome {
    case .response(let response):
      judge(transfer, isTrusted: true)
      let isGood = (200..<300).contains(response.status)
      queue.answered(transfer.request.endpoint.origin, after: isGood ? finished.microseconds : nil, now: clock.now)
    case .failure: judge(transfer, isTrusted: false)
    }
    giveUpPlace(transfer)
    reply(transfer, finished.outcome)
  }

  private func giveUpPlace(_ transfer: Transfer) {
    if transfer.hasPlace {
      transfer.hasPlace = false
      queue.free(transfer.request.endpoint.origin)
    }
    // Also where it had none: its answer may have opened one.
    letNextGo(transfer.request.endpoint.origin)
  }

  /// Nobody who waits is sent before `body` is done.
  func holdBack(_ body: () -> Void) {
    holdingBack += 1
    body()
    holdingBack -= 1
    guard holdingBack == 0 else { return }
    let origins = heldBack
    heldBack = []
    for origin in origins { letNextGo(origin) }
  }

  private func letNextGo(_ origin: [UInt8]) {
    guard holdingBack == 0 else {
      if !heldBack.contains(origin) { heldBack.append(origin) }
      return
    }
    while let next = queue.next(origin) {
      guard let waiting = transfers[next] else {
        queue.free(origin)
        continue
      }
      waiting.isWaiting = false
      waiting.waited = clock.now.since(waiting.askedAt)
      waiting.hasPlace = true
      waiting.deadline = clock.now.adding(waiting.timeout)
      timers.cancel(waiting.timer)
      waiting.timer = timers.set(at: firstTimer(waiting, clock.now), .transfer(next))
      startTransfer(next, waiting.request)
    }
  }

  func reply(_ transfer: Transfer, _ outcome: HTTPOutcome) {
    logReply(transfer, outcome)
    switch transfer.purpose {
    case .ssm(let playback, let request, let call):
      let decoded = ReplyDecoder.ssm(outcome, call, hiding: transfer.request.tokens)
      ssmReplied(playback, request, call, decoded, queueDelay: transfer.waited)
    case .license(let playback, let request, let license):
      licenseReplied(playback, request, license, outcome, transfer.request.tokens)
    case .certificate(let source): certificateReplied(source, outcome)
    case .load(let playback, let job, let step): loadReplied(playback, job, step, outcome)
    }
  }

  private func logReply(_ transfer: Transfer, _ outcome: HTTPOutcome) {
    guard wants(.debug) else { return }
    var line = name(transfer)
    line.add(": ")
    switch outcome {
    case .response(let response):
      line.add("HTTP ")
      line.add(UInt64(clamping: response.status))
    case .failure(let failure): line.add(failure.message)
    }
    line.add(" after ")
    line.add(clock.now.since(transfer.askedAt))
    line.add(" ms")
    tell(.debug, line)
  }

  private func name(_ transfer: Transfer) -> LogLine {
    switch transfer.purpose {
    case .ssm(let playback, _, .setup): return name(playback, "set-up")
    case .ssm(let playback, _, .heartbeat): return name(playback, "heartbeat")
    case .ssm(let playback, _, .teardown): return name(playback, "teardown")
    case .license(let playback, _, _): return name(playback, "licence")
    case .certificate: return LogLine("certificate")
    case .load(let playback, _, .entitlement): return name(playback, "entitlement")
    case .load(let playback, _, .key): return name(playback, "key")
    }
  }
}
