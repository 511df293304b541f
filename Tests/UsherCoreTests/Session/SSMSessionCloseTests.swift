import Testing

@testable import UsherCore

/// Tests each row of the table "Races" in docs/protocol.md.
@Suite struct SSMSessionCloseTests {
  // shows: teardown-frees-slot
  @Test func close_active_tearsDownOnce() {
    var s = SessionDriver.active()
    s.close()
    s.close()
    s.close(.leave)
    #expect(s.take() == ["teardown t1"])
    #expect(s.session.isGivingBack && s.session.token == nil)
    s.answer(.teardown, Say.done)
    s.close()
    #expect(s.take() == ["released", "ended"])
    #expect(s.session.isFinished)
    #expect(s.timer == nil)
  }

  @Test func close_idle_endsWithoutAnyRequest() {
    var s = SessionDriver()
    s.close()
    s.start()
    #expect(s.take() == ["released", "ended"])
  }

  @Test func close_leave_sendsNothing() {
    var s = SessionDriver.active()
    s.close(.leave)
    #expect(s.take() == ["released", "left"])
    s.run(until: 1_000_000)
    #expect(s.take() == [])
    #expect(s.session.isLeft && !s.session.isFinished)
  }

  @Test func close_leaveWhileBeatInFlight_staysQuietWhenTheReplyComes() {
    var s = SessionDriver.beating()
    s.close(.leave)
    #expect(s.take() == ["released", "left"])
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.take() == [])
    #expect(s.session.isLeft)
  }

  @Test func close_leaveWhileSetupInFlight_leavesWhatItBrings() {
    var s = SessionDriver()
    s.start()
    s.close(.leave)
    s.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(s.take() == ["setup", "released", "left"])
    #expect(s.session.isLeft)
  }

  @Test func tearDownLeft_withTheToken_tearsDownOnce() {
    var s = SessionDriver.active()
    s.close(.leave)
    _ = s.take()
    s.tearDownLeft()
    s.tearDownLeft()
    #expect(s.take() == ["teardown t1"])
    s.answer(.teardown, Say.done)
    #expect(s.take() == ["ended"])
    #expect(s.session.isFinished)
  }

  @Test func tearDownLeft_ofASessionThatTheServerEnded_endsWithoutARequest() {
    var s = SessionDriver.beating()
    s.answer(.heartbeat, Say.refused(SSMCode.invalidToken))
    s.close(.leave)
    _ = s.take()
    s.tearDownLeft()
    #expect(s.take() == ["ended"])
    #expect(s.session.isFinished)
  }

  @Test func tearDownLeft_whileBeatInFlight_waitsForItsToken() {
    var s = SessionDriver.beating()
    s.close(.leave)
    s.tearDownLeft()
    _ = s.take()
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.take() == ["teardown t2"])
  }

  @Test func tearDownLeft_whileSetupInFlight_waitsForItsTokenAtMostTheCap() {
    var s = SessionDriver()
    s.start()
    s.close(.leave)
    s.tearDownLeft()
    _ = s.take()
    s.pass(3000)
    #expect(s.take() == ["ended, orphan possible"])
    #expect(!s.session.isLeft)
    s.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(s.take() == ["teardown t1"])
  }

  @Test func tearDownLeft_afterALostSetup_cannot() {
    var s = SessionDriver()
    s.start()
    s.close(.leave)
    s.answer(.setup, Say.lost)
    _ = s.take()
    #expect(!s.session.mayTearDownLeft)
    s.tearDownLeft()
    #expect(s.take() == [])
    #expect(s.session.isLeft)
  }

  // MARK: Set-up in flight

  @Test func setupReply_afterClose_isTornDown() {
    var s = SessionDriver()
    s.start()
    s.close()
    #expect(s.timer == 3000)
    s.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(s.take() == ["setup", "teardown t1"])
    s.answer(.teardown, Say.done)
    #expect(s.take() == ["released", "ended"])
  }

  @Test func setupReply_afterCloseWithoutUsablePeriod_isTornDownAllTheSame() {
    var s = SessionDriver()
    s.start()
    s.close()
    s.answer(.setup, Say.token("t1"))
    #expect(s.take() == ["setup", "teardown t1"])
  }

  @Test(arguments: [
    (Say.lost, true), (Say.unreadable, true), (Say.token(nil), true), (Say.refused(1003), false),
    (Say.unreachable, false)
  ])
  func setupReply_afterCloseWithoutToken_endsAndSaysWhetherAnOrphanIsPossible(outcome: SSMOutcome, orphan: Bool) {
    var s = SessionDriver()
    s.start()
    s.close()
    s.answer(.setup, outcome)
    #expect(s.take() == ["setup", "released", orphan ? "ended, orphan possible" : "ended"])
    #expect(s.session.isFinished)
  }

  @Test func setupReply_afterTheCap_isStillTornDown() {
    var s = SessionDriver()
    s.start()
    s.close()
    s.run(until: 3000)
    #expect(s.take() == ["setup", "released", "ended, orphan possible"])
    #expect(!s.session.isFinished)
    s.pass(4000)
    s.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(s.take() == ["teardown t1"])
    s.answer(.teardown, Say.unreachable)
    s.pass(500)
    #expect(s.take() == ["teardown t1"])
    s.answer(.teardown, Say.done)
    #expect(s.take() == [])
    #expect(s.session.isFinished)
    #expect(s.timer == nil)
  }

  @Test func setupReply_afterTheCapWithoutToken_changesNothing() {
    var s = SessionDriver()
    s.start()
    s.close()
    s.run(until: 3000)
    s.answer(.setup, Say.lost)
    #expect(s.take() == ["setup", "released", "ended, orphan possible"])
    #expect(s.session.isFinished)
  }

  // MARK: Beat in flight

  @Test func close_beatInFlight_tearsDownWithItsNewToken() {
    var s = SessionDriver.beating()
    s.close()
    #expect(s.take() == [])
    #expect(s.timer == 63_000)
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.take() == ["teardown t2"])
  }

  @Test func close_beatInFlightFails_tearsDownWithLastKnownToken() {
    var s = SessionDriver.beating()
    s.close()
    s.answer(.heartbeat, Say.unreachable)
    #expect(s.take() == ["teardown t1"])
  }

  @Test func close_beatInFlightSaysUnknown_sendsNoTeardown() {
    var s = SessionDriver.beating()
    s.close()
    s.answer(.heartbeat, Say.refused(1006))
    #expect(s.take() == ["released", "ended"])
  }

  @Test func close_beatInFlightPastTheCap_tearsDownWithLastKnownToken() {
    var s = SessionDriver.beating()
    s.close()
    s.run(until: 63_000)
    #expect(s.take() == ["teardown t1"])
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.take() == [])
    s.answer(.teardown, Say.done)
    #expect(s.take() == ["released", "ended"])
  }

  @Test func newestToken_duringRefusedTeardown_isTornDownToo() {
    var s = SessionDriver.beating()
    s.close()
    s.run(until: 63_000)
    s.answer(.heartbeat, Say.token("t2"))
    s.answer(.teardown, Say.refused(1006))
    #expect(s.take() == ["teardown t1", "teardown t2"])
    s.answer(.teardown, Say.done)
    #expect(s.take() == ["released", "ended"])
    #expect(s.session.isFinished)
  }

  @Test func newestToken_afterRefusedTeardown_isTornDownToo() {
    var s = SessionDriver.beating()
    s.close()
    s.run(until: 63_000)
    s.answer(.teardown, Say.refused(1006))
    _ = s.take()
    #expect(!s.session.isFinished)
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.take() == ["teardown t2"])
    s.answer(.teardown, Say.done)
    #expect(s.take() == [])
    #expect(s.session.isFinished)
  }

  @Test func newestToken_afterARetriedTeardownWasRefused_isTornDownToo() {
    var s = SessionDriver.beating()
    s.close()
    s.run(until: 63_000)
    s.answer(.teardown, Say.unreachable)
    s.pass(500)
    s.answer(.teardown, Say.refused(1006))
    _ = s.take()
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.take() == ["teardown t2"])
  }

  // MARK: Licence in flight

  @Test func close_licenseInFlight_tearsDownWithTheTokenItBrings() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.close()
    #expect(s.take() == [])
    s.licenseAnswered(token: "t2")
    #expect(s.take() == ["teardown t2"])
  }

  @Test func close_licenseInFlightPastTheCap_tearsDownThenAgainWhenRefused() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.close()
    s.run(until: 3000)
    s.answer(.teardown, Say.refused(1006))
    s.licenseAnswered(token: "t2")
    #expect(s.take().last == "teardown t2")
  }

  @Test func close_whileARefusedBeatWaitsForALicense_usesTheTokenItBrings() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.answer(.heartbeat, Say.refused(1006))
    s.close()
    s.licenseAnswered(token: "t2")
    #expect(s.take() == ["heartbeat t1", "teardown t2"])
  }

  // MARK: Teardown

  @Test func teardown_slow_releasesAtTheCapAndEndsWithTheReply() {
    var s = SessionDriver.active()
    s.close()
    s.run(until: 3000)
    #expect(s.take() == ["teardown t1", "released"])
    s.run(until: 8000)
    s.answer(.teardown, Say.done)
    #expect(s.take() == ["ended"])
  }

  @Test func teardown_failedInPassing_isRetriedAndSucceeds() {
    var s = SessionDriver.active()
    s.close()
    for wait in [500, 1000, 2000] as [Milliseconds] {
      s.answer(.teardown, Say.unreachable)
      #expect(s.session.isGivingBack)
      let due = s.now + wait
      s.run(until: due - 1)
      #expect(s.waiting.isEmpty)
      s.run(until: due)
      #expect(s.waiting.count == 1)
    }
    s.answer(.teardown, Say.done)
    #expect(s.take() == ["teardown t1", "teardown t1", "teardown t1", "released", "teardown t1", "ended"])
  }

  @Test func teardown_failedForGood_isToldOnce() {
    var s = SessionDriver.active()
    s.close()
    for _ in 0..<4 {
      s.answer(.teardown, Say.http(500))
      s.pass(5000)
    }
    #expect(s.take().suffix(2) == ["teardown failed: HTTP", "ended"])
    #expect(s.waiting.isEmpty && s.timer == nil && s.session.isFinished)
  }

  @Test func teardown_withoutRetries_failsAtOnce() {
    var s = SessionDriver.active(steady { $0.teardownRetries = 0 })
    s.close()
    s.answer(.teardown, Say.unreachable)
    #expect(s.take() == ["teardown t1", "teardown failed: TRANSPORT", "released", "ended"])
  }

  @Test func teardown_refused_isToldAndNotRetried() {
    var s = SessionDriver.active()
    s.close()
    s.answer(.teardown, Say.refused(1006))
    #expect(s.take() == ["teardown t1", "teardown failed: REFUSED", "released", "ended"])
  }

  @Test func teardown_retriedAndThenUnknown_hadReachedTheServer() {
    var s = SessionDriver.active()
    s.close()
    s.answer(.teardown, Say.lost)
    s.pass(500)
    s.answer(.teardown, Say.refused(1006))
    #expect(s.take() == ["teardown t1", "teardown t1", "released", "ended"])
  }

  @Test func teardown_retryAfter_isHonoured() {
    var s = SessionDriver.active()
    s.close()
    s.answer(.teardown, Say.http(503, retryAfter: 9000))
    s.run(until: 8999)
    #expect(s.take() == ["teardown t1", "released"])
    s.run(until: 9000)
    #expect(s.take() == ["teardown t1"])
  }

  @Test func teardownReply_ofAnotherRequest_isIgnored() {
    var s = SessionDriver.active()
    s.close()
    let sent = s.waiting[0]
    s.answer(SessionDriver.Sent(request: sent.request + 9, call: .teardown, token: "-"), Say.done)
    #expect(s.take() == ["teardown t1"])
    s.answer(.teardown, Say.done)
    s.answer(sent, Say.refused(1006))
    #expect(s.take() == ["released", "ended"])
  }

  @Test func manyRetries_withLargeBound_neverTrap() {
    var s = SessionDriver.active(steady { $0.teardownRetries = .max })
    s.close()
    for _ in 0..<100 {
      if !s.waiting.isEmpty { s.answer(.teardown, Say.unreachable) }
      s.pass(40_000_000)
    }
    #expect(s.session.isGivingBack)
  }

  @Test func everyInput_afterTheEnd_doesNothing() {
    var s = SessionDriver.active()
    s.close()
    s.answer(.teardown, Say.done)
    _ = s.take()
    s.start()
    s.close()
    s.resume()
    s.othersTornDown()
    s.decide(.enforced)
    s.renewed(token: "x")
    s.renewalFailed(WireFailure(.transport))
    s.startFails(UsherError(.noToken))
    s.ring(at: 1_000_000)
    #expect(s.take() == [])
    #expect(s.timer == nil)
  }
}
