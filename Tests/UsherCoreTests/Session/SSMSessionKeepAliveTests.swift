import Testing

@testable import UsherCore

@Suite struct SSMSessionKeepAliveTests {
  @Test func heartbeats_answered_goOnAtFixedRateWithNewestToken() {
    var s = SessionDriver.active()
    for beat in 1...5 {
      s.run(until: Milliseconds(beat) * 60_000)
      #expect(s.take() == ["heartbeat t\(beat)"])
      s.pass(700)
      s.answer(.heartbeat, Say.token("t\(beat + 1)"))
      #expect(s.take() == ["kept alive"])
      #expect(s.timer == Milliseconds(beat + 1) * 60_000)
    }
  }

  @Test func heartbeat_answeredWithoutToken_keepsOldToken() {
    var s = SessionDriver.beating()
    s.answer(.heartbeat, Say.token(nil))
    s.run(until: 120_000)
    #expect(s.take() == ["kept alive", "heartbeat t1"])
  }

  @Test func heartbeat_withJitter_isEarlyByAtMostItsShareAndNeverLate() {
    for seed in 0..<50 as Range<UInt64> {
      var s = SessionDriver.active(SSPPolicy(), seed: seed)
      for beat in 1...20 as ClosedRange<UInt64> {
        let due = beat * 60_000
        let at = s.timer ?? .never
        #expect(at <= due && at >= due - 3000)
        s.run(until: at)
        s.answer(.heartbeat, Say.token("n"))
      }
    }
  }

  @Test func heartbeatDue_earlierStillInFlight_isNotSentTwice() {
    var s = SessionDriver.beating()
    s.sleep(until: 190_000)
    s.ring(at: 190_000)
    #expect(s.take() == [])
    s.answer(.heartbeat, Say.token("t2"))
    // The session immediately sends a single heartbeat, not all the heartbeats that it missed. The next heartbeats
    // follow the fixed schedule again.
    s.run(until: 190_000)
    #expect(s.take() == ["kept alive", "doubtful", "heartbeat t2"])
    s.answer(.heartbeat, Say.token("t3"))
    s.run(until: 239_999)
    #expect(s.take() == ["kept alive 70000 late"])
    s.run(until: 240_000)
    #expect(s.take() == ["heartbeat t3"])
  }

