import Testing

@testable import UsherCore

/// Tests races in which an earlier version of the library lost a token, a retry or a renewal.
@Suite struct SSMSessionTokenRaceTests {
  @Test func newestToken_whileTheTeardownIsToBeRetried_isTheOneUsed() {
    var s = SessionDriver.beating()
    s.close()
    s.run(until: 63_000)
    s.answer(.teardown, Say.unreachable)
    s.answer(.heartbeat, Say.token("t2"))
    s.pass(1000)
    #expect(s.take() == ["teardown t1", "teardown t2"])
  }

  @Test func newestToken_whileTheTeardownIsRetried_isTornDownWhenThatIsRefused() {
    var s = SessionDriver.beating()
    s.close()
    s.run(until: 63_000)
    s.answer(.teardown, Say.unreachable)
    s.pass(500)
    #expect(s.take() == ["teardown t1", "teardown t1"])
    s.answer(.heartbeat, Say.token("t2"))
    s.answer(.teardown, Say.refused(1006))
    #expect(s.take() == ["teardown t2"])
  }

  @Test func close_beatAndLicenseInFlight_unknownBeatFirst_tearsDownTheLicensesToken() {
    // The head-end accepts only the newest token. The head-end handled the licence request first and replaced the
    // token. So it refuses the heartbeat, which carries the old token.
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.close()
    s.answer(.heartbeat, Say.refused(1006))
    s.licenseAnswered(token: "t2")
    #expect(s.take() == ["heartbeat t1", "teardown t2"])
  }

  @Test func close_beatAndLicenseInFlight_licenseFirst_tearsDownItsToken() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.close()
    s.licenseAnswered(token: "t2")
    s.answer(.heartbeat, Say.refused(1006))
    #expect(s.take() == ["heartbeat t1", "teardown t2"])
  }

  @Test func close_whileARefusedBeatWaitsForALicense_unknownSessionIsNotTornDown() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.answer(.heartbeat, Say.refused(1006))
    s.close()
    s.licenseAnswered()
    #expect(s.take() == ["heartbeat t1", "released", "ended"])
  }

  @Test func mode_decidedCDMWhileBeatAndRenewalInFlight_keepsTheBeatsToken() {
    var s = SessionDriver.beating()
    s.licenseSent()
    s.decide(.cdm)
    s.renewed()
    s.licenseAnswered()
    s.answer(.heartbeat, Say.token("t2"))
    s.close()
    #expect(s.take().last == "teardown t2")
  }

  @Test func renewal_notMadeForAPeriod_isToldOnceAndAskedAgain() {
    var s = SessionDriver.active()
    s.decide(.enforced)
    s.run(until: 60_000)
    #expect(s.take() == ["renewal due"])
    s.run(until: 119_999)
    #expect(s.take() == [])
    s.run(until: 120_000)
    #expect(s.take() == ["renewal failed: RENEWAL_MISSED", "renewal due"])
    s.run(until: 180_000)
    #expect(s.take() == ["renewal due"])
    s.renewed(token: "r1")
    let end = s.take()
    #expect(end.first?.hasPrefix("kept alive") == true && end.last == "recovered" && end.count == 2)
  }

  @Test func retryOption_zero_neverRetriesEvenWhenTheBeatWasEarly() {
    for seed in 0..<100 as Range<UInt64> {
      var policy = SSPPolicy()
      policy.retry = 0
      var s = SessionDriver.active(policy, seed: seed)
      s.run(until: s.timer ?? 0)
      s.answer(.heartbeat, Say.unreachable)
      #expect(s.take() == ["heartbeat t1", "heartbeat failed: TRANSPORT"], "seed \(seed)")
    }
  }

  @Test func renewal_overdueBySleep_isAskedForAndGivenAWholePeriod() {
    var s = SessionDriver.active()
    s.decide(.enforced)
    s.sleep(until: 200_000)
    #expect(s.take() == ["doubtful", "renewal due"])
    s.run(until: 230_000)
    #expect(s.take() == [])
    s.renewed(token: "t2")
    #expect(s.take().count == 1)
  }

  // MARK: A lost reply

  @Test func heartbeat_lostThenUnknown_mayLeaveAnOrphan() {
    var s = SessionDriver.beating()
    s.answer(.heartbeat, Say.lost)
    s.pass(1000)
    s.answer(.heartbeat, Say.refused(1006))
    #expect(s.take() == ["heartbeat t1", "heartbeat failed: REFUSED 1006, orphan possible"])
    s.close()
    #expect(s.take() == ["released", "ended, orphan possible"])
  }

  @Test(arguments: [Say.unreachable, Say.http(503)])
  func heartbeat_notTakenThenUnknown_leavesNone(outcome: SSMOutcome) {
    var s = SessionDriver.beating()
    s.answer(.heartbeat, outcome)
    s.pass(1000)
    s.answer(.heartbeat, Say.refused(1006))
    #expect(s.take().last == "heartbeat failed: REFUSED 1006")
  }

  @Test func heartbeat_lostAndAnsweredAfter_isForgotten() {
    for answer in [Say.token("t2"), Say.token(nil)] {
      var s = SessionDriver.beating()
      s.answer(.heartbeat, Say.lost)
      s.pass(1000)
      s.answer(.heartbeat, answer)
      s.run(until: 120_000)
      s.answer(.heartbeat, Say.refused(1006))
      #expect(s.take().last == "heartbeat failed: REFUSED 1006")
    }
  }

  @Test func teardown_unknownWhileABeatIsNotAnswered_mayLeaveAnOrphan() {
    var s = SessionDriver.beating()
    s.close()
    s.run(until: 63_000)
    s.answer(.teardown, Say.refused(1006))
    #expect(s.take() == ["teardown t1", "teardown failed: REFUSED", "released", "ended, orphan possible"])
  }

  @Test func teardown_unknownAfterALicenseWasLost_mayLeaveAnOrphan() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.failed(1, WireFailure(.timeout, mayHaveTakenEffect: true))
    p.close()
    p.answer(.teardown, Say.refused(1006))
    #expect(p.take().last == "closed, orphan possible")
  }
}

