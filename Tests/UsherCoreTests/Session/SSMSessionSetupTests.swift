import Testing

@testable import UsherCore

@Suite struct SSMSessionSetupTests {
  @Test func setup_answeredWell_startsAndWaitsOnePeriod() {
    var s = SessionDriver()
    s.start()
    #expect(s.take() == ["setup"])
    s.run(until: 300)
    s.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(s.take() == ["started 60000"])
    #expect(s.timer == 60_300)
    #expect(s.session.isActive && s.session.isReady && !s.session.isDoubtful)
    #expect(text(s.session.token) == "t1")
  }

  /// The server begins the lease before it replies. If the reply comes late, the first heartbeat comes earlier, so that
  /// half a period of the lease is left for retries.
  @Test(
    arguments: [
      (29_000, 89_000, 120_000), (30_000, 90_000, 120_000), (31_000, 90_000, 120_000), (80_000, 90_000, 120_000),
      (95_000, 95_000, 125_000)
    ] as [(Milliseconds, Milliseconds, Milliseconds)])
  func setup_answeredLate_leavesTimeForRetries(reply: Milliseconds, first: Milliseconds, end: Milliseconds) {
    var s = SessionDriver()
    s.start()
    s.run(until: reply)
    _ = s.take()
    s.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(s.take() == ["started 60000"])
    #expect(s.timer == first)
    s.run(until: first)
    #expect(s.take() == ["heartbeat t1"])
    #expect(s.session.schedule?.retriesEnd(permille: 1000) == end)
  }

  @Test func start_twice_sendsOneSetup() {
    var s = SessionDriver()
    s.start()
    s.start()
    #expect(s.take() == ["setup"])
  }

  @Test(arguments: [
    (PeriodField.number(60), 60_000 as Milliseconds), (.number(30), 30_000), (.number(1), 1000),
    (.number(1e12), 86_400_000),
    (.number(.greatestFiniteMagnitude), 86_400_000), (.number(1_000_000), 86_400_000), (.number(1.5), 1500)
  ])
  func period_usable_isBounded(field: PeriodField, expected: Milliseconds) {
    var s = SessionDriver()
    s.start()
    _ = s.take()
    s.answer(.setup, Say.token("t1", period: field))
    #expect(s.take() == ["started \(expected)"])
    #expect(s.timer == expected)
  }

  @Test(arguments: [
    (PeriodField.number(0.07), 70 as Milliseconds), (.number(0.999), 999), (.number(0.0001), 0),
    (.number(.leastNonzeroMagnitude), 0)
  ])
  func period_belowTheShortest_isRaisedAndReported(field: PeriodField, asked: Milliseconds) {
    var s = SessionDriver()
    s.start()
    _ = s.take()
    s.answer(.setup, Say.token("t1", period: field))
    #expect(s.take() == ["started 1000", "period raised from \(asked)"])
    #expect(s.timer == 1000)
  }

  @Test func period_belowTheShortestInAHeartbeatReply_isRaisedAndReported() {
    var s = SessionDriver.active(steady { $0.periodUpdates = true })
    s.run(until: 60_000)
    _ = s.take()
    s.answer(.heartbeat, Say.token("t2", period: .number(0.05)))
    #expect(s.take() == ["kept alive", "period raised from 50"])
    #expect(s.timer == 61_000)
  }

  @Test(arguments: [
    PeriodField.missing, .number(0), .number(-1), .number(.nan), .number(-.infinity), .number(.infinity), .wrongType,
    .text(60), .text(0)
  ])
  func period_unusable_isSetupErrorAndSlotGoesBackAtClose(field: PeriodField) {
    var s = SessionDriver()
    s.start()
    _ = s.take()
    s.answer(.setup, Say.token("t1", period: field))
    #expect(s.take() == ["setup failed: PROTOCOL"])
    #expect(s.lastError?.mustStop == true)
    #expect(s.timer == nil)
    s.close()
    #expect(s.take() == ["teardown t1"])
    s.answer(.teardown, Say.done)
    #expect(s.take() == ["released", "ended"])
  }

  @Test func period_inText_isTakenWhenLenient() {
    var s = SessionDriver(steady { $0.lenientNumbers = true })
    s.start()
    _ = s.take()
    s.answer(.setup, Say.token("t1", period: .text(60)))
    #expect(s.take() == ["started 60000"])
  }

