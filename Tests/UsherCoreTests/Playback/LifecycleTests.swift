import Testing

@testable import UsherCore

/// Tests playbacks while the host is suspended, after it is resumed, and while it has no network.
@Suite struct LifecycleTests {
  @Test func suspend_keep_changesNothing() {
    var p = PlaybackDriver.active()
    p.suspend()
    p.pass(60_000)
    #expect(p.take() == ["heartbeat t1"])
  }

  @Test func suspend_pause_sendsNothingUntilResumed_thenOneBeatAtOnce() {
    var p = PlaybackDriver.active(steady { $0.suspend = .pause })
    p.suspend()
    p.pass(200_000)
    #expect(p.take() == [])
    p.resume()
    #expect(p.take() == ["doubtful", "heartbeat t1"])
    p.answer(.heartbeat, Say.token("t2"))
    #expect(p.take() == ["kept alive"])
  }

  @Test func suspend_pause_resumedInTime_keepsTheSchedule() {
    var p = PlaybackDriver.active(steady { $0.suspend = .pause })
    p.suspend()
    p.pass(30_000)
    p.resume()
    p.pass(29_999)
    #expect(p.take() == [])
    p.pass(1)
    #expect(p.take() == ["heartbeat t1"])
  }

  @Test func resume_beatRefused_isAHeartbeatError() {
    var p = PlaybackDriver.active(steady { $0.suspend = .pause })
    p.suspend()
    p.pass(200_000)
    p.resume()
    p.answer(.heartbeat, Say.refused(1006))
    #expect(p.take() == ["doubtful", "heartbeat t1", "heartbeat error: REFUSED"])
  }

  @Test func networkBack_triesAFailedBeatAtOnce() {
    var p = PlaybackDriver.active()
    p.pass(60_000)
    p.answer(.heartbeat, Say.unreachable)
    _ = p.take()
    p.networkChanges()
    #expect(p.take() == ["heartbeat t1"])
    p.networkChanges()
    #expect(p.take() == [])
  }

  @Test func networkBack_afterAnOutage_doesNotWaitForTheNextPeriod() {
    var p = PlaybackDriver.active(steady { $0.retry = 0 })
    p.pass(60_000)
    p.answer(.heartbeat, Say.unreachable)
    #expect(p.take() == ["heartbeat t1", "heartbeat error: TRANSPORT"])
    p.pass(10_000)
    p.networkChanges()
    p.answer(.heartbeat, Say.token("t2"))
    #expect(p.take() == ["heartbeat t1", "kept alive", "recovered"])
  }

  @Test(arguments: [true, false])
  func networkBack_inAnOutage_theNextBeatIsWhereItWas(isAnswered: Bool) {
    var p = PlaybackDriver.active(steady { $0.retry = 0 })
    p.pass(60_000)
    p.answer(.heartbeat, Say.unreachable)
    p.pass(10_000)
    p.networkChanges()
    p.answer(.heartbeat, isAnswered ? Say.token("t2") : Say.unreachable)
    _ = p.take()
    p.pass(49_999)
    #expect(p.take() == [])
    p.pass(1)
    #expect(p.take() == [isAnswered ? "heartbeat t2" : "heartbeat t1"])
  }

  @Test func pausedSession_closes_withItsTeardown() {
    var p = PlaybackDriver.active(steady { $0.suspend = .pause })
    p.suspend()
    p.close()
    #expect(p.take() == ["teardown t1"])
  }
}