  @Test func heartbeat_overdueBySleep_makesSessionDoubtfulUntilAnswered() {
    var s = SessionDriver.active()
    s.sleep(until: 200_000)
    #expect(s.take() == ["doubtful", "heartbeat t1"])
    #expect(s.session.isDoubtful)
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.take() == ["kept alive 140000 late"])
    #expect(!s.session.isDoubtful)
    #expect(s.timer == 240_000)
  }

  @Test func heartbeat_overdueAndRefused_isHeartbeatError() {
    var s = SessionDriver.active()
    s.sleep(until: 500_000)
    s.answer(.heartbeat, Say.refused(1006))
    #expect(s.take() == ["doubtful", "heartbeat t1", "heartbeat failed: REFUSED 1006"])
    #expect(s.lastError?.mustStop == true)
  }

  @Test func resumed_beforeDue_doesNothing() {
    var s = SessionDriver.active()
    s.pass(59_000)
    s.resume()
    #expect(s.take() == [])
  }

  @Test func heartbeat_busyMachineLate_isNotDoubtful() {
    var s = SessionDriver.active()
    s.sleep(until: 60_900)
    #expect(s.take() == ["heartbeat t1"])
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.take() == ["kept alive 900 late"])
  }

  @Test(arguments: [
    Say.unreachable, Say.http(500), Say.http(503), Say.http(429), Say.unreadable, Say.refused(4001, http: 503)
  ])
  func heartbeat_failedInPassing_isRetriedAfterOneTwoFourSeconds(outcome: SSMOutcome) {
    var s = SessionDriver.beating()
    for wait in [1000, 2000, 4000, 8000] as [Milliseconds] {
      s.answer(.heartbeat, outcome)
      #expect(s.timer == s.now + wait)
      #expect(s.take() == [])
      s.pass(wait)
      #expect(s.take() == ["heartbeat t1"])
    }
  }

  /// The lease ends two periods after set-up. While the server is down, the session retries more often as the end
  /// of the lease approaches.
  @Test func retries_becomeDenserUntilTheLeaseEnds_thenItIsAnOutage() {
    var s = SessionDriver.beating()
    var sent: [Milliseconds] = [s.now]
    while s.story.isEmpty || s.story.last == "heartbeat t1", sent.count < 100 {
      s.answer(.heartbeat, Say.unreachable)
      guard s.story.last != "heartbeat failed: TRANSPORT", let at = s.timer else { break }
      s.run(until: at)
      sent.append(s.now)
    }
    #expect(s.lastError?.mustStop == true)
    #expect(s.take().last == "heartbeat failed: TRANSPORT")
    #expect((120_000...121_000).contains(sent.last ?? 0), "the server's lease ends a moment later: \(sent)")
    #expect((15...30).contains(sent.count), "\(sent)")
    for (earlier, later) in zip(sent, sent.dropFirst()) {
      #expect(later - earlier <= max(500, Milliseconds(120_000).since(earlier) / 4), "\(sent)")
    }
    #expect(s.timer == s.now, "the keep-alive that was due meanwhile")
  }

  /// The first two attempts of a keep-alive fail, and the third one succeeds. The session counts the new lease from the
  /// sending of the third attempt (at 63 s), not from the time at which the keep-alive was due (60 s).
  @Test func retries_afterALateAnswer_useTheWholeLease() {
    var s = SessionDriver.beating()
    s.answer(.heartbeat, Say.unreachable)
    s.run(until: 61_000)
    s.answer(.heartbeat, Say.unreachable)
    s.run(until: 63_000)
    s.answer(.heartbeat, Say.token("t2"))
    s.run(until: 120_000)
    s.answer(.heartbeat, Say.http(503, retryAfter: 62_000))
    #expect(s.timer == 182_000)
    #expect(s.take().last == "heartbeat t2")
  }

  /// If a connection hangs, the keep-alive on it times out after a part of the lease, and the next attempt follows
  /// soon.
  @Test func timeOuts_ofRetries_leaveTimeForSeveralAttempts() {
    var s = SessionDriver.beating(period: 5)
    var attempts: [Milliseconds] = []
    while attempts.count < 20, !s.story.contains("heartbeat failed: TIMEOUT") {
      let timeout = s.session.keepAliveTimeout(now: s.now)
      attempts.append(timeout)
      #expect(s.now + timeout <= 10_000 + 625 + 300, "an attempt ends with the lease, or a moment later")
      s.run(until: s.now + timeout)
      s.answer(.heartbeat, .failure(WireFailure(.timeout, mayHaveTakenEffect: true)))
      if let at = s.timer { s.run(until: at) }
    }
    #expect((5...10).contains(attempts.count) && attempts.first == 1875, "\(attempts)")
    #expect(attempts.dropFirst().allSatisfy { $0 <= 1562 }, "\(attempts)")
  }

  /// The server does not answer. An attempt is in flight at every moment of the last second of the lease, and for
  /// 300 ms after its end. Each attempt in that second opens more connections until one is established.
  @Test(arguments: [5, 60] as [Double])
  func timeOuts_inTheLastSecondOfTheLease_areFollowedByTheNextAttemptAtOnce(period: Double) {
    var s = SessionDriver.beating(period: period)
    let leaseEnd = 2 * Milliseconds(period * 1000)
    var attempts: [ClosedRange<Milliseconds>] = []
    #expect(s.session.connectsAgainFrom == .never, "the first attempt may use a connection that is established")
    while !s.story.contains("heartbeat failed: TIMEOUT"), attempts.count < 100 {
      let end = s.now + s.session.keepAliveTimeout(now: s.now)
      attempts.append(s.now...end)
      s.run(until: end)
      s.answer(.heartbeat, Say.lost)
      if let at = s.timer, !s.story.contains("heartbeat failed: TIMEOUT") {
        s.run(until: at)
        #expect(s.session.connectsAgainFrom == leaseEnd - 1000)
      }
    }
    let idle = ((leaseEnd - 1000)...(leaseEnd + 300)).filter { moment in !attempts.contains { $0.contains(moment) } }
    #expect(idle == [], "no attempt is in flight at these moments: \(attempts)")
    let last = attempts.filter { $0.lowerBound > leaseEnd - 1000 }
    #expect(last.count <= 6, "\(last)")
    #expect((attempts.last?.upperBound ?? 0) <= leaseEnd + 1000, "\(attempts)")
    s.run(until: s.now)
    #expect(s.session.connectsAgainFrom == .never, "the lease is over")
  }

  /// The server replies with an error, or refuses the connection. The server may be overloaded, so the session waits
  /// before the next attempt, even in the last second of the lease.
  @Test(arguments: [false, true])
  func failures_inTheLastSecondOfTheLease_areFollowedByAPause(hasReply: Bool) {
    var s = SessionDriver.beating()
    var sent: [Milliseconds] = []
    while s.lastError == nil, sent.count < 100 {
      sent.append(s.now)
      s.answer(.heartbeat, hasReply ? Say.http(503) : Say.unreachable)
      if let at = s.timer, s.lastError == nil { s.run(until: at) }
    }
    for (earlier, later) in zip(sent, sent.dropFirst()) { #expect(later - earlier >= 300, "\(sent)") }
    #expect(sent.filter { $0 > 119_000 }.count <= 6, "\(sent)")
  }

  @Test func heartbeat_retried_countsLatenessFromDue() {
    var s = SessionDriver.beating()
    s.pass(200)
    s.answer(.heartbeat, Say.unreachable)
    s.pass(1000)
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.take() == ["heartbeat t1", "kept alive 1000 late"])
    #expect(s.timer == 120_000)
  }

  @Test func retryAfter_withinTheLease_isHonoured() {
    var s = SessionDriver.beating()
    s.answer(.heartbeat, Say.http(503, retryAfter: 50_000))
    #expect(s.timer == 110_000)
  }

  @Test(arguments: [60_001, 120_000, .max] as [Milliseconds])
  func retryAfter_beyondTheLease_isRetriedWhenTheLeaseEnds(pause: Milliseconds) {
    var s = SessionDriver.beating()
    s.answer(.heartbeat, Say.http(503, retryAfter: pause))
    #expect(s.timer == 120_000)
    s.run(until: 120_000)
    s.answer(.heartbeat, Say.http(503, retryAfter: pause))
    #expect(s.timer == 120_500)
    s.run(until: 120_500)
    s.answer(.heartbeat, Say.http(503, retryAfter: pause))
    #expect(s.take() == ["heartbeat t1", "heartbeat t1", "heartbeat failed: HTTP"])
  }

  /// The lease is over. The pause that the server asked for with Retry-After is longer than the time until the next
  /// keep-alive is due. So the next keep-alive is the next attempt.
  @Test func retryAfter_duringAnOutage_waitsForTheSchedule() {
    var s = SessionDriver.active(steady { $0.retry = 500 })
    s.run(until: 60_000)
    s.answer(.heartbeat, Say.http(503, retryAfter: .max))
    s.run(until: 90_000)
    s.answer(.heartbeat, Say.http(503, retryAfter: .max))
    s.run(until: 90_500)
    s.answer(.heartbeat, Say.http(503, retryAfter: .max))
    s.run(until: 120_000)
    _ = s.take()
    s.answer(.heartbeat, Say.http(503, retryAfter: 30_001))
    #expect(s.timer == 180_000)
    #expect(s.take() == [])
  }

  @Test func heartbeat_shortPeriod_isRetriedInsideIt() {
    var s = SessionDriver.beating(period: 1)
    s.answer(.heartbeat, Say.unreachable)
    #expect(s.timer == 1125)
    s.run(until: 1125)
    s.answer(.heartbeat, Say.unreachable)
    #expect(s.timer == 1343)
  }

  @Test func outage_overSeveralPeriods_isToldOnceAndItsEndToo() {
    var s = SessionDriver.active(steady { $0.retry = 0 })
    for period in 1...4 as ClosedRange<UInt64> {
      s.run(until: period * 60_000)
      s.answer(.heartbeat, Say.unreachable)
    }
    #expect(s.take() == ["heartbeat t1", "heartbeat failed: TRANSPORT", "heartbeat t1", "heartbeat t1", "heartbeat t1"])
    #expect(s.session.isDoubtful)
    s.run(until: 300_000)
    s.answer(.heartbeat, Say.token("t2"))
    let end = s.take()
    #expect(end.first == "heartbeat t1" && end.last == "recovered" && end.count == 3)
    #expect(!s.session.isDoubtful)
    // A second outage begins; the session reports this outage too.
    s.run(until: 360_000)
    s.answer(.heartbeat, Say.unreachable)
    #expect(s.take() == ["heartbeat t2", "heartbeat failed: TRANSPORT"])
  }

  @Test func outage_tooManyPeriods_stopsBeatingButTearsDownAtClose() {
    var s = SessionDriver.active(
      steady {
        $0.retry = 0
        $0.failuresMax = 3
      })
    for period in 1...3 as ClosedRange<UInt64> {
      s.run(until: period * 60_000)
      s.answer(.heartbeat, Say.unreachable)
    }
    #expect(s.take() == ["heartbeat t1", "heartbeat failed: TRANSPORT", "heartbeat t1", "heartbeat t1"])
    #expect(s.timer == nil)
    s.run(until: 1_000_000)
    #expect(s.take() == [])
    s.close()
    #expect(s.take() == ["teardown t1"])
  }

  @Test func outage_withoutBound_goesOnForever() {
    var s = SessionDriver.active(
      steady {
        $0.retry = 0
        $0.failuresMax = nil
      })
    for period in 1...500 as ClosedRange<UInt64> {
      s.run(until: period * 60_000)
      s.answer(.heartbeat, Say.unreachable)
    }
    #expect(s.session.isActive)
    #expect(s.take().filter { $0.hasPrefix("heartbeat failed") }.count == 1)
  }

  @Test(arguments: [1000, 1003, 1004, 1008] as [Int64])
  func heartbeat_refused_isToldAtOnceAndTornDownAtClose(code: Int64) {
    var s = SessionDriver.beating()
    s.answer(.heartbeat, Say.refused(code))
    #expect(s.take() == ["heartbeat failed: REFUSED \(code)"])
    #expect(s.timer == nil)
    s.run(until: 1_000_000)
    #expect(s.take() == [])
    s.close()
    #expect(s.take() == ["teardown t1"])
  }

  @Test func heartbeat_refusedWithBare4xx_isToldAtOnce() {
    var s = SessionDriver.beating()
    s.answer(.heartbeat, Say.http(403))
    #expect(s.take() == ["heartbeat failed: HTTP"])
    #expect(s.timer == nil)
  }

  @Test func heartbeat_ofUnknownSession_isNotTornDown() {
    var s = SessionDriver.beating()
    s.answer(.heartbeat, Say.refused(1006))
    s.close()
    #expect(s.take() == ["heartbeat failed: REFUSED 1006", "released", "ended"])
    #expect(s.session.isFinished)
  }

  @Test func heartbeat_staleBecauseALicenseRotatedTheToken_isResentWithNewest() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.licenseAnswered(token: "t2")
    s.answer(.heartbeat, Say.refused(1006))
    #expect(s.take() == ["heartbeat t1", "heartbeat t2"])
    s.answer(.heartbeat, Say.token("t3"))
    #expect(s.take() == ["kept alive"])
  }

  @Test func heartbeat_unknownWhileALicenseIsUnderWay_waitsForItsToken() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.run(until: 60_000)
    s.answer(.heartbeat, Say.refused(1006))
    #expect(s.take() == ["heartbeat t1"])
    s.licenseAnswered(token: "t2")
    #expect(s.take() == ["heartbeat t2"])
  }

  @Test func heartbeat_unknownAndTheLicenseBroughtNoToken_isHeartbeatError() {
    var s = SessionDriver.active()
    s.licenseSent()
    s.licenseSent()
    s.run(until: 60_000)
    s.answer(.heartbeat, Say.refused(1006))
    s.licenseAnswered()
    #expect(s.take() == ["heartbeat t1"])
    s.licenseAnswered()
    #expect(s.take() == ["heartbeat failed: REFUSED 1006"])
  }

  @Test func heartbeatReply_late_isIgnoredByIdentity() {
    var s = SessionDriver.beating()
    let first = s.waiting[0]
    s.answer(.heartbeat, Say.token("t2"))
    s.answer(first, Say.token("t9"))
    s.answer(first, Say.refused(1006))
    #expect(s.take() == ["kept alive"])
    #expect(text(s.session.token) == "t2")
  }

  @Test func period_inBeatReply_isIgnoredByDefault() {
    var s = SessionDriver.beating()
    s.answer(.heartbeat, Say.token("t2", period: .number(5)))
    #expect(s.timer == 120_000)
  }

  @Test func period_inBeatReply_isTakenWhenAsked() {
    var s = SessionDriver.beating(steady { $0.periodUpdates = true })
    s.pass(400)
    s.answer(.heartbeat, Say.token("t2", period: .number(5)))
    #expect(s.timer == 65_000)
    s.run(until: 65_000)
    s.answer(.heartbeat, Say.token("t3", period: .number(-5)))
    #expect(s.timer == 70_000)
  }

  @Test func ready_whileBeatInFlight_isFalse() {
    var s = SessionDriver.beating()
    #expect(s.session.isActive && !s.session.isReady)
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.session.isReady)
  }
}

