internal import CPlatform
package import UsherCore

package struct EngineOptions {
  package var isManualClock = false
  package var isPumped = false
  /// By how many milliseconds a timer may be late, so that several timers run together. The manual clock ignores this.
  package var timerSlack: Milliseconds = 0
  /// Whether requests have the header `traceparent`.
  package var sendsTraceParent = false
  package var callbackThreadsMax = 16
  /// How many requests to one origin may be in flight: the first number applies to an origin that replies at once, the
  /// second to a slow origin.
  package var requestsPerOriginMin = 16
  package var requestsPerOriginMax = 512
  /// How many requests of the context may be in flight, and how many connections it may have.
  package var connectionsMax = 1 << 20
  package var logLevel = LogLevel.info.rawValue
  package var transport = TransportOptions()
  /// Whether http URLs without TLS may have any host. Otherwise only loopback hosts are allowed.
  package var allowsInsecureHTTP = false
  /// `registerQuestion` registers a question and returns its completion id; `unregisterQuestion` makes the id stale.
  package var registerQuestion: ((HostQuestion) -> UInt64)?
  package var unregisterQuestion: ((UInt64) -> Void)?
  /// Keeps recovery records of the sessions outside the journal; nil: no records are kept outside the journal.
  package var recordKeeper: (any RecordKeeper)?
  /// The journal of the context; nil: it has none.
  package var journal: JournalOptions?
  /// The process that tears the sessions down if this process dies. That process can read the records of
  /// `recordKeeper`. nil: there is no such process.
  package var guardian: Guardian?
  /// How long the process may wait at its exit until the context is closed; 0: the exit does not close the context.
  package var closeAtExit: Milliseconds = 0
  /// A function that the engine calls when it has ended; nil: none.
  package var onEnd: ((Engine) -> Void)?
  /// A function that tells the host, on the calling thread, why the library refuses a call; nil: none.
  package var tellRefusal: ((Status, String) -> Void)?
  package init() {}
}

