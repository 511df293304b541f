internal import CPlatform
internal import Synchronization
internal import UsherCore

package struct EngineOptions {
  package var isManualClock = false
  package var isPumped = false
  package var callbackThreadsMax = 16
  /// Under way at once: to an origin that answers at once, and to one that takes its time.
  package var requestsPerOriginMin = 16
  package var requestsPerOriginMax = 512
  package var logLevel = LogLevel.info.rawValue
  package var transport = TransportOptions()
  /// Plain http also off this machine.
  package var allowsInsecureHTTP = false
  /// Gives a question the number the host answers with, and takes it back.
  package var nameAsk: ((Ask) -> UInt64)?
  package var forgetAsk: ((UInt64) -> Void)?
  package init() {}
}

/// One context's I/O thread: everything that happens to its playbacks happens here, one thing at a time. Other threads only `submit`.
package final class Engine {
  enum TimerTarget {
    case session(PlaybackID)
    case transfer(TransferID)
    case ask(Ask)
    case license(PlaybackID, LicenseID)
    case certificate(CertificateSource, CertificateWaiter)
    case wait(Wait<Status>)
    case token(PlaybackID)
    case load(PlaybackID, LoadingJob)
  }

  package let options: EngineOptions
  package let executor: any CallbackExecutor
  /// The same, in pumped mode.
  package let pump: PumpedExecutor?
  let clock: Clock
  private let transport: any Transport
  private let mailbox = Monitor()
  private var commands: [() -> Void] = []
  private var isStopping = false
  /// The I/O thread has ended; what is submitted now runs on the submitting thread.
  private var isGone = false
  private let afterEnd = Monitor()
  private var orphanedJobs: [() -> Void] = []
  private var threadID: UInt64 = 0

  /// What testers wait on: whether the I/O thread has nothing left to do.
  let quiet: Quiet

  // The I/O thread's own.
  var timers = TimerHeap<TimerTarget>()
  var playbacks = IDTable<PlaybackEntry>()
  var players = IDTable<PlayerMachine<PlaybackID>>()
  var transfers = Slots<Transfer>()
  var queue: RequestQueue
  /// Who waits for a place gets none: playbacks are closing, and what they have waiting is to be withdrawn first.
  var holdingBack = 0
  /// Where places came free meanwhile.
  var heldBack: [[UInt8]] = []
  var observers: [Observer] = []
  var log: ((LogLevel, String) -> Void)?
  var eventSequence: UInt64 = 0
  /// Origins whose kept connections let a request down lately.
  var suspects: [[UInt8]] = []
  /// Playbacks whose slots are being given back.
  var givingBack: Set<PlaybackID> = []
  /// Playbacks whose set-up was refused while `givingBack` was not empty.
  var contested: Set<PlaybackID> = []
  /// Counts the slots given back, so that a set-up knows whether one was while it was on its way.
  var slotsGivenBack: UInt64 = 0
  var isClosing = false
  /// Playbacks that are not closed yet, or still give back a slot whose token came late.
  var openCount = 0
  /// Playbacks that are closed, while a reply is on its way that may bring a slot's token.
  var awaitedCount = 0
  /// Real time of the first wish to close; 0: none yet.
  let closingBegan = Atomic<Int64>(0)
  var closeWaits: [Wait<Status>] = []

  /// - Parameters:
  ///   - transport: nil for libcurl.
  ///   - executor: nil for callback threads, or a pump.
  package init?(
    options: EngineOptions, transport seam: (any Transport)? = nil, executor above: (any CallbackExecutor)? = nil
  ) {
    guard
      let transport = seam
        ?? CurlTransport(options: options.transport, connectionsMax: max(64, options.requestsPerOriginMax))
    else { return nil }
    let quiet = Quiet()
    self.quiet = quiet
    self.options = options
    self.transport = transport
    clock = Clock(isManual: options.isManualClock)
    queue = RequestQueue(
      least: min(options.requestsPerOriginMin, options.requestsPerOriginMax), most: options.requestsPerOriginMax)
    if options.isPumped {
      guard let pumped = PumpedExecutor(onChange: { quiet.callbackEnded(left: $0) }) else { return nil }
      pump = pumped
      executor = pumped
    } else {
      pump = nil
      executor = above ?? ThreadedExecutor(cap: options.callbackThreadsMax, onChange: { quiet.callbackEnded(left: $0) })
    }
  }

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
    quiet.stir()
    let isAccepted = mailbox.locked { () -> Bool in
      if isGone { return false }
      commands.append(command)
      // Under the lock: the transport is gone once `isGone` is set. With more of them there, it was woken already.
      if commands.count == 1 { transport.wake() }
      return true
    }
    if !isAccepted { runAfterEnd(command) }
  }

  /// A call that raced with the end of the context: everything is closed and empty by now, so the command finds nothing and says so. Host code
  /// it calls runs on the calling thread, after the lock.
  private func runAfterEnd(_ command: () -> Void) {
    let jobs = afterEnd.locked { () -> [() -> Void] in
      command()
      defer { orphanedJobs = [] }
      return orphanedJobs
    }
    for job in jobs { job() }
    quiet.idle(transfers: 0)
  }

  var hasCommands: Bool { mailbox.locked { !commands.isEmpty } }

  /// Runs `body` on the I/O thread and waits for it. Not from a callback, and not from the I/O thread.
  package func sync<Value>(_ body: @escaping () -> Value) -> Value {
    let wait = Wait<Value>()
    submit { wait.end(body()) }
    return wait.wait()
  }

  /// Host code, in the order of its lane.
  func call(_ lane: UInt64, _ job: @escaping () -> Void) {
    quiet.stir()
    if !executor.enqueue(lane, job) { orphanedJobs.append(job) }
  }

  fileprivate func run() {
    while !isStopping {
      runCommands()
      for finished in transport.takeFinished() { transferEnded(finished) }
      fireTimers()
      if isStopping || hasCommands { continue }
      quiet.idle(transfers: transfers.count)
      transport.wait(until: timers.next().flatMap { clock.bootTime(of: $0) })
      quiet.busy()
    }
    wrapUp()
    transport.shutDown()
  }

  private func runCommands() {
    let taken = mailbox.locked { () -> [() -> Void] in
      defer { commands = [] }
      return commands
    }
    for command in taken { command() }
  }

  func fireTimers() {
    let now = clock.now
    while let target = timers.popDue(now: now) {
      switch target {
      case .session(let id): sessionTimerFired(id)
      case .transfer(let id): transferTimerFired(id)
      case .ask(let ask): ask.expire()
      case .license(let playback, let license): licenseTimedOut(playback, license)
      case .certificate(let source, let waiter): certificateTimedOut(source, waiter)
      case .wait(let wait): wait.end(.timeout)
      case .token(let id): tokenWaitEnded(id)
      case .load(let id, let job): loadTimedOut(id, job)
      }
    }
  }

  /// Lets go of everything, while callback threads still run.
  private func wrapUp() {
    isClosing = true
    afterEnd.locked {
      mailbox.locked { isGone = true }
      runCommands()
      endWhatWaits()
      let asks = playbacks.sortedIDs.flatMap { playbacks[$0]?.customerAsks ?? [] }
      letGo()
      // Nobody listens any more; their numbers go stale, and what they hold is let go of.
      for ask in asks { ask.expire(.closed) }
    }
    quiet.idle(transfers: 0)
  }

  private func endWhatWaits() {
    for id in playbacks.sortedIDs {
      guard let entry = playbacks[id] else { continue }
      entry.tokenAsk?.expire(.closed)
      entry.payloadAsk?.expire(.closed)
      for ask in entry.hookAsks { ask.expire(.closed) }
      endLoads(entry, .closed)
      for wait in entry.setupWaits + entry.closeWaits { wait.end(.closed) }
    }
    for wait in closeWaits { wait.end(.closed) }
    let left = transfers.ids
    for id in left {
      if case .certificate(let source) = transfers[id]?.purpose { endCertificate(source, UsherError(.closed)) }
    }
    for id in left { abandonTransfer(id) }
  }

  private func letGo() {
    playbacks = IDTable()
    players = IDTable()
    observers = []
    log = nil
    timers = TimerHeap()
  }

  func startTransfer(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool) {
    transport.start(id, request, isFresh: isFresh)
  }
  func cancelTransfer(_ id: TransferID) -> Bool { transport.cancel(id) }

  /// Ends the I/O thread, lets the callbacks run out, and ends their threads. Not from a callback.
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
