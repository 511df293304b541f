import Testing

@testable import UsherCore

@Suite struct PlaybackMachineTests {
  @Test func license_askedBeforeTheSession_waitsForItAndCarriesBothTokens() {
    var p = PlaybackDriver()
    p.ask(1)
    p.start()
    #expect(p.take() == ["setup c1"])
    p.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(p.take() == ["started", "license 1 c1,t1"])
    p.licensed(1)
    #expect(p.take() == ["got 1"])
  }

  @Test func contentToken_keepsTheReferenceToItsMemoryUnchanged_soLeakCheckersFindIt() {
    let token = Secret(Array("c1".utf8))
    let known = PlaybackMachine.ContentToken.known(token)
    withUnsafeBytes(of: token) { plain in
      withUnsafeBytes(of: known) { kept in #expect(Array(plain) == Array(kept)) }
    }
  }

  @Test func renewal_carriesTheSessionTokenOnly() {
    var p = PlaybackDriver.active()
    p.ask(1, renewal: true)
    #expect(p.take() == ["renewal 1 t1"])
    p.licensed(1, token: "t2")
    p.ask(2, renewal: true)
    #expect(p.take() == ["got 1", "renewal 2 t2"])
  }

  @Test func license_whileABeatIsUnderWay_waitsForTheNewToken() {
    var p = PlaybackDriver.active()
    p.run(until: 60_000)
    p.ask(1)
    #expect(p.take() == ["heartbeat t1"])
    p.answer(.heartbeat, Say.token("t2"))
    #expect(p.take() == ["kept alive", "license 1 c1,t2"])
  }

  @Test func license_afterFailedSetup_getsTheStoredError() {
    var p = PlaybackDriver()
    p.start()
    p.ask(1)
    p.answer(.setup, Say.refused(1007))
    p.ask(2)
    p.ask(3, renewal: true)
    #expect(
      p.take() == [
        "setup c1", "setup error: LIMIT", "failed 1: LIMIT 1007", "failed 2: LIMIT 1007", "failed 3: LIMIT 1007"
      ])
    #expect(p.lastError?.operation == .renewal)
    #expect(p.machine.sessionState == .failed)
  }

  @Test func license_waitingWhenTheHeartbeatIsRefused_getsItsError() {
    var p = PlaybackDriver.active()
    p.run(until: 60_000)
    p.ask(1)
    p.answer(.heartbeat, Say.refused(1006))
    #expect(p.take() == ["heartbeat t1", "heartbeat error: REFUSED", "failed 1: SESSION 1006"])
  }

  @Test func licenseReply_late_isIgnoredByRequestIdentity() {
    var p = PlaybackDriver.active()
    p.ask(1)
    guard case .license(let request, _) = p.waiting.last else { return }
    p.licensed(1)
    _ = p.take()
    p.reply(request, .success(SessionFields()))
    p.reply(request, .failure(WireFailure(.transport), .license))
    p.reply(999, .success(SessionFields()))
    #expect(p.take() == [])
  }