/// One context and its I/O thread. Only this thread changes the players and playbacks of the context; other threads
/// `submit` commands to it. The engine has the loop, the clock, the timers, the tables of players and playbacks, the
/// servers to which it keeps connections ready, and the guardian; commands, replies, requests, host code, secrets,
/// slots, events and closing belong to separate types.
package final class Engine {
  package let options: EngineOptions
  let clock: Clock
  /// Reports when the I/O thread and the callback threads have nothing to do; tests wait for that.
  let idle: IdleMonitor
  package let calls: HostCalls
  let transport: any Transport
  /// How many commands may wait in the queue. A thread that submits another command blocks until there is room.
  private static var commandsMost: Int { 4096 }
  /// How many commands run in one turn of the loop, so that commands do not delay replies and timers.
  private static var commandsPerTurn: Int { 128 }
  private let commands = CommandQueue(most: commandsMost)
  /// The lock for commands that run after the I/O thread has ended, on the threads that submitted them.
  private let afterEnd = Monitor()
  private var threadID: UInt64 = 0

  // Only the I/O thread uses the properties from here on.
  let timers = Timers()
  let meter = Meter()
  let requests: RequestDispatcher
  let events: EventSink
  let closing: ContextClosing
  var slots = SlotLedger()
  var steps = StepQueue()
  var secrets: ContextSecrets
  var playbacks = PlaybackTable()
  var players = IDTable<PlayerMachine<PlaybackID>>()
  /// The servers to which the host wants connections before a request needs them.
  var readyOrigins: [ReadyOrigin] = []
  private var isStopping = false
  private let replies: ReplyReader
  let recordKeeper: (any RecordKeeper)?
  /// The sessions of this context whose teardown got no answer, oldest first.
  var unanswered: [LeftSession] = []
  /// Gives back the sessions that dead processes have left in the journal. nil: the context has no journal.
  let recovery: Recovery?
  let guardian: Guardian?
  var missingThreads = MissingThreads()
  private var interruptions = InterruptionWatch()

  /// Makes an engine that uses libcurl. Returns nil if the system or libcurl refuses something that the engine needs;
  /// in this case no descriptor stays open.
  package static func make(_ options: EngineOptions) -> Engine? {
    let kept = max(64, options.requestsPerOriginMax)
    guard
      let transport = CurlTransport.make(
        options: options.transport, keptMax: kept, connectionsMax: options.connectionsMax)
    else { return nil }
    let idle = IdleMonitor()
    guard options.isPumped else {
      return Engine(options, transport, idle, HostCalls(threadsMax: options.callbackThreadsMax, idle))
    }
    guard let pump = PumpedExecutor.make(onChange: { idle.callbackEnded(left: $0) }) else {
      transport.shutDown()
      return nil
    }
    return Engine(options, transport, idle, HostCalls(pump: pump, idle))
  }

  /// Makes an engine for a test, which supplies the transport and may supply the executor.
  convenience init(_ options: EngineOptions, _ transport: any Transport, executor: (any CallbackExecutor)? = nil) {
    let idle = IdleMonitor()
    let threadsMax = options.callbackThreadsMax
    let calls = executor.map { HostCalls(executor: $0, idle) } ?? HostCalls(threadsMax: threadsMax, idle)
    self.init(options, transport, idle, calls)
  }

  private init(_ options: EngineOptions, _ transport: any Transport, _ idle: IdleMonitor, _ calls: HostCalls) {
    let clock = Clock(isManual: options.isManualClock)
    self.options = options
    self.transport = transport
    self.idle = idle
    self.clock = clock
    closing = ContextClosing(timers: timers, clock: clock)
    self.calls = calls
    recordKeeper = options.recordKeeper
    recovery = options.journal.map { Recovery(Journal($0)) }
    guardian = options.guardian
    replies = ReplyReader(transport, clock)
    secrets = ContextSecrets(proxy: options.transport.proxy)
    events = EventSink(calls: calls, clock: clock, logLevel: options.logLevel)
    requests = RequestDispatcher(
      transport: transport, timers: timers, clock: clock, meter: meter, httpTimeout: options.transport.httpTimeout,
      queue: RequestQueue(
        least: min(options.requestsPerOriginMin, options.requestsPerOriginMax), most: options.requestsPerOriginMax,
        connectionsMax: options.connectionsMax))
    if options.sendsTraceParent { requests.traceContext = TraceContext() }
  }

  /// Starts the I/O thread.
  package func start() -> Bool {
    let me = Unmanaged.passRetained(self)
    guard platform_thread_start(runEngineThread, me.toOpaque(), 0, &threadID) == 0 else {
      me.release()
      transport.shutDown()
      return false
    }
    calls.threads?.setOnStarved { self.submit { self.threadIsMissing() } }
    return true
  }

  /// Any thread: runs `command` on the I/O thread, in the order of submission. If the queue of commands is full, the
  /// calling thread waits.
  package func submit(_ command: @escaping () -> Void) { submit(noting: {}, command) }

  /// Any thread: does the same as `submit`, and calls `note` under the lock of the command queue. `note` records that
  /// the host may send no more requests or answers. So a request or an answer of the host either comes before this
  /// command in the queue, or is refused.
  @inline(never)
  func submit(noting note: () -> Void, _ command: @escaping () -> Void) {
    idle.noteActivity()
    let isAllowed = { () -> Bool in
      note()
      return true
    }
    if commands.append(command, if: isAllowed, wake: { transport.wake() }) == .ended { runAfterEnd(command) }
  }

  /// Any thread: does the same as `submit` if `isAllowed`, called under the lock of the command queue, returns true.
  /// - Returns: false if the command will not run: it is not allowed, or the I/O thread has ended.
  @inline(never)
  func submit(if isAllowed: () -> Bool, _ command: @escaping () -> Void) -> Bool {
    idle.noteActivity()
    return commands.append(command, if: isAllowed, wake: { transport.wake() }) == .taken
  }

  /// Any thread: does the same as `submit`, but drops the command if the I/O thread has ended. For commands that use
  /// the transport, or add observers.
  /// - Returns: false if the command will not run.
  func submitUnlessEnded(_ command: @escaping () -> Void) -> Bool { submit(if: { true }, command) }

  /// Lets the I/O thread run a request of the host for a playback. Any thread may call this.
  /// - Returns: false if the host has asked to close the playback; then the request does not run. After the
  ///   close, the host learns only how its earlier requests and the session ended, and last PLAYBACK_CLOSED.
  @inline(never)
  func submit(for playback: PlaybackShared, _ command: @escaping () -> Void) -> Bool {
    submit(if: { isOpen(playback) }, command)
  }

  /// Any thread: whether the playback is open for the host: the host has asked to close neither the playback nor the
  /// context. A caller that then queues a command must hold the lock of the command queue. Otherwise the host may ask
  /// to close before the command is in the queue.
  package func isOpen(_ playback: PlaybackShared) -> Bool { !playback.isCloseRequested && !closing.isRequested }

  /// Runs a command that was submitted after the I/O thread had ended. The engine has no playbacks or players any more,
  /// so the command does not find its player or playback, and reports this in its result. If the command calls host
  /// code, the call runs on this thread, outside the lock.
  private func runAfterEnd(_ command: () -> Void) {
    let jobs = afterEnd.locked { () -> [() -> Void] in
      command()
      return calls.takeRefused()
    }
    for job in jobs { withCallbackMark(job) }
    idle.becameIdle(transfers: 0)
  }

  var hasCommands: Bool { !commands.isEmpty }

  /// Runs `body` on the I/O thread and waits until `body` has ended. Must not be called on the I/O thread, which would
  /// wait for itself.
  package func sync<Value>(_ body: @escaping () -> Value) -> Value {
    let wait = Wait<Value>()
    submit { wait.end(body()) }
    return wait.wait()
  }

  fileprivate func run() {
    while !isStopping {
      runCommands(atMost: Self.commandsPerTurn)
      replies.handle(for: self)
      fireTimers()
      startMissingThreads()
      if let guardian { tend(guardian) }
      if isStopping { break }
      if commands.hasTaken || hasCommands { replies.readAll(for: self) } else { waitForWork() }
    }
    KillPoint.pass("loop ended")
    finish()
    guardian?.end()
    transport.shutDown()
  }

  private func waitForWork() {
    idle.becameIdle(transfers: requests.transfers.count)
    let next = timers.next().map { $0.adding(options.timerSlack) }
    // This wait may end before `next`, because the loop must try again to start a thread or a guardian.
    let isLimited = missingThreads.retryAt != nil || guardian?.tendAt != nil
    replies.wait(until: wakeUp(next.flatMap { clock.bootTime(of: $0) }), isLimited ? nil : next)
    idle.becameBusy()
    noteInterruption(interruptions.afterWait(until: next, now: clock.now))
  }

  private func runCommands(atMost most: Int) {
    commands.take()
    for _ in 0..<most where !commands.runNext() { return }
  }

  /// Only a command calls this. In each turn, the loop calls `body` for some of these playbacks. Later commands wait
  /// until the loop has called `body` for all of them.
  func perform(on ids: [PlaybackID], _ body: @escaping (PlaybackEntry) -> Void) {
    guard !ids.isEmpty else { return }
    commands.begin(
      CommandRound(ids: ids) { id in
        if let entry = self.playbacks[id] { body(entry) }
      })
  }

  /// Sends the keep-alives of active sessions that are due. This function runs no other timers: before the other timers
  /// run, the loop must handle all replies that arrived in time.
  func sendDueKeepAlives() {
    let now = clock.now
    for id in playbacks.sortedIDs {
      guard let entry = playbacks[id], entry.machine.isKeepAliveDue(now: now) else { continue }
      timers.cancel(entry.sessionTimer)
      sessionTimerFired(id)
    }
  }

  /// Runs the timers that are due. If this thread was late, it first handles all replies that had arrived when the
  /// timer was due: a reply that arrived in time does not count as missing.
  func fireTimers() {
    let now = clock.now
    while let next = timers.next(), next <= now {
      guard next <= replies.readUntil else {
        replies.readAll(for: self)
        continue
      }
      KillPoint.pass("timer")
      guard !timers.postpone(dueAt: next, now: now), let target = timers.popDue(now: next) else { continue }
      switch target {
      case .session(let id): sessionTimerFired(id)
      case .transfer(let id): handle(requests.timerFired(id))
      case .ask(let ask): ask.expire()
      case .license(let playback, let license): licenseTimedOut(playback, license)
      case .certificate(let source, let waiter): certificateTimedOut(source, waiter)
      case .wait(let wait, let playback): waitTimedOut(wait, playback)
      case .token(let id): tokenWaitEnded(id)
      case .load(let id, let job): loadTimedOut(id, job)
      case .recovery(let session): recoveryTimerFired(session)
      case .connection(let origin): tend(origin)
      }
    }
  }

  /// Handles a request that the transport has finished.
  func handle(_ finished: FinishedTransfer) { handle(requests.ended(finished)) }

  /// Passes a reply to the owner of its request; does nothing for nil.
  func handle(_ reply: RequestDispatcher.Reply?) {
    guard let reply else { return }
    KillPoint.pass("reply")
    if events.logs(.debug) { events.logReply(reply, playbacks) }
    if events.logs(.trace) { events.traceReply(reply) }
    let secrets = ReplySecrets.of(self, reply.transfer)
    switch reply.transfer.purpose {
    case .ssm(let playback, let request, let call):
      let decoded = ReplyDecoder.ssm(reply.outcome, call, hiding: secrets)
      ssmReplied(playback, request, call, decoded, queueDelay: reply.transfer.queueDelay)
    case .license(let playback, let request, let license):
      licenseReplied(playback, request, license, reply.outcome, hiding: secrets)
    case .connection(let origin): originAnswered(origin, reply.outcome)
    case .certificate(let source): certificateReplied(source, reply.outcome, hiding: secrets)
    case .load(let playback, let job, let step): loadReplied(playback, job, step, reply.outcome, hiding: secrets)
    case .recovery(let session, let request):
      recoveryReplied(session, request, ReplyDecoder.ssm(reply.outcome, .teardown, hiding: secrets))
    }
  }

  /// Called when the loop has ended, while the callback threads still run: completes all pending requests, ends all
  /// waits, and removes everything.
  private func finish() {
    _ = closing.begin()
    // From here on the executor must not report a missing thread. The report submits a command. After `close` below,
    // such a command waits for the lock `afterEnd`, which this thread holds, so this thread would wait for itself. No
    // missing thread is needed any more: the thread that ends the context runs the jobs that are left.
    calls.threads?.setOnStarved(nil)
    afterEnd.locked {
      commands.close()
      while commands.hasTaken || hasCommands { runCommands(atMost: .max) }
      endPending()
      let questions = timers.questions
      forgetEverything()
      // Until now the engine accepted answers to the questions that stay open after a close (customer SSM), also after
      // it had removed their playbacks. From here on the ids of all questions are stale, so the host can no longer
      // answer them.
      for question in questions { question.expire(.closed) }
    }
    idle.becameIdle(transfers: 0)
  }

  private func endPending() {
    for id in playbacks.sortedIDs {
      guard let entry = playbacks[id] else { continue }
      endLoads(entry, .closed)
      for question in entry.questions where question.atClose != .staysOpen { question.expire(.closed) }
      for wait in entry.setupWaits { end(wait, .closed) }
      reportUnfinished(entry)
      endCloseWaits(entry)
    }
    closing.endAll()
    let left = requests.transfers.ids
    for id in left {
      if case .certificate(let source) = requests.transfers[id]?.purpose { endCertificate(source, UsherError(.closed)) }
    }
    for id in left { requests.abandon(id) }
  }

  private func forgetEverything() {
    playbacks.removeAll()
    players = IDTable()
    events.close()
    timers.removeAll()
    dropExpired()
    unanswered = []
    recovery?.journal.end()
  }

  /// Ends the I/O thread, waits until the queued callbacks have run, and ends their threads. Must not be called in a
  /// callback.
  package func stop() {
    KillPoint.pass("stop")
    submit { self.isStopping = true }
    platform_thread_join(threadID)
    calls.shutDown()
  }
}

private func runEngineThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  beginThread("usher-io")
  if let argument { Unmanaged<Engine>.fromOpaque(argument).takeRetainedValue().run() }
  return nil
}
