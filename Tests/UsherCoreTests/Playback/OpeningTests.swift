import Testing

@testable import UsherCore

/// Tests sessions that the first licence request opens: those of SSP V2 and of customer SSM.
@Suite struct OpeningTests {
  private func v2(_ change: (inout SSPPolicy) -> Void = { _ in }, callback: Bool = false) -> PlaybackDriver {
    var driver = PlaybackDriver(
      steady {
        $0.opening = .license
        $0.leavesByDefault = true
        change(&$0)
      }, hasTokenCallback: callback)
    driver.start()
    return driver
  }

  // shows: v2-play-sends-nothing
  @Test func start_asksForNothing() {
    var p = v2()
    #expect(p.take() == [])
    #expect(p.machine.sessionState == .pending)
  }

  @Test func firstLicence_carriesTheContentTokenAloneAndOpensTheSession() {
    var p = v2()
    p.ask(1)
    #expect(p.take() == ["license 1 c1"])
    p.licensed(1, token: "t1", period: .number(60))
    #expect(p.take() == ["started", "got 1"])
    #expect(p.machine.session.period == 60_000)
    p.pass(60_000)
    #expect(p.take() == ["payload?"])
  }

  @Test func secondRequest_whileTheFirstOpens_waitsAndJoinsItsSession() {
    var p = v2()
    p.ask(1)
    p.ask(2)
    #expect(p.take() == ["license 1 c1"])
    p.licensed(1, token: "t1")
    #expect(p.take() == ["started", "got 1", "license 2 c1,t1"])
  }

  @Test func limit_onTheLicenceReply_isASetupError() {
    var p = v2()
    p.ask(1)
    p.denied(1, 1007)
    #expect(p.take() == ["license 1 c1", "setup error: LIMIT", "failed 1: LIMIT 1007"])
    #expect(p.lastError?.origin == .ssm)
  }

  @Test func limit_whileOurOwnTeardownIsUnderWay_isTriedOnceMore() {
    var p = v2()
    p.ask(1)
    p.ownTeardowns = .underWay
    p.denied(1, 1007)
    #expect(p.take() == ["license 1 c1"])
    p.othersTornDown()
    #expect(p.take() == ["license 1 c1"])
    p.denied(1, 1007)
    #expect(p.take() == ["setup error: LIMIT", "failed 1: LIMIT 1007"])
  }

  @Test func otherRefusal_leavesTheNextRequestFreeToOpen() {
    var p = v2()
    p.ask(1)
    p.denied(1, 4005)
    #expect(p.take() == ["license 1 c1", "failed 1: REFUSED 4005"])
    p.ask(2)
    p.licensed(2, token: "t1")
    #expect(p.take() == ["license 2 c1", "started", "got 2"])
  }

  @Test func replyWithoutToken_playsWithoutASessionAndSaysSoOnce() {
    var p = v2()
    p.ask(1)
    p.licensed(1)
    #expect(p.take() == ["license 1 c1", "no session", "got 1"])
    #expect(p.machine.sessionState == .none)
    p.ask(2)
    p.licensed(2)
    #expect(p.take() == ["license 2 c1", "got 2"])
    p.close(.teardown)
    #expect(p.take() == ["released", "closed"])
    #expect(p.machine.isFinished)
  }

  @Test func laterReplyWithToken_opensTheSession() {
    var p = v2()
    p.ask(1)
    p.licensed(1)
    p.ask(2)
    p.ask(3)
    #expect(p.take() == ["license 1 c1", "no session", "got 1", "license 2 c1"])
    p.licensed(2, token: "t1", period: .number(60))
    #expect(p.take() == ["started", "got 2", "license 3 c1,t1"])
    #expect(p.machine.sessionState == .active)
    p.close(.teardown)
    #expect(p.take() == ["failed 3: CLOSED"])
    p.licensed(3, token: "t2")
    #expect(p.take() == ["teardown t2"])
  }

  @Test func laterReplyAtTheLimit_isASetupError() {
    var p = v2()
    p.ask(1)
    p.licensed(1)
    p.ask(2)
    p.denied(2, 1007)
    #expect(p.take().suffix(2) == ["setup error: LIMIT", "failed 2: LIMIT 1007"])
    #expect(p.machine.sessionState == .failed)
  }

  @Test func serviceCertificate_whoseReplyHasAToken_opensTheSession() {
    var p = v2()
    p.ask(1, .widevine, auxiliary: true)
    p.licensed(1, token: "t1")
    p.ask(2, .widevine)
    #expect(p.take() == ["license 1 c1", "got 1", "started", "license 2 c1,t1"])
  }

  /// The server may open a session when it answers the request for the service certificate. If the server ends the
  /// connection instead of replying, the machine does not repeat the request, because the server could then open a
  /// second session.
  @Test func serviceCertificate_whoseReplyIsLost_isNotRepeated_andMayBeAnOrphan() {
    var p = v2()
    p.ask(1, .widevine, auxiliary: true)
    var failure = WireFailure(.transport, mayHaveTakenEffect: true)
    failure.endedKeptConnection = true
    p.failed(1, failure)
    #expect(p.take() == ["license 1 c1", "failed 1: TRANSPORT"])
    #expect(p.lastError?.orphanPossible == true)
    p.ask(2, .widevine)
    p.licensed(2, token: "t2")
    #expect(p.take() == ["license 2 c1", "started", "got 2"])
    p.close(.leave)
    #expect(p.take().contains("closed, orphan possible"))
  }

  /// A refused request for the service certificate has opened no session.
  @Test func serviceCertificate_refused_isNoOrphan() {
    var p = v2()
    p.ask(1, .widevine, auxiliary: true)
    p.denied(1, 0, http: 403)
    #expect(p.take() == ["license 1 c1", "failed 1: HTTP"])
    #expect(p.lastError?.orphanPossible == false)
    p.close(.teardown)
    #expect(p.take().contains("closed"))
  }