  @Test func license_failed_isToldWithMustStop() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.denied(1, 4000)
    #expect(p.take() == ["license 1 c1,t1", "failed 1: REFUSED 4000"])
    #expect(p.lastError?.mustStop == true && p.lastError?.origin == .license)
  }

  @Test func license_deniedBecauseABeatRotatedTheToken_isResentOnceWithTheNewest() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.run(until: 60_000)
    p.answer(.heartbeat, Say.token("t2"))
    p.denied(1, 1006)
    #expect(p.take() == ["license 1 c1,t1", "heartbeat t1", "kept alive", "license 1 c1,t2"])
    p.denied(1, 1006)
    #expect(p.take() == ["failed 1: REFUSED 1006"])
  }

  @Test func license_whoseKeptConnectionEnded_isSentOnceMore_alsoWithoutASession() {
    var lost = WireFailure(.transport, mayHaveTakenEffect: true)
    lost.endedKeptConnection = true
    var p = PlaybackDriver.active()
    p.ask(1)
    #expect(p.take() == ["license 1 c1,t1"])
    p.failed(1, lost)
    #expect(p.take() == ["license 1 c1,t1"])
    p.failed(1, lost)
    #expect(p.take() == ["failed 1: TRANSPORT"])
    var q = PlaybackDriver(steady { $0.hasSSM = false })
    q.ask(1)
    q.start()
    q.failed(1, lost)
    #expect(q.take() == ["license 1 c1", "license 1 c1"])
  }

  @Test func license_deniedWhileABeatIsUnderWay_waitsForItAndIsResent() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.run(until: 60_000)
    p.denied(1, 0, http: 401)
    #expect(p.take() == ["license 1 c1,t1", "heartbeat t1"])
    p.answer(.heartbeat, Say.token("t2"))
    #expect(p.take() == ["kept alive", "license 1 c1,t2"])
  }

  @Test func license_withoutSSM_goesOutAtOnceWithTheContentToken() {
    var p = PlaybackDriver(steady { $0.hasSSM = false })
    p.ask(1)
    #expect(p.take() == [])
    p.start()
    #expect(p.take() == ["license 1 c1"])
    p.licensed(1)
    p.close()
    #expect(p.take() == ["got 1", "released", "closed"])
    #expect(p.machine.isFinished)
  }

  @Test func license_withoutSSMAndToken_fails() {
    var p = PlaybackDriver(steady { $0.hasSSM = false }, content: nil)
    p.start()
    p.ask(1)
    #expect(p.take() == ["token awaited"])
    p.tokenWaitEnds()
    #expect(p.take() == ["failed 1: NO_TOKEN"])
  }

  @Test func license_withoutSSMAndToken_goesOnWithTheOneGivenLate() {
    var p = PlaybackDriver(steady { $0.hasSSM = false }, content: nil)
    p.start()
    p.ask(1)
    let isTaken = p.set("late")
    #expect(isTaken)
    #expect(p.take() == ["token awaited", "license 1 late"])
    let isTakenToo = p.set("another")
    #expect(!isTakenToo)
  }

  // MARK: Keep-alive mode

  @Test(arguments: [KeySystem.fairPlay, .playReady, .clearKey])
  func mode_licenseWithSessionToken_isEnforced(keySystem: KeySystem) {
    var p = PlaybackDriver.active()
    p.ask(1, keySystem)
    p.licensed(1, token: "t2")
    _ = p.take()
    p.run(until: 60_000)
    #expect(p.take() == ["payload?"])
    p.ask(2, keySystem, renewal: true)
    p.licensed(2, token: "t3")
    #expect(p.take() == ["renewal 2 t2", "got 2", "kept alive"])
    p.close()
    #expect(p.take() == ["teardown t3"])
  }

  @Test(arguments: [KeySystem.fairPlay, .playReady, .clearKey])
  func mode_licenseWithoutSessionToken_isHeartbeat(keySystem: KeySystem) {
    var p = PlaybackDriver.active()
    p.ask(1, keySystem)
    p.licensed(1)
    _ = p.take()
    p.run(until: 60_000)
    #expect(p.take() == ["heartbeat t1"])
  }

  @Test(arguments: [(true, false), (nil, false), (false, true)] as [(Bool?, Bool)])
  func mode_widevine_goesByItsFlag(enforced: Bool?, beats: Bool) {
    var p = PlaybackDriver.active()
    p.ask(1, .widevine)
    p.licensed(1, enforced: enforced)
    _ = p.take()
    p.run(until: 200_000)
    #expect(p.take().contains("heartbeat t1") == beats)
  }

  @Test func mode_widevineOctets_keepsHeartbeats() {
    var p = PlaybackDriver.active()
    p.ask(1, .widevine, raw: true)
    p.licensed(1)
    _ = p.take()
    p.run(until: 60_000)
    #expect(p.take() == ["heartbeat t1"])
  }

  @Test func serviceCertificate_decidesNothingAndIsNotTheFirstLicense() {
    var p = PlaybackDriver.active(hasTokenCallback: true)
    p.ask(1, .widevine, raw: true, auxiliary: true)
    p.licensed(1)
    p.ask(2, .widevine)
    #expect(p.take() == ["license 1 c1,t1", "got 1", "license 2 c1,t1"])
    #expect(p.machine.session.mode == .heartbeat)
  }

  @Test func payload_failed_isRetriedThenToldAsHeartbeatError() {
    var p = PlaybackDriver.active(
      steady {
        $0.keepAlive = .renewal
        $0.retry = 0
      })
    p.run(until: 60_000)
    p.payloadFails(.callback)
    #expect(p.take() == ["payload?", "heartbeat error: CALLBACK"])
    p.run(until: 120_000)
    #expect(p.take() == ["payload?"])
  }

  @Test func renewal_slow_isMissedOnceAndNotAskedForTwice() {
    var p = PlaybackDriver.active(steady { $0.keepAlive = .renewal })
    p.run(until: 60_000)
    p.ask(1, renewal: true)
    p.run(until: 119_000)
    #expect(p.take() == ["payload?", "renewal 1 t1"])
    p.run(until: 185_000)
    #expect(p.take() == ["heartbeat error: RENEWAL_MISSED"])
    p.licensed(1, token: "t2")
    #expect(p.take() == ["got 1", "kept alive", "recovered"])
  }

  @Test func renewal_slowAndRefused_failsTheSession() {
    var p = PlaybackDriver.active(steady { $0.keepAlive = .renewal })
    p.run(until: 60_000)
    p.ask(1, renewal: true)
    p.run(until: 125_000)
    _ = p.take()
    p.denied(1, 4005)
    #expect(p.take() == ["failed 1: REFUSED 4005", "heartbeat error: REFUSED"])
  }

  // MARK: Licence hooks

  @Test func reply_whileTheHookReadsIt_hasReplacedTheToken() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.arrived(1, token: "t2")
    #expect(p.take() == ["license 1 c1,t1"])
    p.pass(60_000)
    #expect(p.take() == ["payload?"])
    p.ask(2, renewal: true)
    #expect(p.take() == ["renewal 2 t2"])
    p.arrived(2, token: "t3")
    #expect(p.take() == ["kept alive"])
    p.close()
    #expect(p.take() == ["failed 1: CLOSED", "failed 2: CLOSED", "teardown t3"])
  }

  @Test func hook_thatFailsAfterTheReply_failsOnlyTheLicence() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.arrived(1, token: "t2")
    p.failed(1, WireFailure(.callback))
    #expect(p.take() == ["license 1 c1,t1", "failed 1: CALLBACK"])
    #expect(p.machine.session.isActive)
  }

  @Test func errorReply_withTheTokenOfItsRequest_doesNotBringAnOldTokenBack() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.ask(2)
    p.licensed(2, token: "t2")
    var failure = WireFailure(.http, httpStatus: 500)
    failure.token = secret("t1")
    p.failed(1, failure)
    _ = p.take()
    p.close()
    #expect(p.take() == ["teardown t2"])
  }

  @Test func errorReply_withANewToken_bringsIt() {
    var p = PlaybackDriver.active()
    p.ask(1)
    var failure = WireFailure(.http, httpStatus: 500)
    failure.token = secret("t2")
    p.failed(1, failure)
    _ = p.take()
    p.close()
    #expect(p.take() == ["teardown t2"])
  }

  // MARK: Token callback

  @Test func token_missingAtStart_isAskedForThenSetUp() {
    var p = PlaybackDriver(content: nil, hasTokenCallback: true)
    p.start()
    p.ask(1)
    p.ask(2)
    #expect(p.take() == ["token?"])
    p.giveToken("c1")
    p.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(p.take() == ["setup c1", "started", "license 1 c1,t1", "license 2 c1,t1"])
  }

  @Test func prepare_asksForTheTokenOnce() {
    var p = PlaybackDriver(content: nil, hasTokenCallback: true)
    p.prepare()
    p.prepare()
    #expect(p.take() == ["token?"])
    p.giveToken("c1")
    #expect(p.take() == [])
    p.start()
    #expect(p.take() == ["setup c1"])
    p.prepare()
    #expect(p.take() == [])
  }

  @Test func prepare_whoseTokenComesAfterTheStart_isNotAskedAgain() {
    var p = PlaybackDriver(content: nil, hasTokenCallback: true)
    p.prepare()
    p.start()
    p.giveToken("c1")
    #expect(p.take() == ["token?", "setup c1"])
  }

  @Test func prepare_withoutAnAnswer_isAskedAgainAtTheStart() {
    var p = PlaybackDriver(content: nil, hasTokenCallback: true)
    p.prepare()
    p.giveToken(nil)
    #expect(p.take() == ["token?"])
    p.start()
    p.giveToken(nil)
    #expect(p.take() == ["token?", "setup error: NO_TOKEN"])
  }

  @Test func prepare_withAToken_orWithoutACallback_asksNothing() {
    var known = PlaybackDriver(hasTokenCallback: true)
    known.prepare()
    #expect(known.take() == [])
    var silent = PlaybackDriver(content: nil)
    silent.prepare()
    #expect(silent.take() == [])
  }

  @Test func prepare_thenClose_reportsItsEndOnly() {
    var p = PlaybackDriver(content: nil, hasTokenCallback: true)
    p.prepare()
    p.close()
    p.giveToken("late")
    #expect(p.take() == ["token?", "released", "closed"])
  }

  @Test func token_neverComes_isSetupErrorAndFailsTheLicenses() {
    var p = PlaybackDriver(content: nil, hasTokenCallback: true)
    p.start()
    p.ask(1)
    p.giveToken(nil)
    #expect(p.take() == ["token?", "setup error: NO_TOKEN", "failed 1: NO_TOKEN"])
    #expect(p.lastError?.message.contains("token") == true)
    p.giveToken("late")
    #expect(p.take() == [])
    p.close()
    #expect(p.take() == ["released", "closed"])
  }

  @Test func token_withoutTokenAndCallback_isSetupError() {
    var p = PlaybackDriver(content: nil)
    p.start()
    #expect(p.take() == ["token awaited"])
    p.tokenWaitEnds()
    #expect(p.take() == ["setup error: NO_TOKEN"])
    let isTaken = p.set("too late")
    #expect(!isTaken)
  }

  @Test func token_withoutTokenAndCallbackAndWait_isSetupErrorAtOnce() {
    var p = PlaybackDriver(steady { $0.tokenWait = 0 }, content: nil)
    p.start()
    #expect(p.take() == ["setup error: NO_TOKEN"])
  }

  @Test func token_givenWhileAwaited_setsUp() {
    var p = PlaybackDriver(content: nil)
    p.start()
    let isTaken = p.set("late")
    #expect(isTaken)
    #expect(p.take() == ["token awaited", "setup late"])
    p.tokenWaitEnds()
    #expect(p.take() == [])
  }

  @Test func laterLicense_withCallback_setsTheSessionUpAnewWithTheFreshToken() {
    var p = PlaybackDriver.active(hasTokenCallback: true)
    p.ask(1)
    p.licensed(1)
    _ = p.take()
    p.ask(2)
    p.ask(3)
    #expect(p.take() == ["token?"])
    p.giveToken("c2")
    #expect(p.take() == ["teardown t1"])
    #expect(p.machine.sessionState == .pending)
    p.answer(.teardown, Say.done)
    #expect(p.take() == ["ended", "setup c2"])
    p.answer(.setup, Say.token("s1", period: .number(60)))
    #expect(p.take() == ["started", "license 2 c2,s1", "license 3 c2,s1"])
    p.close()
    p.licensed(2)
    p.licensed(3)
    p.answer(.teardown, Say.done)
    #expect(p.take() == ["failed 2: CLOSED", "failed 3: CLOSED", "teardown s1", "released", "ended", "closed"])
    #expect(p.machine.isFinished)
  }

  @Test func laterLicense_resetupNever_keepsTheSession() {
    var p = PlaybackDriver.active(steady { $0.resetup = .never }, hasTokenCallback: true)
    p.ask(1)
    p.licensed(1)
    p.ask(2)
    p.giveToken("c2")
    #expect(p.take() == ["license 1 c1,t1", "got 1", "token?", "license 2 c2,t1"])
  }

  @Test func laterLicense_withoutCallback_reusesTokenAndSession() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.licensed(1)
    p.ask(2)
    #expect(p.take() == ["license 1 c1,t1", "got 1", "license 2 c1,t1"])
  }

  @Test func laterLicense_resetupAlways_setsUpAnewWithTheSameToken() {
    var p = PlaybackDriver.active(steady { $0.resetup = .always })
    p.ask(1)
    p.licensed(1)
    _ = p.take()
    p.ask(2)
    #expect(p.take() == ["teardown t1"])
    p.answer(.teardown, Say.done)
    p.answer(.setup, Say.token("s1", period: .number(60)))
    #expect(p.take() == ["ended", "setup c1", "started", "license 2 c1,s1"])
  }

  @Test func laterLicense_callbackGivesNone_failsItAndTheSessionGoesOn() {
    var p = PlaybackDriver.active(hasTokenCallback: true)
    p.ask(1)
    p.licensed(1)
    p.ask(2)
    p.giveToken(nil)
    #expect(p.take() == ["license 1 c1,t1", "got 1", "token?", "failed 2: NO_TOKEN"])
    p.run(until: 60_000)
    #expect(p.take() == ["heartbeat t1"])
  }

  @Test func tokenAnswer_twice_countsOnce() {
    var p = PlaybackDriver(content: nil, hasTokenCallback: true)
    p.start()
    p.giveToken("c1")
    p.giveToken("c9")
    #expect(p.take() == ["token?", "setup c1"])
  }

  // MARK: Close

  @Test func close_licenseInFlight_failsItAndUsesTheTokenOfItsLateReply() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.close()
    #expect(p.take() == ["license 1 c1,t1", "failed 1: CLOSED"])
    p.licensed(1, token: "t2")
    #expect(p.take() == ["teardown t2"])
    p.answer(.teardown, Say.done)
    #expect(p.take() == ["released", "ended", "closed"])
    #expect(p.machine.isFinished)
  }

  @Test func close_beforeStart_neverSendsAnything() {
    var p = PlaybackDriver()
    p.ask(1)
    p.close(.teardown, .replaced)
    #expect(p.take() == ["failed 1: REPLACED", "released", "closed as replaced"])
    p.start()
    p.ask(2)
    #expect(p.take() == ["failed 2: REPLACED"])
    #expect(p.machine.isFinished)
  }

  @Test func close_setupInFlight_tearsDownAndClosesOnce() {
    var p = PlaybackDriver()
    p.start()
    p.ask(1)
    p.close()
    p.close()
    p.answer(.setup, Say.token("t1", period: .number(60)))
    p.answer(.teardown, Say.done)
    #expect(p.take() == ["setup c1", "failed 1: CLOSED", "teardown t1", "released", "ended", "closed"])
  }

  @Test func close_setupReplyLost_saysThatAnOrphanIsPossible() {
    var p = PlaybackDriver()
    p.start()
    p.close()
    p.answer(.setup, Say.lost)
    #expect(p.take() == ["setup c1", "released", "closed, orphan possible"])
  }

  @Test func close_setupReplyAfterTheCap_isTornDownBeforeItIsFinished() {
    var p = PlaybackDriver()
    p.start()
    p.close()
    p.run(until: 3000)
    #expect(p.take() == ["setup c1", "released", "closed, orphan possible"])
    #expect(!p.machine.isFinished)
    p.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(p.take() == ["teardown t1"])
    #expect(!p.machine.isFinished)
    p.answer(.teardown, Say.done)
    #expect(p.take() == [])
    #expect(p.machine.isFinished)
  }

  @Test func close_leave_keepsTheSessionAtTheHeadEnd() {
    var p = PlaybackDriver.active()
    p.close(.leave)
    #expect(p.take() == ["released", "left", "closed"])
    #expect(p.machine.isClosed && p.machine.session.isLeft)
  }

  @Test func close_whileTheTokenIsAsked_endsAtOnce() {
    var p = PlaybackDriver(content: nil, hasTokenCallback: true)
    p.start()
    p.close()
    p.giveToken("c1")
    #expect(p.take() == ["token?", "released", "closed"])
    #expect(p.machine.isFinished)
  }

  @Test func close_whileTheSessionIsReplaced_waitsForItsTeardown() {
    var p = PlaybackDriver.active(steady { $0.resetup = .always })
    p.ask(1)
    p.licensed(1)
    p.ask(2)
    _ = p.take()
    p.close()
    p.answer(.teardown, Say.done)
    #expect(p.take() == ["failed 2: CLOSED", "released", "ended", "closed"])
    #expect(p.machine.isFinished)
  }

  @Test func close_contested_stopsWaiting() {
    var p = PlaybackDriver()
    p.start()
    p.answer(.setup, Say.refused(1007), ownTeardowns: .underWay)
    p.close()
    p.othersTornDown()
    #expect(p.take() == ["setup c1", "released", "closed"])
  }

  @Test func abandoned_waitingLicense_isForgotten() {
    var p = PlaybackDriver()
    p.start()
    p.ask(1)
    let first = p.abandon(1)
    #expect(first)
    let second = p.abandon(1)
    #expect(!second)
    p.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(p.take() == ["setup c1", "started"])
  }

  @Test func replacedSession_whoseNewestTokenWasLost_isToldAtTheEnd() {
    var p = PlaybackDriver.active(steady { $0.resetup = .always })
    p.ask(1, .widevine)
    p.licensed(1, enforced: true)
    p.ask(2, .widevine, renewal: true)
    p.failed(2, WireFailure(.protocolError, mayHaveTakenEffect: true))
    p.ask(3, .widevine)
    p.answer(.teardown, Say.unreachable)
    p.pass(500)
    p.answer(.teardown, Say.refused(1006))
    p.answer(.setup, Say.token("u1", period: .number(60)))
    p.licensed(3, enforced: true)
    _ = p.take()
    p.close()
    p.answer(.teardown, Say.token("-"))
    #expect(p.take().contains { $0.contains("closed") && $0.contains("orphan possible") })
  }

  @Test func token_thatComesAfterTheSessionFailed_beginsNoOther() {
    var p = PlaybackDriver.active(hasTokenCallback: true)
    p.ask(1)
    p.licensed(1)
    p.ask(2)
    p.run(until: 60_000)
    p.answer(.heartbeat, Say.refused(1003))
    _ = p.take()
    p.giveToken("c2")
    #expect(p.take() == [])
    p.close()
    #expect(p.take() == ["teardown t1"])
  }

  @Test func abandonedRenewal_refusedBecauseAnotherReplacedItsToken_endsNothing() {
    var p = PlaybackDriver.active()
    p.ask(1, .widevine)
    p.licensed(1, enforced: true)
    p.ask(2, .widevine, renewal: true)
    p.ask(3, .widevine, renewal: true)
    _ = p.take()
    let isAbandoned = p.abandon(3)
    #expect(isAbandoned)
    p.licensed(2, token: "t2")
    p.denied(3, 1006)
    #expect(!p.take().contains { $0.hasPrefix("heartbeat error") })
    p.close()
    #expect(p.take() == ["teardown t2"])
  }

  @Test func abandoned_licenseInFlight_isStillReadForItsToken() {
    var p = PlaybackDriver.active()
    p.ask(1)
    let first = p.abandon(1)
    #expect(first)
    p.licensed(1, token: "t2")
    #expect(p.take() == ["license 1 c1,t1"])
    p.close()
    #expect(p.take() == ["teardown t2"])
  }

  @Test func state_throughALife_isWhatTheHeaderSays() {
    var p = PlaybackDriver()
    #expect(p.machine.sessionState == .pending)
    p.start()
    #expect(p.machine.sessionState == .pending)
    p.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(p.machine.sessionState == .active)
    p.run(until: 60_000)
    p.answer(.heartbeat, Say.http(503, retryAfter: .never))
    p.run(until: 120_000)
    p.answer(.heartbeat, Say.unreachable)
    p.run(until: 120_500)
    p.answer(.heartbeat, Say.unreachable)
    #expect(p.machine.sessionState == .doubtful)
    p.close()
    #expect(p.machine.sessionState == .ended)
    #expect(PlaybackDriver(steady { $0.hasSSM = false }).machine.sessionState == .none)
  }
}
