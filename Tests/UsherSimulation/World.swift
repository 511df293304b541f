import TestSupport

@testable import UsherCore
@testable import UsherEngine

/// Plays one story on the real engine. This class is the transport of the engine, and contains the simulated network,
/// head-end, host and clock. Whenever the engine's I/O thread is idle, it calls `wait`, which runs the story. So one
/// thread does everything, and a story is the same in every run.
final class World: Transport {
  struct Violation {
    let rule: String
    let text: String
  }

  let story: Story
  let keepsJournal: Bool
  let engine: Engine?
  let lanes: Lanes
  let done = Wait<Bool>()
  private let monitor = Monitor()
  private var isWoken = false
  private var helpers = 0
  var isOver = false

  var now: Milliseconds = 0
  var cursor = 0
  private var stepsNow = 0
  /// The time until which the story does not let the I/O thread run.
  var lateUntil: Milliseconds = 0
  /// Whether many events happened while the I/O thread was late. Then the coverage cannot say which of them moved a
  /// playback to another phase.
  private var isMixed = false
  private var closedAt: Milliseconds?
  var isDraining: Bool { closedAt != nil }

  // The network and the head-end.
  var headEnd: HeadEnd
  var running: [TransferID: Call] = [:]
  var network = Later<TransferID>()
  /// `arrived`: the replies in the sockets. `readable`: the replies that the engine has read but not taken yet.
  var arrived: [(id: TransferID, call: Call, outcome: HTTPOutcome)] = []
  var readable: [(id: TransferID, call: Call, outcome: HTTPOutcome)] = []
  /// Whether the engine has taken a reply whose effect `observe` has not recorded yet.
  var hasDelivered = false
  var faults: [(fault: Fault, route: Route?, share: UInt64, until: Milliseconds)] = []
  var downUntil: Milliseconds = 0
  var sent: [UInt64: UInt64] = [:]

  // The host.
  var delegates: [LicenseDelegate?] = []
  var loaders: [ResourceLoader] = []
  var habits: [(callback: Callback, habit: Habit, until: Milliseconds)] = []
  var later = Later<() -> Void>()
  var plays: [PlaybackID: Play] = [:]
  var screens: [UInt64: PlayerShared] = [:]
  var live: [Play] = []
  var openAsks: [(ask: HostQuestion, play: Play)] = []
  var openCompletions: [UInt64: (play: Play, what: String, asked: Milliseconds)] = [:]
  var nextCompletion: UInt64 = 0
  var nextContentToken: UInt64 = 0

  // State of the checks.
  var violation: Violation?
  /// The sessions that the head-end still held when the engine forgot their playback.
  var pending: [(play: Play, token: Token, at: Milliseconds)] = []
  var coverage = Coverage()
  var subject: (play: Play?, input: Input)?
  private var isTimerTurn = false
  var journal: [(at: Milliseconds, text: String)] = []

  init(_ story: Story, keepsJournal: Bool = false) {
    self.story = story
    self.keepsJournal = keepsJournal
    lanes = Lanes(cap: story.setting.cap)
    headEnd = HeadEnd(limit: story.setting.limit, period: story.setting.period, leasePeriods: 2)
    var options = EngineOptions()
    options.isManualClock = true
    options.requestsPerOriginMax = story.setting.perOrigin
    options.logLevel = LogLevel.warning.rawValue
    let seam = Seam()
    engine = Engine(options, seam, executor: lanes)
    seam.world = self
    coverage.stories = 1
  }

  /// Plays the story to its end. Returns the first violation.
  func run() -> Violation? {
    guard let engine else { return Violation(rule: "start", text: "no engine") }
    prepare(engine)
    guard engine.start() else { return Violation(rule: "start", text: "no thread") }
    _ = done.wait()
    engine.stop()
    breakCycles()
    return violation
  }

  /// Removes the closures that refer to this object, so that it can be freed.
  private func breakCycles() {
    delegates = []
    loaders = []
    later = Later()
    openAsks = []
    live = []
  }

  func log(_ text: @autoclosure () -> String) { if keepsJournal { journal.append((now, text())) } }

  func fail(_ rule: String, _ text: @autoclosure () -> String) {
    guard violation == nil, !isOver else { return }
    violation = Violation(rule: rule, text: text())
    log("VIOLATION: \(violation?.text ?? "")")
  }

