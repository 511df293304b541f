import Testing

@testable import UsherCore
@testable import UsherEngine

/// The network loses all packets, and works again shortly before the lease of a session ends. The period is 5 s, so the
/// lease ends 10 s after set-up.
@Suite struct LeaseEndTests {
  private static let leaseEnd: Milliseconds = 10_000

  /// Sets up all sessions at the time 0, on a network that loses all packets from 4 s on.
  private func silence(sessions: UInt64 = 1, connectTime: Milliseconds = 0) throws -> Simulation {
    let network = ModelTransport(HeadEnd(period: 5000, leasePeriods: 2), seed: 1, latencyMost: 0)
    let s = try #require(Simulation(network))
    var policy = SSPPolicy()
    policy.jitter = 0
    let delegate = Simulation.delegate(policy)
    for id in 1...sessions {
      s.addPlayer(id)
      s.play(id, on: id, delegate)
    }
    s.run(until: 4000)
    network.setConnectTime(connectTime)
    network.setSilent(true)
    return s
  }

  private func kept(_ s: Simulation) -> Int {
    s.run(until: Self.leaseEnd + 4000)
    return s.playbacks.filter { id in !s.kinds(id).contains(.heartbeatError) && s.kinds(id).contains(.keptAlive) }.count
  }

  /// If the network comes back in the last second of the lease, the library opens a connection within 50 ms. From the
  /// beginning of this second it opens at most 36 connections. It opens none later than a second after the lease's end.
  @Test func silentNetwork_inTheLastSecondOfTheLease_isTriedEvery50Milliseconds() throws {
    let s = try silence()
    s.run(until: Self.leaseEnd + 2000)
    let opened = s.network.opened
    let late = ((Self.leaseEnd - 2000)..<Self.leaseEnd).filter { mended in
      (opened.first { $0 >= mended } ?? .never) > max(mended, Self.leaseEnd - 1000) + 50
    }
    #expect(late == [], "the network is mended at these instants; the library opens connections at \(opened)")
    let last = opened.filter { $0 > Self.leaseEnd - 1000 }
    #expect(last.count <= 36, "\(last)")
    #expect((last.last ?? 0) < Self.leaseEnd + 1000, "after the lease the pauses are long again: \(last)")
    s.network.setSilent(false)
    s.finish()
  }

  @Test(arguments: [2000, 1001, 999, 301, 299, 255, 125, 100, 51] as [Milliseconds])
  func session_whoseNetworkComesBackBeforeTheLeaseEnds_isKept(left: Milliseconds) throws {
    let s = try silence()
    s.run(until: Self.leaseEnd - left)
    s.network.setSilent(false)
    #expect(kept(s) == 1, "\(s.kinds(1))")
    #expect(s.paths.filter { $0 == "heartbeat s1.1" }.count == 1, "the head-end got one of the attempts: \(s.paths)")
    s.finish()
  }

  /// A hundred sessions retry at the same time. Each retry begins with one connection. Retries that have no established
  /// connection open additional ones: all sessions together at most ten in 50 ms. After the first reply, each retry
  /// that is still without an established connection opens one more at once.
  @Test func sessions_whoseNetworkComesBackLate_areKeptByTheFirstReply() throws {
    let s = try silence(sessions: 100)
    s.run(until: Self.leaseEnd - 51)
    s.network.setSilent(false)
    #expect(kept(s) == 100)
    let last = s.network.opened.filter { $0 > Self.leaseEnd - 900 && $0 < Self.leaseEnd - 51 }
    #expect(last.count < 700, "ten within 50 ms, and those that attempts begin with: \(last.count)")
    s.finish()
  }

  /// Two sessions retry at the same time. Each of them opens its own connections.
  @Test func twoSessions_inTheLastSecondOfTheLease_bothOpenConnections() throws {
    let s = try silence(sessions: 2)
    let before = s.network.opened.count
    s.run(until: Self.leaseEnd - 51)
    let opened = s.network.opened[before...].filter { $0 > Self.leaseEnd - 950 }
    let pairs = Dictionary(grouping: opened) { $0 }.values.filter { $0.count == 2 }
    #expect(pairs.count >= 16, "both sessions open connections at the same instants: \(opened)")
    s.network.setSilent(false)
    #expect(kept(s) == 2)
    s.finish()
  }

  /// The network needs 280 ms to open a connection, nearly the whole time-out of an attempt. The library still waits
  /// for the reply to this attempt. If it sent a second heartbeat, the head-end would replace the token twice.
  @Test(arguments: [600, 500, 400] as [Milliseconds])
  func session_overASlowPath_isKeptByOneRequest(left: Milliseconds) throws {
    let s = try silence(connectTime: 280)
    s.network.setLatency(60)
    s.run(until: Self.leaseEnd - left)
    s.network.setSilent(false)
    #expect(kept(s) == 1, "\(s.kinds(1))")
    #expect(s.paths.filter { $0 == "heartbeat s1.1" }.count == 1, "\(s.paths)")
    s.finish()
  }
}
