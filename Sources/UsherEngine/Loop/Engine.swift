internal import CPlatform
package import UsherCore

package struct EngineOptions {
  package var isManualClock = false
  package var isPumped = false
  package var callbackThreadsMax = 16
  /// The limit of requests in flight to one origin: where it replies at once, and where it is slow.
  package var requestsPerOriginMin = 16
  package var requestsPerOriginMax = 512
  package var logLevel = LogLevel.info.rawValue
  package var transport = TransportOptions()
  /// Plain http also off this machine.
  package var allowsInsecureHTTP = false
  /// Registers a question under a completion id, and takes the id back.
  package var registerQuestion: ((HostQuestion) -> UInt64)?
  package var unregisterQuestion: ((UInt64) -> Void)?
  package init() {}
}

/// One context's I/O thread: everything that happens to its players and playbacks happens here, one thing at a time.
/// Other threads only `submit`. It has the loop, the clock, the timers and the two tables; requests, slots, events and
/// closing have owners of their own.
package final class Engine {
  package let options: EngineOptions
  /// Where host code runs in pumped mode.
  package let pump: PumpedExecutor?
  let clock: Clock
  /// Knows when the I/O thread and the callback threads have nothing to do; testers wait for that.
  let idle: IdleMonitor
  let calls: HostCalls
  private let transport: any Transport
  private let commands = CommandQueue()
  /// Held by a command that runs after the I/O thread has ended, on the thread that submitted it.
  private let afterEnd = Monitor()
  private var threadID: UInt64 = 0

  // The I/O thread's own.
  let timers = Timers()
  let requests: RequestDispatcher
  let events: EventSink
  let closing = ContextClosing()
  var slots = SlotLedger()
  var steps = StepQueue()
  var playbacks = IDTable<PlaybackEntry>()
  var players = IDTable<PlayerMachine<PlaybackID>>()
  private var isStopping = false

  /// - Parameters:
  ///   - transport: nil for libcurl.
  ///   - executor: nil for callback threads, or a pump.
  package init?(
    options: EngineOptions, transport given: (any Transport)? = nil,
    executor givenExecutor: (any CallbackExecutor)? = nil
  ) {
    guard
      let transport = given
        ?? CurlTransport(options: options.transport, connectionsMax: max(64, options.requestsPerOriginMax))
    else { return nil }
    let idle = IdleMonitor()
    let clock = Clock(isManual: options.isManualClock)
    let executor: any CallbackExecutor
    if options.isPumped {
      guard let pumped = PumpedExecutor(onChange: { idle.callbackEnded(left: $0) }) else { return nil }
      pump = pumped
      executor = pumped
    } else {
      pump = nil
      executor =
        givenExecutor ?? ThreadedExecutor(cap: options.callbackThreadsMax, onChange: { idle.callbackEnded(left: $0) })
    }
    self.options = options
    self.transport = transport
    self.idle = idle
    self.clock = clock
    calls = HostCalls(executor: executor, idle: idle)
    events = EventSink(calls: calls, clock: clock, logLevel: options.logLevel)
    requests = RequestDispatcher(
      transport: transport, timers: timers, clock: clock, httpTimeout: options.transport.httpTimeout,
      queue: RequestQueue(
        least: min(options.requestsPerOriginMin, options.requestsPerOriginMax), most: options.requestsPerOriginMax))
  }

  package var executor: any CallbackExecutor { calls.executor }

  /// Starts the I/O thread.
  package func start() -> Bool {
    let me = Unmanaged.passRetained(self)
    guard platform_thread_start(runEngineThread, me.toOpaque(), 0, &threadID) == 0 else {
      me.release()
      transport.shutDown()
      return false
    }
    return true
  }

  /// Any thread: runs `command` on the I/O thread, in the order of submission.
  package func submit(_ command: @escaping () -> Void) {
    idle.noteActivity()
    if !commands.append(command, wake: { transport.wake() }) { runAfterEnd(command) }
  }

  /// A call that raced with the end of the context: everything is closed and empty by now, so the command finds nothing
  /// and reports that. Host code it calls runs on the calling thread, outside the lock.
  private func runAfterEnd(_ command: () -> Void) {
    let jobs = afterEnd.locked { () -> [() -> Void] in
      command()
      return calls.takeRefused()
    }
    for job in jobs { job() }
    idle.becameIdle(transfers: 0)
  }

  var hasCommands: Bool { !commands.isEmpty }

  /// Runs `body` on the I/O thread and waits for it. Not from a callback, and not from the I/O thread.
  package func sync<Value>(_ body: @escaping () -> Value) -> Value {
    let wait = Wait<Value>()
    submit { wait.end(body()) }
    return wait.wait()
  }

  fileprivate func run() {
    while !isStopping {
      runCommands()
      for finished in transport.takeFinished() { handle(requests.ended(finished)) }
      fireTimers()
      if isStopping || hasCommands { continue }
      idle.becameIdle(transfers: requests.transfers.count)
      transport.wait(until: timers.next().flatMap { clock.bootTime(of: $0) })
      idle.becameBusy()
    }
    finish()
    transport.shutDown()
  }

  private func runCommands() { for command in commands.takeAll() { command() } }

  func fireTimers() {
    let now = clock.now
    while let target = timers.popDue(now: now) {
      switch target {
      case .session(let id): sessionTimerFired(id)
      case .transfer(let id): handle(requests.timerFired(id))
      case .ask(let ask): ask.expire()
      case .license(let playback, let license): licenseTimedOut(playback, license)
      case .certificate(let source, let waiter): certificateTimedOut(source, waiter)
      case .wait(let wait): wait.end(.timeout)
      case .token(let id): tokenWaitEnded(id)
      case .load(let id, let job): loadTimedOut(id, job)
      }
    }
  }

  /// Hands a reply to whom its request was for; nil: there is none.
  func handle(_ reply: RequestDispatcher.Reply?) {
    guard let reply else { return }
    events.logReply(reply)
    let secrets = reply.transfer.request.tokens
    switch reply.transfer.purpose {
    case .ssm(let playback, let request, let call):
      let decoded = ReplyDecoder.ssm(reply.outcome, call, hiding: secrets)
      ssmReplied(playback, request, call, decoded, queueDelay: reply.transfer.queueDelay)
    case .license(let playback, let request, let license):
      licenseReplied(playback, request, license, reply.outcome, secrets)
    case .certificate(let source): certificateReplied(source, reply.outcome)
    case .load(let playback, let job, let step): loadReplied(playback, job, step, reply.outcome, secrets)
    }
  }

  /// The loop has ended: completes what is pending and forgets everything, while callback threads still run.
  private func finish() {
    _ = closing.begin()
    afterEnd.locked {
      commands.close()
      runCommands()
      let questions = playbacks.sortedIDs.flatMap { playbacks[$0]?.questions ?? [] }
      endPending()
      forgetEverything()
      // A customer's answer counts until now. From here on the numbers of all questions are stale.
      for question in questions { question.expire(.closed) }
    }
    idle.becameIdle(transfers: 0)
  }

  private func endPending() {
    for id in playbacks.sortedIDs {
      guard let entry = playbacks[id] else { continue }
      for question in entry.questions where question.atClose != .staysOpen { question.expire(.closed) }
      endLoads(entry, .closed)
      for wait in entry.setupWaits + entry.closeWaits { wait.end(.closed) }
    }
    closing.endWaits(.closed)
    let left = requests.transfers.ids
    for id in left {
      if case .certificate(let source) = requests.transfers[id]?.purpose { endCertificate(source, UsherError(.closed)) }
    }
    for id in left { requests.abandon(id) }
  }

  private func forgetEverything() {
    playbacks = IDTable()
    players = IDTable()
    events.close()
    timers.removeAll()
  }

  /// Ends the I/O thread, waits until the queued callbacks have run, and ends their threads. Not from a callback.
  package func stop() {
    submit { self.isStopping = true }
    platform_thread_join(threadID)
    executor.shutDown()
  }
}

private func runEngineThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let argument { Unmanaged<Engine>.fromOpaque(argument).takeRetainedValue().run() }
  return nil
}
