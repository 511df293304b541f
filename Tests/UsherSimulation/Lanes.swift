import UsherCore

@testable import UsherEngine

/// A callback executor without threads. Each playback has a lane, whose jobs run in order. Host code can block at most
/// `cap` lanes at a time.
final class Lanes: CallbackExecutor {
  private var lanes: [UInt64: [(run: () -> Void, isCall: Bool)]] = [:]
  /// For each lane: how many calls are queued, running or blocked, and what runs when they have ended.
  private var calls: [UInt64: Int] = [:]
  private var afterwards: [UInt64: [() -> Void]] = [:]
  private var ready: [UInt64] = []
  private(set) var blocked: [(lane: UInt64, until: Milliseconds)] = []
  private let cap: Int
  private var isBlocking: Milliseconds?
  private var running: UInt64?

  init(cap: Int) { self.cap = cap }

  var pending: Int { lanes.count }
  var isReady: Bool { !ready.isEmpty && blocked.count < cap }
  /// The time at which the next blocked lane becomes free.
  var nextFree: Milliseconds? { blocked.map(\.until).min() }
  var isFull: Bool { blocked.count >= cap }

  func isBlocked(_ lane: UInt64) -> Bool { blocked.contains { $0.lane == lane } }

  func afterCalls(of lane: UInt64, _ work: @escaping () -> Void) -> Bool {
    guard calls[lane, default: 0] > 0 else { return false }
    afterwards[lane, default: []].append(work)
    return true
  }

  func enqueueDestroy(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool { add(lane, job, isCall: false) }

  func enqueue(_ lane: UInt64, _ job: @escaping () -> Void) -> Bool { add(lane, job, isCall: true) }

  private func add(_ lane: UInt64, _ job: @escaping () -> Void, isCall: Bool) -> Bool {
    if isCall { calls[lane, default: 0] += 1 }
    if lanes[lane] == nil {
      lanes[lane] = [(job, isCall)]
      if running != lane { ready.append(lane) }
    } else {
      lanes[lane]?.append((job, isCall))
    }
    return true
  }

  private func callEnded(_ lane: UInt64) {
    calls[lane, default: 0] -= 1
    guard calls[lane] == 0 else { return }
    calls.removeValue(forKey: lane)
    for work in afterwards.removeValue(forKey: lane) ?? [] { work() }
  }

  /// Runs one job of the `pick`th ready lane.
  func runOne(_ pick: UInt64) {
    let lane = ready.remove(at: Int(pick % UInt64(ready.count)))
    guard var jobs = lanes[lane], !jobs.isEmpty else { return }
    let job = jobs.removeFirst()
    lanes[lane] = jobs
    running = lane
    isBlocking = nil
    job.run()
    running = nil
    if let until = isBlocking { return blocked.append((lane, until)) }
    if job.isCall { callEnded(lane) }
    requeue(lane)
  }

  private func requeue(_ lane: UInt64) {
    if lanes[lane]?.isEmpty == true { lanes.removeValue(forKey: lane) } else { ready.append(lane) }
  }

  /// The simulated host calls this in a job: the lane of this job is then blocked until the time `until`.
  func block(until: Milliseconds) { isBlocking = until }

  func free(now: Milliseconds) {
    let ended = blocked.filter { $0.until <= now }
    if ended.isEmpty { return }
    blocked.removeAll { $0.until <= now }
    for one in ended {
      callEnded(one.lane)  // the job that blocked was a call; other jobs never block
      requeue(one.lane)
    }
  }

  func shutDown() {
    for one in blocked { callEnded(one.lane) }
    blocked = []
    for (lane, jobs) in lanes {
      for job in jobs {
        job.run()
        if job.isCall { callEnded(lane) }
      }
    }
    lanes = [:]
    ready = []
  }
}