  // MARK: Called by the engine's I/O thread

  func wait(until instant: Int64?) -> Bool {
    guard let engine, !isOver else {
      park()
      return false
    }
    hasDelivered = false
    // If the I/O thread was late, one turn of the loop may have started and ended a playback, so the checks must assume
    // that the engine has started every playback.
    if isMixed { for play in live { play.wasKnown = true } }
    observe(engine)
    isMixed = false
    if violation == nil { runStory(engine) }
    if violation != nil || isOver {
      isOver = true
      done.end(true)
      park()
    }
    return false
  }

  func wake() {
    monitor.locked {
      isWoken = true
      monitor.broadcast()
    }
  }

  private func park() {
    monitor.locked {
      while !isWoken { monitor.wait() }
      isWoken = false
    }
  }

  /// Runs `body`, a call that blocks until the I/O thread acts, on a new thread. The story waits until the call has
  /// woken the engine or has returned.
  func runBlocking(_ body: @escaping () -> Void) {
    // While the I/O thread does not run, the story cannot see whether the blocking call already waits for this thread.
    // So the story first lets the I/O thread run again.
    if isLate, let engine { endLateness(engine) }
    monitor.locked { helpers += 1 }
    startThread { [self] in
      body()
      monitor.locked {
        helpers -= 1
        monitor.broadcast()
      }
    }
  }

  /// Waits until a helper thread wakes the engine, or no helper thread is running. Returns whether the engine was
  /// woken.
  private func wasWoken() -> Bool {
    monitor.locked {
      while helpers > 0 && !isWoken { monitor.wait() }
      defer { isWoken = false }
      return isWoken
    }
  }

  /// Runs the events that are due, and moves the clock, until the engine has something to do.
  private func runStory(_ engine: Engine) {
    while isLate || !wasWoken() {
      guard violation == nil else { return }
      if !isLate, !arrived.isEmpty { return _ = read() }
      stepsNow += 1
      if stepsNow > 100_000 { return fail("spins", "more than 100,000 steps at the same instant") }
      lanes.free(now: now)
      if !runOneDueEvent() {
        if cursor == story.items.count, !isDraining, now >= story.end {
          closeAll(engine)
          continue
        }
        guard let next = nextInstant(engine) else { return end(engine) }
        if isLate, next >= lateUntil {
          now = lateUntil
          endLateness(engine)
          log("the I/O thread runs again; replies in the sockets: \(arrived.count)")
          return
        }
        // While the I/O thread is late, the engine cannot come to rest.
        if let closedAt, next > max(closedAt, lateUntil) + 600_000 { return fail("rest", "does not come to rest") }
        coverage.steps += 1
        stepsNow = 0
        if !pending.isEmpty { judgeLeft(isLast: false) }
        now = max(now, next)
        engine.clock.set(now)
        if !isLate, let timer = engine.timers.next(), timer <= now {
          isTimerTurn = true
          return
        }
      }
    }
  }

  /// Whether the I/O thread is late: the story does not let it run now.
  var isLate: Bool { now < lateUntil }

  /// Lets the I/O thread run again. The thread has not read the sockets since the story stopped it.
  private func endLateness(_ engine: Engine) {
    lateUntil = now
    isMixed = true
    coverage.lateReplies += arrived.count
    engine.clock.set(now)
    isTimerTurn = engine.timers.next().map { $0 <= now } ?? false
    restartKeepAliveClocks()
  }

  /// Runs one of the events that are due; the story's seed decides which event. Returns false if no event is due.
  private func runOneDueEvent() -> Bool {
    let hasJob = lanes.isReady
    let hasNetwork = (network.next ?? .max) <= now
    let hasAnswer = (later.next ?? .max) <= now
    let hasItem = cursor < story.items.count && story.items[cursor].at <= now
    let count = (hasJob ? 1 : 0) + (hasNetwork ? 1 : 0) + (hasAnswer ? 1 : 0) + (hasItem ? 1 : 0)
    guard count > 0 else { return false }
    var pick = count == 1 ? 0 : Int(mixed(story.seed, now, UInt64(stepsNow)) % UInt64(count))
    if hasJob {
      if pick == 0 {
        lanes.runOne(mixed(story.seed, now, 1))
        return true
      }
      pick -= 1
    }
    if hasNetwork {
      if pick == 0 {
        if let id = network.take() { networkDue(id) }
        return true
      }
      pick -= 1
    }
    if hasAnswer {
      if pick == 0 {
        later.take()?()
        return true
      }
      pick -= 1
    }
    cursor += 1
    perform(story.items[cursor - 1].action)
    return true
  }