  @Test(arguments: [(Int64(1007), Int32(200)), (0, 403), (0, 500), (4027, 400)])
  func refusalWithAToken_isASessionThatIsGivenBack(_ code: Int64, _ http: Int32) {
    var p = v2(callback: true)
    p.ask(1)
    p.giveToken("c1")
    var failure = WireFailure(code == 0 ? .http : .refused, httpStatus: http, serviceCode: code)
    failure.token = secret("t1")
    p.failed(1, failure)
    #expect(p.take().contains("started"))
    p.close(.teardown)
    #expect(p.take() == ["teardown t1"])
  }

  @Test func periodMissing_isTheFallback_zeroIsNone() {
    var p = v2 { $0.periodFallback = 7000 }
    p.ask(1)
    p.licensed(1, token: "t1")
    #expect(p.machine.session.period == 7000)
    var q = v2()
    q.ask(1)
    q.licensed(1, token: "t1", period: .number(0))
    _ = q.take()
    q.pass(100_000)
    #expect(q.take() == [])
  }

  @Test(arguments: [
    (KeySystem.fairPlay, nil, "payload?"), (.widevine, nil, "heartbeat t1"), (.playReady, false, "heartbeat t1"),
    (.clearKey, true, "payload?")
  ])
  func mode_isTheFlagsElseTheKeySystems(_ keySystem: KeySystem, _ flag: Bool?, _ expected: String) {
    var p = v2()
    p.ask(1, keySystem)
    p.licensed(1, token: "t1", enforced: flag, period: .number(60))
    _ = p.take()
    p.pass(60_000)
    #expect(p.take() == [expected])
  }

  @Test func close_byDefaultLeaves_zapTearsDown() {
    var p = v2()
    p.ask(1)
    p.licensed(1, token: "t1")
    _ = p.take()
    #expect(p.machine.ending(isZap: false) == .leave)
    #expect(p.machine.ending(isZap: true) == .teardown)
    p.close(p.machine.ending(isZap: true))
    #expect(p.take() == ["teardown t1"])
    p.answer(.teardown, Say.done)
    #expect(p.take() == ["released", "ended", "closed"])
  }

  @Test func close_whileTheOpeningReplyIsOnItsWay_tearsItDown() {
    var p = v2()
    p.ask(1)
    p.close(.teardown)
    #expect(p.take() == ["license 1 c1", "failed 1: CLOSED"])
    p.licensed(1, token: "t1")
    #expect(p.take() == ["teardown t1"])
    p.answer(.teardown, Say.done)
    #expect(p.take() == ["released", "ended", "closed"])
  }

  @Test func close_whileTheOpeningReplyIsLost_isAnOrphan() {
    var p = v2()
    p.ask(1)
    p.failed(1, WireFailure(.timeout, mayHaveTakenEffect: true))
    #expect(p.lastError?.orphanPossible == true)
    _ = p.take()
    p.close(.teardown)
    #expect(p.take() == ["released", "closed, orphan possible"])
  }

  @Test func unreadableOpeningReplyWithToken_isASessionThatIsGivenBack() {
    var p = v2()
    p.ask(1)
    var failure = WireFailure(.protocolError, httpStatus: 200, mayHaveTakenEffect: true)
    failure.token = secret("t1")
    p.failed(1, failure)
    #expect(p.take() == ["license 1 c1", "started", "failed 1: PROTOCOL"])
    p.close(.teardown)
    #expect(p.take() == ["teardown t1"])
  }

  @Test func renewal_beforeAnyLicence_isRefused() {
    var p = v2()
    p.ask(1, renewal: true)
    #expect(p.take() == ["failed 1: STATE"])
  }

  @Test func furtherLicence_withCallback_opensAnewWithTheFreshToken() {
    var p = v2(callback: true)
    p.ask(1)
    p.licensed(1, token: "t1")
    _ = p.take()
    p.ask(2)
    #expect(p.take() == ["token?"])
    p.giveToken("c2")
    #expect(p.take() == ["teardown t1"])
    p.answer(.teardown, Say.done)
    #expect(p.take() == ["ended", "license 2 c2"])
    p.licensed(2, token: "t2")
    #expect(p.take() == ["started", "got 2"])
  }

  // MARK: Customer SSM

  private func customer() -> PlaybackDriver {
    var driver = PlaybackDriver(
      steady {
        $0.opening = .customer
        $0.needsToken = false
        $0.resetup = .never
      }, content: nil)
    driver.start()
    return driver
  }

  @Test func customer_firstLicenceOpens_enforcedAlsoForWidevine() {
    var p = customer()
    p.ask(1, .widevine)
    #expect(p.take() == ["license 1 "])
    p.licensed(1, token: "-", enforced: true, period: .number(10))
    #expect(p.take() == ["started", "got 1"])
    p.pass(10_000)
    #expect(p.take() == ["payload?"])
  }

  @Test func customer_laterResponse_changesThePeriod() {
    var p = customer()
    p.ask(1)
    p.licensed(1, token: "-", enforced: true, period: .number(10))
    p.pass(10_000)
    p.ask(2, renewal: true)
    p.licensed(2, token: "-", enforced: true, period: .number(30))
    _ = p.take()
    p.pass(29_000)
    #expect(p.take() == [])
    p.pass(1_000)
    #expect(p.take() == ["payload?"])
    p.ask(3, renewal: true)
    p.licensed(3, token: "-", enforced: true, period: .number(0))
    _ = p.take()
    p.pass(1_000_000)
    #expect(p.take() == [])
  }
}
