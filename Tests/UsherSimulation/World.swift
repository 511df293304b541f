@testable import UsherCore
@testable import UsherEngine

/// The whole story as it goes: the real engine, and below its transport seam this: network, head-end, host and time. The engine's I/O thread comes here
/// whenever it has nothing to do (`wait`), so one thread does everything, and the same story is the same to the last request.
final class World: Transport {
  struct Violation {
    let rule: String
    let text: String
  }

  let story: Story
  let isTold: Bool
  let engine: Engine?
  let lanes: Lanes
  let done = Wait<Bool>()
  private let monitor = Monitor()
  private var isWoken = false
  private var helpers = 0
  var isOver = false

  var now: Milliseconds = 0
  var cursor = 0
  private var turnsNow = 0
  private var closedAt: Milliseconds?
  var isDraining: Bool { closedAt != nil }

  // The network and the head-end.
  var headEnd: HeadEnd
  var running: [TransferID: Call] = [:]
  var network = Later<TransferID>()
  var finished: [FinishedTransfer] = []
  var faults: [(fault: Fault, route: Route?, share: UInt64, until: Milliseconds)] = []
  var downUntil: Milliseconds = 0
  var sent: [UInt64: UInt64] = [:]

  // The host.
  var delegates: [LicenseDelegate?] = []
  var loaders: [ResourceLoader] = []
  var habits: [(callback: Callback, habit: Habit, until: Milliseconds)] = []
  var later = Later<() -> Void>()
  var plays: [PlaybackID: Play] = [:]
  var live: [Play] = []
  var openAsks: [(ask: Ask, play: Play)] = []
  var openCompletions: [UInt64: (play: Play, what: String, asked: Milliseconds)] = [:]
  var nextCompletion: UInt64 = 0
  var nextContentToken: UInt64 = 0

  // What is watched.
  var violation: Violation?
  /// Sessions that were held when their playback was gone.
  var pending: [(play: Play, session: UInt64, at: Milliseconds)] = []
  var coverage = Coverage()
  var subject: (play: Play?, input: Input)?
  private var isTimerTurn = false
  var journal: [(at: Milliseconds, text: String)] = []

  init(_ story: Story, isTold: Bool = false) {
    self.story = story
    self.isTold = isTold
    lanes = Lanes(cap: story.setting.cap)
    headEnd = HeadEnd(period: story.setting.period, limit: story.setting.limit)
    var options = EngineOptions()
    options.isManualClock = true
    options.requestsPerOriginMax = story.setting.perOrigin
    options.logLevel = LogLevel.warning.rawValue
    let seam = Seam()
    engine = Engine(options: options, transport: seam, executor: lanes)
    seam.world = self
    coverage.stories = 1
  }

  /// Plays it to its end; what broke, if anything.
  func run() -> Violation? {
    guard let engine else { return Violation(rule: "start", text: "no engine") }
    prepare(engine)
    guard engine.start() else { return Violation(rule: "start", text: "no thread") }
    _ = done.wait()
    engine.stop()
    letGo()
    return violation
  }

  /// Closures hold us, and we them.
  private func letGo() {
    delegates = []
    loaders = []
    later = Later()
    openAsks = []
    live = []
  }

  func tell(_ text: @autoclosure () -> String) { if isTold { journal.append((now, text())) } }

  func blame(_ rule: String, _ text: @autoclosure () -> String) {
    guard violation == nil, !isOver else { return }
    violation = Violation(rule: rule, text: text())
    tell("VIOLATION: \(violation?.text ?? "")")
  }

  // MARK: The engine's I/O thread comes here

