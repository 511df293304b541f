import Testing

@testable import UsherCore

/// Tests requests that are in flight at the same time. Their replies bring session tokens in another order than the
/// order in which the server made the tokens.
@Suite struct SSMSessionTokenOrderTests {
  @Test func licenseReply_slowerThanTwoHeartbeats_doesNotReplaceTheirToken() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.answer(.heartbeat, Say.token("t3"))
    s.run(until: 120_000)
    s.answer(.heartbeat, Say.token("t4"))
    s.licenseAnswered(token: "t2")
    s.close()
    #expect(s.take().last == "teardown t4")
  }

  @Test func licenseReply_slowerThanTheTeardown_causesNoSecondTeardown() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.answer(.heartbeat, Say.token("t3"))
    s.run(until: 120_000)
    s.answer(.heartbeat, Say.token("t4"))
    _ = s.take()
    s.close()
    s.pass(3000)
    s.answer(.teardown, Say.refused(1003))
    s.licenseAnswered(token: "t2")
    #expect(s.take() == ["teardown t4", "teardown failed: REFUSED", "released", "ended"])
  }

  @Test func heartbeatReply_repeatingItsToken_doesNotReplaceTheTokenOfALicense() {
    // The head-end handled the heartbeat before the licence request, but the licence reply arrived first.
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.licenseAnswered(token: "t2")
    s.answer(.heartbeat, Say.token("t1"))
    s.close()
    #expect(s.take().last == "teardown t2")
  }

  @Test func heartbeatReplies_repeatingTheirToken_doNotOutdateTheTokenOfALicense() {
    var s = SessionDriver.active()
    s.licenseSent()
    for period in 1...3 as ClosedRange<Milliseconds> {
      s.run(until: period * 60_000)
      s.answer(.heartbeat, Say.token("t1"))
    }
    s.licenseAnswered(token: "t2")
    s.close()
    #expect(s.take().last == "teardown t2")
  }

  @Test func teardown_lostAfterALicenseBroughtATokenOfItsDepth_isRepeatedWithItsOwnToken_thenWithTheOther() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.answer(.heartbeat, Say.token("t3"))
    _ = s.take()
    s.close()
    s.pass(3000)
    s.licenseAnswered(token: "t2")
    s.answer(.teardown, Say.unreachable)
    s.pass(500)
    s.answer(.teardown, Say.refused(1006))
    #expect(s.take().filter { $0.hasPrefix("teardown") } == ["teardown t3", "teardown t3", "teardown t2"])
  }

  // MARK: Two tokens of the same depth

  /// Makes a session that sent two requests with the token `t1`: the reply to the heartbeat had the token `t3`, and the
  /// licence reply had `t2`.
  private func withTwoTokens() -> SessionDriver {
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.answer(.heartbeat, Say.token("t3"))
    s.licenseAnswered(token: "t2")
    _ = s.take()
    return s
  }

  @Test func teardown_refusedAsUnknown_isSentWithTheOtherToken() {
    var s = withTwoTokens()
    s.close()
    s.answer(.teardown, Say.refused(1006))
    s.answer(.teardown, Say.done)
    #expect(s.take() == ["teardown t2", "teardown t3", "released", "ended"])
  }

  @Test func teardown_bothTokensRefused_isReportedOnce() {
    var s = withTwoTokens()
    s.close()
    s.answer(.teardown, Say.refused(1006))
    s.answer(.teardown, Say.refused(1006))
    #expect(s.take() == ["teardown t2", "teardown t3", "teardown failed: REFUSED", "released", "ended"])
  }

  @Test func teardown_lostThenBothTokensRefused_hasEndedTheSession() {
    var s = withTwoTokens()
    s.close()
    s.answer(.teardown, Say.lost)
    s.pass(500)
    s.answer(.teardown, Say.refused(1006))
    s.answer(.teardown, Say.refused(1006))
    #expect(s.take() == ["teardown t2", "teardown t2", "teardown t3", "released", "ended"])
  }

  @Test func heartbeat_refusedAsUnknown_isSentWithTheOtherTokenOnce() {
    var s = withTwoTokens()
    s.run(until: 120_000)
    s.answer(.heartbeat, Say.refused(1006))
    #expect(s.take() == ["heartbeat t2", "heartbeat t3"])
    var refused = s
    refused.answer(.heartbeat, Say.refused(1006))
    #expect(refused.take() == ["heartbeat failed: REFUSED 1006"])
    s.answer(.heartbeat, Say.token("t4"))
    s.close()
    #expect(s.take() == ["kept alive", "teardown t4"])
  }

  @Test func renewal_refused_isSentWithTheOtherToken() {
    var p = PlaybackDriver.active(steady { $0.keepAlive = .renewal })
    p.ask(1)
    p.ask(2)
    p.licensed(1, token: "t2")
    p.licensed(2, token: "t3")
    p.run(until: 60_000)
    p.ask(3, renewal: true)
    p.denied(3, 4005)
    p.licensed(3, token: "t4")
    #expect(p.take().filter { $0.hasPrefix("renewal") } == ["renewal 3 t3", "renewal 3 t2"])
  }

  // MARK: Refused teardowns

  @Test(arguments: [Say.unreachable, Say.http(503)])
  func teardown_notExecutedThenRefusedAsUnknown_isATeardownError(first: SSMOutcome) {
    var s = SessionDriver.active()
    s.close()
    s.answer(.teardown, first)
    s.pass(500)
    s.answer(.teardown, Say.refused(1006))
    #expect(s.take() == ["teardown t1", "teardown t1", "teardown failed: REFUSED", "released", "ended"])
  }

  @Test(arguments: [1, 2])
  func teardown_lostThenRefusedAsUnknown_hasEndedTheSession(attempts: Int) {
    var s = SessionDriver.active()
    s.close()
    s.answer(.teardown, Say.lost)
    s.pass(500)
    if attempts == 2 {
      s.answer(.teardown, Say.http(503))
      s.pass(1000)
    }
    s.answer(.teardown, Say.refused(1006))
    #expect(Array(s.take().suffix(2)) == ["released", "ended"])
  }

  // MARK: A lost reply

  @Test func license_lostWhileAHeartbeatIsInFlight_isRememberedAfterTheHeartbeat() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.licenseLost()
    s.answer(.heartbeat, Say.token(nil))
    var closed = s
    closed.close()
    closed.answer(.teardown, Say.refused(1006))
    #expect(closed.take().last == "ended, orphan possible")
    s.run(until: 120_000)
    s.answer(.heartbeat, Say.refused(1006))
    #expect(s.take().last == "heartbeat failed: REFUSED 1006, orphan possible")
  }

  @Test func heartbeatReply_thatMayBeCut_countsButMayLeaveAnOrphan() {
    var s = SessionDriver.beating()
    var cut = SessionFields()
    cut.mayBeCut = true
    s.answer(.heartbeat, .success(cut))
    #expect(s.take() == ["kept alive"])
    s.run(until: 120_000)
    s.answer(.heartbeat, Say.refused(1006))
    #expect(s.take().last == "heartbeat failed: REFUSED 1006, orphan possible")
  }

  // MARK: Leaving a session that is being opened

  @Test func close_leavingWhileSetupIsInFlight_isReportedAsLeft() {
    var p = PlaybackDriver()
    p.start()
    p.close(.leave)
    #expect(p.take() == ["setup c1", "released", "left", "closed"])
  }

  @Test func close_leavingWhileALicenseOpensTheSession_isReportedAsLeft() {
    var p = PlaybackDriver(steady { $0.opening = .license })
    p.start()
    p.ask(1)
    p.close(.leave)
    #expect(p.take() == ["license 1 c1", "failed 1: CLOSED", "released", "left", "closed"])
  }

  @Test func close_leavingBeforeSetup_isNotReportedAsLeft() {
    var p = PlaybackDriver(steady { $0.opening = .license })
    p.start()
    p.close(.leave)
    #expect(p.take() == ["released", "closed"])
  }

  // MARK: Refusals while other requests are in flight

  @Test func heartbeat_refusedWhileALicenseIsInFlight_letsNoOtherLicenseStart() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.run(until: 60_000)
    p.answer(.heartbeat, Say.refused(1006))
    p.ask(2)
    #expect(p.take() == ["license 1 c1,t1", "heartbeat t1"])
    p.licensed(1)
    #expect(p.take() == ["got 1", "heartbeat error: REFUSED", "failed 2: SESSION 1006"])
  }

  @Test func heartbeat_refusedWhileALicenseIsInFlight_isSentWithTheLicensesToken() {
    var p = PlaybackDriver.active(steady { $0.keepAlive = .heartbeat })
    p.ask(1)
    p.run(until: 60_000)
    p.answer(.heartbeat, Say.refused(1006))
    p.ask(2)
    p.licensed(1, token: "t2")
    p.answer(.heartbeat, Say.token("t3"))
    #expect(p.take().filter { $0.hasPrefix("heartbeat") || $0.hasPrefix("license 2") }.last == "license 2 c1,t3")
  }

  @Test func renewalOfTheCDM_refusedWhileAHeartbeatIsInFlight_keepsTheHeartbeatsToken() {
    var s = SessionDriver.beating()
    s.decide(.cdm)
    s.renewalFailed(WireFailure(.http, httpStatus: 404))
    #expect(s.take() == ["renewal failed: HTTP"])
    s.answer(.heartbeat, Say.token("t2"))
    s.close()
    #expect(s.take() == ["teardown t2"])
  }

  @Test func renewalOfTheCDM_refusedWhileAHeartbeatIsInFlight_closeWaitsForTheHeartbeat() {
    var s = SessionDriver.beating()
    s.decide(.cdm)
    s.renewalFailed(WireFailure(.http, httpStatus: 404))
    s.close()
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.take() == ["renewal failed: HTTP", "teardown t2"])
  }
}