/// Several licence requests of one session are in flight. The head-end replaces the session token with each reply.
@Suite struct PlaybackTokenRaceTests {
  @Test func licenses_inParallel_denialOvertakingTheNewToken_isResentWithIt() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.ask(2)
    p.denied(2, 1006)
    p.licensed(1, token: "t2")
    #expect(p.take().last == "license 2 c1,t2")
  }

  @Test func renewal_deniedWhileALicenseIsUnderWay_isResentWithItsToken() {
    var p = PlaybackDriver.active(steady { $0.keepAlive = .renewal })
    p.ask(1)
    p.run(until: 60_000)
    p.ask(2, renewal: true)
    p.denied(2, 1006)
    p.licensed(1, token: "t2")
    let story = p.take()
    #expect(story.last == "renewal 2 t2" && !story.contains { $0.hasPrefix("heartbeat error") }, "\(story)")
  }

  @Test func licenses_threeInParallel_allArrive() {
    var p = PlaybackDriver.active()
    for id in 1...3 as ClosedRange<LicenseID> { p.ask(id) }
    var valid = "t1"
    var count = 1
    var got: Set<LicenseID> = []
    for _ in 0..<20 {
      guard case .license(_, let id)? = p.waiting.first else { break }
      let sent = p.story.last { $0.hasPrefix("license \(id) ") } ?? ""
      if sent.hasSuffix("," + valid) {
        count += 1
        valid = "t\(count)"
        p.licensed(id, token: valid)
        got.insert(id)
      } else {
        p.denied(id, 1006)
      }
    }
    #expect(got == [1, 2, 3], "\(p.story)")
  }

  @Test func close_whileASessionIsReplacedPastTheCap_releasesThePlayer() {
    // The machine replaces the session. The teardown of the old session has no reply when its time limit passes, and
    // then the host closes the playback. The machine must report once that the player may continue. The late reply to
    // the teardown must not cause a second report.
    var p = PlaybackDriver.active(steady { $0.resetup = .always })
    p.ask(1)
    p.licensed(1)
    p.ask(2)
    p.run(until: 5000)
    p.close()
    p.answer(.teardown, Say.done)
    #expect(p.take().filter { $0 == "released" }.count == 1)
  }
}