  func wait(until instant: Int64?) {
    guard let engine, !isOver else { return park() }
    observe(engine)
    if violation == nil { turn(engine) }
    if violation != nil || isOver {
      isOver = true
      done.end(true)
      park()
    }
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

  /// A call that waits for the I/O thread runs on a thread of its own; we wait until it wants something of the engine, or is done.
  func aside(_ body: @escaping () -> Void) {
    monitor.locked { helpers += 1 }
    startThread { [self] in
      body()
      monitor.locked {
        helpers -= 1
        monitor.broadcast()
      }
    }
  }

  /// True: the engine has something to do.
  private func isWanted() -> Bool {
    monitor.locked {
      while helpers > 0 && !isWoken { monitor.wait() }
      defer { isWoken = false }
      return isWoken
    }
  }

  /// Lets the next thing happen.
  private func turn(_ engine: Engine) {
    while !isWanted() {
      guard violation == nil else { return }
      turnsNow += 1
      if turnsNow > 100_000 { return blame("spins", "more than 100,000 steps without time going on") }
      lanes.free(now: now)
      if !letOneHappen() {
        if cursor == story.items.count, !isDraining, now >= story.end {
          closeAll(engine)
          continue
        }
        guard let next = nextInstant(engine) else { return end(engine) }
        if let closedAt, next > closedAt + 600_000 { return blame("rest", "does not come to rest") }
        coverage.steps += 1
        turnsNow = 0
        if !pending.isEmpty { judgeLeft(isLast: false) }
        now = max(now, next)
        engine.clock.set(now)
        if let timer = engine.timers.next(), timer <= now {
          isTimerTurn = true
          return
        }
      }
      if !finished.isEmpty { return }
    }
  }

  /// One of the things that are due; in which order is the story's.
  private func letOneHappen() -> Bool {
    let hasJob = lanes.isReady
    let hasNetwork = (network.next ?? .max) <= now
    let hasAnswer = (later.next ?? .max) <= now
    let hasItem = cursor < story.items.count && story.items[cursor].at <= now
    let count = (hasJob ? 1 : 0) + (hasNetwork ? 1 : 0) + (hasAnswer ? 1 : 0) + (hasItem ? 1 : 0)
    guard count > 0 else { return false }
    var pick = count == 1 ? 0 : Int(mixed(story.seed, now, UInt64(turnsNow)) % UInt64(count))
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
    var next = min(network.next ?? .max, later.next ?? .max, lanes.nextFree ?? .max, engine.timers.next() ?? .max)
    if cursor < story.items.count {
      next = min(next, story.items[cursor].at)
    } else if !isDraining {
      next = min(next, max(now, story.end))
    }
    return next == .max ? nil : next
  }

  /// Nothing is due any more.
  private func end(_ engine: Engine) {
    guard isDraining else { return }
    finalChecks(engine)
    isOver = true
  }

  /// After the last of the story: everything is closed.
  func closeAll(_ engine: Engine) {
    closedAt = now
    faults = []
    habits = []
    downUntil = 0
    for play in live { wish(play, leave: nil) }
    subject = (nil, .contextClosed)
    tell("the context is closed")
    engine.beginClosing()
  }

  // MARK: What the step did

  private func observe(_ engine: Engine) {
    let cause = subject
    subject = nil
    let wasTimer = isTimerTurn
    isTimerTurn = false
    if wasTimer { askedTooLate() }
    var index = 0
    while index < live.count {
      let play = live[index]
      let entry = engine.playbacks[play.id]
      let phase = entry.map { Phase($0) } ?? (play.wasThere || play.timesClosed > 0 ? .gone : .unborn)
      if let cause, cause.play === play || cause.play == nil {
        coverage.add(play.phase, cause.input, phase)
      } else if phase != play.phase {
        coverage.add(play.phase, play.sideInput ?? (wasTimer ? .timer : .othersEnded), phase)
      } else if let input = play.sideInput {
        coverage.add(play.phase, input, phase)
      }
      let input = cause?.play === play ? cause?.input : play.sideInput
      if phase != play.phase, play.phase.isBeat, phase.waitsForBeat, input?.isGoodBeat != true, play.lastBeat != nil {
        // It failed: from here on it is a period to the next at most.
        play.lastBeat = now
      }
      play.sideInput = nil
      if phase != play.phase { tell("  playback \(play.id): \(play.phase.name) → \(phase.name)") }
      play.phase = phase
      if let entry {
        play.wasThere = true
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

  private func askedTooLate() {
    openAsks.removeAll { one in
      if one.ask.isOpen { return false }
      one.play.sideInput = .askTimedOut
      return true
    }
  }
}

/// Breaks the circle of engine and world where one is made with the other.
private final class Seam: Transport {
  var world: World?
  func start(_ id: TransferID, _ request: HTTPRequest, isFresh: Bool) { world?.start(id, request, isFresh: isFresh) }
  func cancel(_ id: TransferID) -> Bool { world?.cancel(id) ?? false }
  func wait(until instant: Int64?) { world?.wait(until: instant) }
  func wake() { world?.wake() }
  func takeFinished() -> [FinishedTransfer] { world?.takeFinished() ?? [] }
  func shutDown() { world = nil }
}