@Suite struct SSMSessionEnforcedTests {
  private func enforced(_ policy: SSPPolicy = steady()) -> SessionDriver {
    var s = SessionDriver.active(policy)
    s.decide(.enforced)
    return s
  }

  @Test func renewal_dueAndMade_goesOnAtFixedRate() {
    var s = enforced()
    for round in 1...3 as ClosedRange<UInt64> {
      s.run(until: round * 60_000)
      #expect(s.take() == ["renewal due"])
      s.pass(500)
      s.renewed(token: "r\(round)")
      #expect(s.take().first?.hasPrefix("kept alive") == true)
      #expect(s.timer == (round + 1) * 60_000)
    }
    s.close()
    #expect(s.take() == ["teardown r3"])
  }

  /// The server extends the lease before it replies, so the session counts the lease from the request.
  @Test func renewal_answeredLate_extendsTheLeaseFromTheRequest() {
    var s = enforced()
    s.run(until: 60_000)
    s.pass(22_000)
    s.renewed(token: "r1", sentAt: 60_500)
    #expect(s.timer == 120_000)
    #expect(s.session.schedule?.retriesEnd(permille: 1000) == 180_500)
    s.pass(8_000)
    s.renewed(token: "r2", sentAt: 89_000)
    #expect(s.timer == 150_000)
    #expect(s.session.schedule?.retriesEnd(permille: 1000) == 209_000)
  }