  @Test(arguments: [PeriodField.text(.nan), .text(-1), .text(0)])
  func period_inTextAndUseless_isRefusedEvenWhenLenient(field: PeriodField) {
    #expect(steady { $0.lenientNumbers = true }.period(field) == nil)
  }

  @Test func period_missingWithNoTimerOption_startsWithoutTimer() {
    var s = SessionDriver(steady { $0.missingPeriod = .noTimer })
    s.start()
    _ = s.take()
    s.answer(.setup, Say.token("t1"))
    #expect(s.take() == ["started 0"])
    #expect(s.timer == nil)
    s.run(until: 10_000_000)
    s.close()
    #expect(s.take() == ["teardown t1"])
  }

  @Test func setup_withoutToken_isErrorWithPossibleOrphan() {
    var s = SessionDriver()
    s.start()
    _ = s.take()
    s.answer(.setup, Say.token(nil, period: .number(60)))
    #expect(s.take() == ["setup failed: PROTOCOL, orphan possible"])
    s.close()
    #expect(s.take() == ["released", "ended, orphan possible"])
  }

  @Test(arguments: [
    (Say.unreadable, true), (Say.lost, true), (Say.unreachable, false), (Say.refused(1003), false),
    (Say.http(503, retryAfter: 1000), false)
  ])
  func setup_failed_isToldOnceAndNeverRetried(outcome: SSMOutcome, orphan: Bool) {
    var s = SessionDriver()
    s.start()
    _ = s.take()
    s.answer(.setup, outcome)
    #expect(s.take().count == 1)
    #expect(s.lastError?.orphanPossible == orphan)
    #expect(s.lastError?.mustStop == true)
    #expect(s.lastError?.origin == .ssm)
    s.run(until: 1_000_000)
    #expect(s.take() == [])
    s.close()
    #expect(s.take() == ["released", orphan ? "ended, orphan possible" : "ended"])
  }

  @Test func setup_refusedAtLimitWithNothingOfOurs_isLimitError() {
    var s = SessionDriver()
    s.start()
    _ = s.take()
    s.answer(.setup, Say.refused(1007))
    #expect(s.take() == ["setup failed: LIMIT 1007"])
    #expect(s.session.failure?.status == .limit)
  }

  @Test func setup_refusedAtLimitWhileOwnTeardown_goesOnceMore() {
    var s = SessionDriver()
    s.start()
    s.answer(.setup, Say.refused(1007), ownTeardowns: .underWay)
    #expect(s.take() == ["setup"])
    #expect(s.session.waitsForOwnTeardowns && s.session.stage == .pending)
    s.othersTornDown()
    #expect(s.take() == ["setup"])
    #expect(s.timer == nil)
    s.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(s.take() == ["started 60000"])
  }

  @Test func setup_refusedAtLimitTwice_isErrorEvenWithOwnTeardown() {
    var s = SessionDriver()
    s.start()
    s.answer(.setup, Say.refused(1007), ownTeardowns: .underWay)
    s.othersTornDown()
    s.answer(.setup, Say.refused(1007), ownTeardowns: .underWay)
    #expect(s.take() == ["setup", "setup", "setup failed: LIMIT 1007"])
  }

  @Test func setup_contested_isBoundedByTeardownCap() {
    var s = SessionDriver()
    s.start()
    s.answer(.setup, Say.refused(1007), ownTeardowns: .underWay)
    #expect(s.timer == 3000)
    s.run(until: 3000)
    // The session must either send set-up once more or report the error.
    #expect(s.take().count == 2)
  }

  @Test func setup_contestedThenClosed_endsAtOnceAndStaysQuiet() {
    var s = SessionDriver()
    s.start()
    s.answer(.setup, Say.refused(1007), ownTeardowns: .underWay)
    s.close()
    #expect(s.take() == ["setup", "released", "ended"])
    s.othersTornDown()
    s.run(until: 100_000)
    #expect(s.take() == [])
    #expect(s.session.isFinished)
  }