  private func nextInstant(_ engine: Engine) -> Milliseconds? {
    let timer = isLate ? lateUntil : engine.timers.next() ?? .max
    var next = min(network.next ?? .max, later.next ?? .max, lanes.nextFree ?? .max, timer)
    if cursor < story.items.count {
      next = min(next, story.items[cursor].at)
    } else if !isDraining {
      next = min(next, max(now, story.end))
    }
    return next == .max ? nil : next
  }

  /// Called when no more events will come: checks that no session, playback or request is left.
  private func end(_ engine: Engine) {
    guard isDraining else { return }
    finalChecks(engine)
    isOver = true
  }

  /// Called after the last item: stops all faults and closes the context.
  func closeAll(_ engine: Engine) {
    closedAt = now
    faults = []
    habits = []
    downUntil = 0
    for play in live { noteClose(play, leave: nil) }
    subject = (nil, .contextClosed)
    log("the context is closed")
    engine.beginClosing()
  }

  // MARK: Changes since the last step

  /// Called after the engine has handled a reply, before it takes the next one or runs timers in the same turn.
  func observeReply(_ engine: Engine) {
    let isTimer = isTimerTurn
    isTimerTurn = false
    hasDelivered = false
    observe(engine)
    isTimerTurn = isTimer
  }

  private func observe(_ engine: Engine) {
    let cause = subject
    subject = nil
    let wasTimer = isTimerTurn
    isTimerTurn = false
    if wasTimer { noteExpiredAsks() }
    var index = 0
    while index < live.count {
      let play = live[index]
      let entry = engine.playbacks[play.id]
      let phase = entry.map { Phase($0) } ?? (play.wasKnown || play.timesClosed > 0 ? .gone : .unborn)
      if let cause, cause.play === play || cause.play == nil {
        note(play, cause.input, phase)
      } else if phase != play.phase {
        note(play, play.sideInput ?? (wasTimer ? .timer : .othersEnded), phase)
      } else if let input = play.sideInput {
        note(play, input, phase)
      }
      let input = cause?.play === play ? cause?.input : play.sideInput
      if phase != play.phase, play.phase.isBeat, phase.waitsForBeat, input?.isGoodBeat != true, play.lastBeat != nil {
        // The keep-alive failed. The next one must come within one period from now.
        play.lastBeat = now
      }
      play.sideInput = nil
      if phase != play.phase { log("  playback \(play.id): \(play.phase.name) → \(phase.name)") }
      play.phase = phase
      if let entry {
        play.wasKnown = true
        watch(play, entry)
        index += 1
      } else if phase == .gone {
        live.remove(at: index)
        ended(play)
      } else {
        index += 1
      }
    }
  }

  /// Counts an input for the coverage. Does nothing if many inputs came together because the I/O thread was late.
  private func note(_ play: Play, _ input: Input, _ to: Phase) {
    if isMixed || (play.phase == .unborn && play.wasPlayedLate) { return }
    coverage.add(play.phase, input, to)
  }

  private func noteExpiredAsks() {
    openAsks.removeAll { one in
      if one.ask.isOpen { return false }
      one.play.sideInput = .askTimedOut
      return true
    }
  }
}

/// Forwards the engine's calls to the `World`. This extra object is necessary because the engine needs a transport when
/// it is made, but the `World`, which is the transport, needs the engine when it is made.
private final class Seam: Transport {
  var world: World?
  func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool) { world?.start(id, request, isFresh: isFresh) }
  func cancel(_ id: TransferID) -> Bool { world?.cancel(id) ?? false }
  func wait(until instant: Int64?) -> Bool { world?.wait(until: instant) ?? false }
  func read() -> Bool { world?.read() ?? true }
  func wake() { world?.wake() }
  func takeFinished() -> [FinishedTransfer] { world?.takeFinished() ?? [] }
  func networkChanged() {}
  func isReceived(_ id: TransferID) -> Bool { false }
  func shutDown() { world = nil }
}