  @Test func renewal_madeBeforeDue_movesTheNextOne() {
    var s = enforced()
    s.run(until: 20_000)
    s.renewed(token: "r1")
    #expect(s.take() == ["kept alive"])
    #expect(s.timer == 80_000)
  }

  @Test func renewal_failedInPassing_isAskedAgain() {
    var s = enforced()
    s.run(until: 60_000)
    s.renewalFailed(WireFailure(.http, httpStatus: 503))
    s.run(until: 61_000)
    #expect(s.take() == ["renewal due", "renewal due"])
    s.renewed(token: "r1")
    #expect(s.take().count == 1)
    #expect(s.timer == 120_000)
  }

  @Test func renewal_refused_isHeartbeatErrorAndTornDownAtClose() {
    var s = enforced()
    s.run(until: 60_000)
    s.renewalFailed(WireFailure(.refused, httpStatus: 400, serviceCode: 4000))
    #expect(s.take() == ["renewal due", "renewal failed: REFUSED 4000"])
    #expect(s.lastError?.mustStop == true && s.lastError?.origin == .license)
    s.close()
    #expect(s.take() == ["teardown t1"])
  }

  @Test func renewal_refusedByLicenceServerWith1006_doesNotMeanTheSessionIsUnknown() {
    // From a licence server, code 1006 does not mean an unknown session. So the close still sends a teardown.
    var s = enforced()
    s.run(until: 60_000)
    s.renewalFailed(WireFailure(.refused, httpStatus: 400, serviceCode: 1006), origin: .license)
    s.close()
    #expect(s.take().last == "teardown t1")
  }