  @Test func setup_atLimitWithSlotWait_triesAgainUntilTheEnd() {
    var s = SessionDriver(steady { $0.slotWait = 10_000 })
    s.start()
    var tries: [Milliseconds] = []
    while s.session.failure == nil, tries.count < 20 {
      tries.append(s.now)
      s.answer(.setup, Say.refused(1007))
      if let at = s.timer { s.run(until: at) }
    }
    #expect(tries == [0, 1000, 3000, 7000, 10_000])
    #expect(s.take() == ["setup", "awaits a slot", "setup", "setup", "setup", "setup", "setup failed: LIMIT 1007"])
    #expect(s.lastError?.mustStop == true)
  }

  @Test func setup_atLimitWithSlotWait_startsWhenASlotIsFree() {
    var s = SessionDriver(steady { $0.slotWait = 10_000 })
    s.start()
    s.answer(.setup, Say.refused(1007))
    #expect(s.lastError?.mustStop == false && s.lastError?.status == .limit)
    s.run(until: 1000)
    s.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(s.take() == ["setup", "awaits a slot", "setup", "started 60000"])
  }

  @Test(arguments: [(4000 as Milliseconds, 4000 as Milliseconds?), (10_001, nil)])
  func setup_atLimitWithSlotWait_obeysRetryAfter(asked: Milliseconds, next: Milliseconds?) {
    var s = SessionDriver(steady { $0.slotWait = 10_000 })
    s.start()
    s.answer(
      .setup,
      .failure(WireFailure(.refused, httpStatus: 409, serviceCode: SSMCode.tooManySessions, retryAfter: asked)))
    #expect(s.timer == next)
    #expect(s.take() == ["setup", next == nil ? "setup failed: LIMIT 1007" : "awaits a slot"])
  }

  @Test func close_whileAwaitingASlot_endsAtOnce() {
    var s = SessionDriver(steady { $0.slotWait = 10_000 })
    s.start()
    s.answer(.setup, Say.refused(1007))
    s.close()
    s.run(until: 100_000)
    #expect(s.take() == ["setup", "awaits a slot", "released", "ended"])
    #expect(s.session.isFinished)
  }

  @Test func setup_awaitingASlot_failsAtOnceForAnotherReason() {
    var s = SessionDriver(steady { $0.slotWait = 10_000 })
    s.start()
    s.answer(.setup, Say.refused(1007))
    s.run(until: 1000)
    s.answer(.setup, Say.refused(1003))
    #expect(s.take() == ["setup", "awaits a slot", "setup", "setup failed: REFUSED 1003"])
  }

  @Test func setup_withoutContentToken_failsLocally() {
    var s = SessionDriver()
    s.startFails(UsherError(.noToken, operation: .setup))
    #expect(s.take() == ["setup failed: NO_TOKEN"])
    s.start()
    s.close()
    #expect(s.take() == ["released", "ended"])
  }

  @Test func setupReply_ofAnotherRequest_isIgnored() {
    var s = SessionDriver()
    s.start()
    let sent = s.waiting[0]
    s.answer(
      SessionDriver.Sent(request: sent.request + 5, call: .setup, token: "-"), Say.token("x", period: .number(1)))
    #expect(s.take() == ["setup"])
    s.answer(.setup, Say.token("t1", period: .number(60)))
    s.answer(sent, Say.token("t9", period: .number(1)))
    #expect(s.take() == ["started 60000"])
    #expect(text(s.session.token) == "t1")
  }

  /// The server's lease begins when it answers the licence request. If the licence comes late, half a period must be
  /// left for retries.
  @Test func heartbeats_startingWithALateLicense_leaveTimeForRetries() {
    var s = SessionDriver.active(steady { $0.heartbeatStart = .license })
    s.run(until: 50_000)
    s.decide(.heartbeat, sentAt: 2_000)
    #expect(s.timer == 92_000)
    #expect(s.session.schedule?.retriesEnd(permille: 1000) == 122_000)
  }

  @Test func heartbeats_startingWithLicense_waitForIt() {
    var s = SessionDriver.active(steady { $0.heartbeatStart = .license })
    #expect(s.timer == nil)
    s.run(until: 100_000)
    s.decide(.heartbeat)
    #expect(s.timer == 160_000)
    s.run(until: 160_000)
    #expect(s.take() == ["heartbeat t1"])
  }
}
