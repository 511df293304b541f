import Testing

@testable import UsherCore
@testable import UsherEngine

#if canImport(Glibc)
  import Glibc
#endif

/// Tests the loop of the I/O thread: it reads replies before it handles time-outs, runs only some commands in each
/// turn, and does little work for playbacks that a command does not concern.
@Suite(.timeLimit(.minutes(1))) struct EngineLoopTests {
  private func simulation(_ headEnd: HeadEnd = HeadEnd(leasePeriods: 2)) throws -> Simulation {
    try #require(Simulation(ModelTransport(headEnd, seed: 7, latencyMost: 0)))
  }

  /// Plays one item until its first heartbeat is in flight. The heartbeat and its reply travel for at most `latency`
  /// each.
  private func playUntilHeartbeat(_ s: Simulation, latency: Milliseconds) {
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate())
    s.pass(10)
    s.network.setLatency(latency)
    while s.network.calls.last?.path != "heartbeat", s.now < 60_000 { s.pass(10) }
  }

  // MARK: After the end

  /// Calls the engine after its end, as a thread does if another thread of the host has just ended the engine.
  @Test func calls_afterTheEnd_reachNeitherTheTransportNorANewObserver() throws {
    let s = try simulation()
    s.addPlayer(1)
    s.finish()
    let before = s.network.networkChanges
    let late = Notes<EngineEvent>()
    s.engine.addObserver(2) { late.add($0) }
    s.engine.networkChanged()
    s.engine.reportClosed(within: 0)
    #expect(s.network.networkChanges == before)
    #expect(late.all.isEmpty)
  }

  // MARK: A late I/O thread

  /// The reply to a heartbeat arrives in time, but the I/O thread does not run until the time-out has passed; then the
  /// session continues with the token of that reply.
  @Test(arguments: [7400, 7600, 9000, 15_000] as [Milliseconds])
  func heartbeat_repliedWhileTheIOThreadIsLate_keepsTheSession(lateness: Milliseconds) throws {
    let s = try simulation()
    playUntilHeartbeat(s, latency: 100)
    s.delay(lateness)
    s.pass(60_000)
    #expect(!s.kinds(1).contains(.heartbeatError))
    #expect(s.network.look { $0.alive.count } == 1)
    s.finish()
  }

  /// The reply to a licence request arrives in time, but the I/O thread does not run until the time limit of the
  /// request has passed; the request still succeeds.
  @Test func license_repliedInTimeWhileTheIOThreadIsLate_succeeds() throws {
    let s = try simulation()
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate())
    s.pass(10)
    s.network.setLatency(100)
    s.license(1, timeout: 2000)
    s.delay(5000)
    s.pass(10)
    #expect(s.answers.all.map(\.status) == [.ok])
    s.finish()
  }

  /// The host closes the playback while its set-up is in flight. The reply arrives, but the I/O thread does not run
  /// until the time limit of the close has passed. Then the engine tears the session down, and no event reports an
  /// orphan.
  @Test func close_setupRepliedWhileTheIOThreadIsLate_tearsTheSessionDown() throws {
    let s = try simulation()
    s.addPlayer(1)
    s.network.setLatency(100)
    s.play(1, on: 1, Simulation.delegate())
    s.close(1)
    s.delay(5000)
    s.pass(1000)
    #expect(s.network.calls.map(\.path) == ["setup", "teardown"])
    #expect(s.events.all.allSatisfy { !$0.error.orphanPossible })
    s.finish()
  }

  /// The server does not reply to a heartbeat, and the I/O thread does not run until the time-out has passed; the
  /// request fails within a second after the I/O thread runs again.
  @Test func heartbeat_withoutReplyWhileTheIOThreadIsLate_timesOutWithinASecond() throws {
    let s = try simulation()
    playUntilHeartbeat(s, latency: 60_000)
    s.delay(9000)
    let late = s.engine.sync { s.engine.requests.transfers.ids }
    #expect(late.count == 1)
    s.pass(1000)
    #expect(s.engine.sync { s.engine.requests.transfers.ids } != late)
    s.network.setLatency(0)
    s.finish()
  }

  /// Two heartbeats are due, and reading the sockets takes so long that the transport does it in four parts. The engine
  /// sends both heartbeats after the first part.
  @Test func heartbeats_dueWhileTheTransportReads_areSentBetweenTwoParts() throws {
    let s = try simulation()
    var policy = SSPPolicy()
    policy.jitter = 0
    for id in 1...2 as ClosedRange<UInt64> {
      s.addPlayer(id)
      s.play(id, on: id, Simulation.delegate(policy))
    }
    s.pass(1000)
    let before = s.network.calls.count
    s.network.setReadParts(3)
    s.delay(s.network.look { $0.period } + 500)
    #expect(s.network.reads.prefix(4) == [before, before + 2, before + 2, before + 2])
    #expect(s.network.calls.suffix(2).map(\.path) == ["heartbeat", "heartbeat"])
    s.finish()
  }

  /// The host renews the licence before the time limit for the renewal. The reply arrives in time, but the I/O thread
  /// is late, and the transport reads the sockets in four parts. The engine does not report the renewal as missed.
  @Test func renewal_repliedInTimeWhileTheTransportReads_isNotMissed() throws {
    let network = ModelTransport(HeadEnd(leasePeriods: 3), isEnforced: true, seed: 7, latencyMost: 0)
    let s = try #require(Simulation(network))
    var policy = SSPPolicy()
    policy.jitter = 0
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate(policy), renews: false)
    s.license(1)
    while !s.kinds(1).contains(.renewalDue), s.now < 60_000 { s.pass(10) }
    s.pass(network.look { $0.period } - 500)
    network.setLatency(100)
    s.license(1, renewal: true)
    network.setReadParts(3)
    s.delay(1000)
    #expect(network.reads.count > 3)
    #expect(s.kinds(1).contains(.keptAlive))
    #expect(!s.kinds(1).contains(.heartbeatError))
    s.finish()
  }

  // MARK: Commands

  /// While the I/O thread is busy, another thread submits more commands than the queue can hold. The submitting thread
  /// waits until the queue has room, and all commands run in order.
  @Test func commands_moreThanTheQueueTakes_theirThreadWaits() throws {
    let s = try simulation()
    let gate = Wait<Bool>()
    let submitted = Notes<Int>()
    let ran = Notes<Int>()
    s.engine.submit { _ = gate.wait() }
    let feeder = ThreadedExecutor(cap: 1, onChange: { _ in })
    _ = feeder.enqueue(1) {
      for number in 0..<20_000 {
        s.engine.submit { ran.add(number) }
        submitted.add(number)
      }
    }
    #expect(submitted.wait(for: 4000))
    // While the I/O thread takes no command, the submitting thread must wait as soon as the queue is full.
    #expect(!submitted.wait(for: 2 * 4096 + 1, atMost: 1000))
    #expect(ran.all.isEmpty)
    gate.end(true)
    feeder.shutDown()
    s.engine.sync {}
    #expect(ran.all == Array(0..<20_000))
    s.finish()
  }

  /// The I/O thread itself submits more commands than the queue can hold. This thread does not wait for room in the
  /// queue, since it would wait for itself.
  @Test func commands_submittedOnTheIOThread_neverWait() throws {
    let s = try simulation()
    let ran = Notes<Int>()
    s.engine.sync { for number in 0..<10_000 { s.engine.submit { ran.add(number) } } }
    s.engine.sync {}
    #expect(ran.all == Array(0..<10_000))
    s.finish()
  }

  private final class Witness {
    private let freed: Notes<Int>
    init(_ freed: Notes<Int>) { self.freed = freed }
    deinit { freed.add(1) }
  }

  /// Two threads submit commands while the engine ends. Either the engine or the submitting thread runs each command;
  /// then the library frees the command.
  @Test func commands_submittedWhileTheEngineEnds_allRunAndAreFreed() throws {
    let (ran, freed) = (Notes<Int>(), Notes<Int>())
    for _ in 0..<50 {
      let s = try simulation()
      let feeder = ThreadedExecutor(cap: 2, onChange: { _ in })
      for lane in 1...2 as ClosedRange<UInt64> {
        _ = feeder.enqueue(lane) {
          for _ in 0..<200 {
            let witness = Witness(freed)
            s.engine.submit { withExtendedLifetime(witness) { ran.add(1) } }
          }
        }
      }
      s.engine.stop()
      feeder.shutDown()
    }
    #expect(ran.all.count == 50 * 400)
    #expect(freed.all.count == 50 * 400)
  }

  /// The queue is closed while a thread waits because the queue is full. The wait ends, and the queue refuses the
  /// command.
  @Test func queue_closedWhileAThreadWaits_theThreadReturns() {
    let queue = CommandQueue(most: 1)
    let answers = Notes<CommandQueue.Appended>()
    answers.add(queue.append({}, if: { true }, wake: {}))
    let feeder = ThreadedExecutor(cap: 1, onChange: { _ in })
    _ = feeder.enqueue(1) { answers.add(queue.append({}, if: { true }, wake: {})) }
    queue.close()
    feeder.shutDown()
    #expect(answers.all == [.taken, .ended])
  }

  /// The host suspends more playbacks than one turn of the loop handles; a later command runs only after all of them
  /// are suspended.
  @Test func suspendAll_ofManyPlaybacks_isCompleteBeforeTheNextCommand() throws {
    let s = try simulation(HeadEnd())
    var policy = SSPPolicy()
    policy.suspend = .pause
    let delegate = Simulation.delegate(policy)
    for id in 1...600 as ClosedRange<UInt64> {
      s.addPlayer(id)
      s.play(id, on: id, delegate)
    }
    s.pass(1000)
    s.engine.suspend(nil)
    let paused = s.engine.sync {
      s.engine.playbacks.sortedIDs.filter { s.engine.playbacks[$0]!.machine.session.isPaused }
    }
    s.engine.resume(nil)
    let resumed = s.engine.sync {
      s.engine.playbacks.sortedIDs.filter { !s.engine.playbacks[$0]!.machine.session.isPaused }
    }
    #expect(paused.count == 600)
    #expect(resumed.count == 600)
    s.finish()
  }

  // MARK: Waits and time

  /// If a blocking call ends before its time-out, the engine removes the timer of this call. If the call times out, the
  /// engine removes the call from the playback's list of waiting calls.
  @Test func waits_thatHaveEnded_leaveNoTimersAndNoEntries() throws {
    let s = try simulation()
    s.addPlayer(1)
    s.addPlayer(2)
    s.play(1, on: 1, Simulation.delegate())
    s.play(2, on: 2, Simulation.delegate())
    s.pass(10)
    s.close(1)
    s.pass(10)
    let before = s.engine.sync { s.engine.timers.count }
    for _ in 0..<100 {
      #expect(s.engine.waitForClose(1, 3_600_000) == .ok)
      #expect(s.engine.waitForSession(2, 3_600_000).status == .ok)
    }
    #expect(s.engine.sync { s.engine.timers.count } == before)
    let feeder = ThreadedExecutor(cap: 1, onChange: { _ in })
    let ended = Notes<Status>()
    _ = feeder.enqueue(1) { ended.add(s.engine.waitForClose(2, 100)) }
    while s.engine.sync({ s.engine.playbacks[2]?.closeWaits.count }) == 0 { sched_yield() }
    s.pass(100)
    feeder.shutDown()
    #expect(ended.all == [.timeout])
    #expect(s.engine.sync { s.engine.playbacks[2]?.closeWaits.count } == 0)
    s.finish()
  }

  /// A test moves the clock twice, each time by the largest number of milliseconds; both calls return, and the clock
  /// stops at `Clock.end`.
  @Test func jump_byTheLargestNumber_returns() throws {
    let s = try simulation()
    s.addPlayer(1)
    s.play(1, on: 1, Simulation.delegate())
    s.pass(10)
    s.engine.jump(.max)
    s.engine.jump(.max)
    #expect(s.engine.sync { s.engine.clock.now } == Clock.end)
    s.settle()
    s.engine.beginClosing()
    s.settle()
    s.engine.stop()
  }

  // MARK: Work

  /// The host sets 20,000 tokens. The I/O thread needs about as much CPU time with 5,000 playbacks as with 50.
  @Test func streamTokens_setWhileManyPlaybacksPlay_takeNoLongerThanWithFew() throws {
    let few = try tokenWork(playbacks: 50, tokens: 20_000)
    let many = try tokenWork(playbacks: 5000, tokens: 20_000)
    // The second run has a hundred times as many playbacks. If the work for each token grew with the number of
    // playbacks, the second run would take a hundred times as long.
    #expect(many < 10 * few + 20_000_000, "50 playbacks: \(few) ns, 5,000 playbacks: \(many) ns")
  }

  /// Sets tokens, each for another content; at most one playback plays each content. Returns the CPU time of the I/O
  /// thread in nanoseconds.
  private func tokenWork(playbacks: UInt64, tokens: Int) throws -> Int {
    let s = try simulation(HeadEnd())
    let map = s.engine.newTokenStore(bound: nil, timeToLive: nil, seed: 1)
    let delegate = LicenseDelegate(
      policy: SSPPolicy(), endpoints: Simulation.delegate().endpoints, setupBody: [], keepAliveBody: [], tokenMap: map)
    for id in 1...playbacks {
      s.addPlayer(id)
      let content = Array("content \(id)".utf8)
      _ = content.withUnsafeBufferPointer { map.set($0, secret("a/\(id)/0")) }
      var item = PlaybackItem(delegate: delegate, contentToken: nil)
      item.contentID = content
      let host = HostPlayback(handle: UInt(id), playerHandle: UInt(id), tag: id)
      let isPlaying = s.engine.play(
        PlaybackShared(id), on: s.player(id), host: host, item: item, callbacks: PlaybackCallbacks())
      #expect(isPlaying)
    }
    let before = s.engine.sync { Self.threadTime() }
    for number in 0..<tokens { s.engine.tokenMapped(delegate, Array("content \(number)".utf8)) }
    let after = s.engine.sync { Self.threadTime() }
    s.engine.stop()
    return after - before
  }

  /// The CPU time of the calling thread, in nanoseconds.
  private static func threadTime() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }
}