  @Test func renewal_failedUnasked_isNotTheSessionsBusiness() {
    var s = enforced()
    s.run(until: 30_000)
    s.renewalFailed(WireFailure(.refused, httpStatus: 400, serviceCode: 4000))
    #expect(s.take() == [])
    #expect(s.session.isActive && s.timer == 60_000)
  }

  @Test func renewal_byTheCDM_needsNoTimer() {
    var s = SessionDriver.active()
    s.decide(.cdm)
    #expect(s.timer == nil)
    s.run(until: 10_000_000)
    #expect(s.take() == [])
    s.renewed(token: "w1")
    #expect(s.take() == ["kept alive"])
    #expect(s.timer == nil)
    s.close()
    #expect(s.take() == ["teardown w1"])
  }

  @Test func mode_decidedWhileBeatInFlight_takesEffectAfterItsAnswer() {
    var s = SessionDriver.beating()
    s.decide(.enforced)
    s.answer(.heartbeat, Say.token("t2"))
    #expect(s.take() == ["kept alive"])
    s.run(until: 120_000)
    #expect(s.take() == ["renewal due"])
  }

  @Test func mode_decidedByTheFirstLicense_isNotChangedByFurtherOnes() {
    var s = SessionDriver.active()
    s.decide(.cdm)
    #expect(s.timer == nil)
    s.decide(.heartbeat)
    #expect(s.timer == nil)
  }

  @Test func keepAliveOption_renewal_asksFromTheStart() {
    var s = SessionDriver.active(steady { $0.keepAlive = .renewal })
    s.run(until: 60_000)
    #expect(s.take() == ["renewal due"])
  }

  @Test func close_whileAsked_tearsDownAtOnce() {
    var s = enforced()
    s.run(until: 60_000)
    s.close()
    #expect(s.take() == ["renewal due", "teardown t1"])
  }
}
