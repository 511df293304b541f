import Testing

@testable import UsherCore

/// If a server denies a content token, the machine asks the token callback once for all denied requests, and then sends
/// each of these requests once more.
@Suite struct ReauthorisationTests {
  @Test(arguments: [Int32(401), 403]) func licence_denied_goesOnceMoreWithAFreshToken(http: Int32) {
    var p = PlaybackDriver.active(hasTokenCallback: true)
    p.ask(1)
    p.denied(1, 0, http: http)
    #expect(p.take() == ["license 1 c1,t1", "token?"])
    p.giveToken("c2")
    #expect(p.take() == ["license 1 c2,t1"])
    p.licensed(1)
    #expect(p.take() == ["got 1"])
  }

  @Test func licence_deniedAgain_failsWithoutAnotherQuestion() {
    var p = PlaybackDriver.active(hasTokenCallback: true)
    p.ask(1)
    p.denied(1, 0, http: 401)
    p.giveToken("c2")
    p.denied(1, 0, http: 401)
    #expect(p.take() == ["license 1 c1,t1", "token?", "license 1 c2,t1", "failed 1: HTTP"])
    #expect(p.lastError?.httpStatus == 401)
  }

  @Test func licences_deniedTogether_shareOneQuestion() {
    var p = PlaybackDriver(steady { $0.hasSSM = false }, hasTokenCallback: true)
    p.start()
    p.ask(1)
    p.ask(2)
    p.ask(3)
    p.denied(1, 0, http: 401)
    p.denied(2, 0, http: 401)
    #expect(p.take() == ["license 1 c1", "license 2 c1", "license 3 c1", "token?"])
    p.giveToken("c2")
    #expect(p.take() == ["license 1 c2", "license 2 c2"])
    // The server denies a request that carries the old token, after the new token has arrived.
    p.denied(3, 0, http: 401)
    #expect(p.take() == ["license 3 c2"])
  }

  @Test func licences_deniedTogetherUnderASession_shareOneQuestion() {
    var p = PlaybackDriver.active(hasTokenCallback: true)
    p.ask(1)
    p.ask(2)
    p.denied(1, 0, http: 401)
    p.denied(2, 0, http: 401)
    #expect(p.take() == ["license 1 c1,t1", "license 2 c1,t1", "token?"])
    p.giveToken("c2")
    #expect(p.take() == ["license 1 c2,t1", "license 2 c2,t1"])
    p.denied(1, 0, http: 401)
    p.denied(2, 0, http: 401)
    #expect(p.take().sorted() == ["failed 1: HTTP", "failed 2: HTTP"])
  }

  @Test func mappedToken_ofTheItem_isReplacedByTheCallback() {
    var p = PlaybackDriver.active(hasTokenCallback: true)
    p.ask(1, token: "c1")
    p.denied(1, 0, http: 401)
    p.giveToken("c2")
    #expect(p.take() == ["license 1 c1,t1", "token?", "license 1 c2,t1"])
  }

  @Test func mappedToken_ofAnotherContent_isFinal() {
    var p = PlaybackDriver.active(hasTokenCallback: true)
    p.ask(1, token: "other", isForPlayingItem: false)
    p.denied(1, 0, http: 401)
    #expect(p.take() == ["license 1 other,t1", "failed 1: HTTP"])
  }

  @Test func mappedToken_ofAnotherContent_startsNoSession() {
    var p = PlaybackDriver(content: nil)
    p.start()
    p.ask(1, token: "other", isForPlayingItem: false)
    _ = p.take()
    let isTaken = p.set("c1")
    #expect(isTaken)
    #expect(p.take() == ["setup c1"])
    p.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(p.take() == ["started", "license 1 other,t1"])
  }

  @Test func licence_deniedAndNoFreshToken_failsWithWhatTheServerSaid() {
    var p = PlaybackDriver.active(hasTokenCallback: true)
    p.ask(1)
    p.denied(1, 4005, http: 403)
    p.giveToken(nil)
    #expect(p.take() == ["license 1 c1,t1", "token?", "failed 1: REFUSED 4005"])
  }

  @Test func licence_deniedWithoutCallback_fails() {
    var p = PlaybackDriver.active()
    p.ask(1)
    p.denied(1, 0, http: 401)
    #expect(p.take() == ["license 1 c1,t1", "failed 1: HTTP"])
  }

  @Test func setup_denied_beginsAnewWithAFreshToken_once() {
    var p = PlaybackDriver(hasTokenCallback: true)
    p.start()
    p.answer(.setup, Say.http(401))
    #expect(p.take() == ["setup c1", "token?"])
    p.giveToken("c2")
    #expect(p.take() == ["setup c2"])
    p.answer(.setup, Say.http(401))
    #expect(p.take() == ["setup error: HTTP"])
  }

  @Test func setup_deniedAndNoFreshToken_isTheServersError() {
    var p = PlaybackDriver(hasTokenCallback: true)
    p.start()
    p.answer(.setup, Say.http(403))
    p.giveToken(nil)
    #expect(p.take() == ["setup c1", "token?", "setup error: HTTP"])
    #expect(p.lastError?.httpStatus == 403)
  }

  @Test func close_whileTheQuestionIsOpen_ends() {
    var p = PlaybackDriver(hasTokenCallback: true)
    p.start()
    p.answer(.setup, Say.http(401))
    _ = p.take()
    p.close()
    p.giveToken("c2")
    #expect(p.take() == ["released", "closed"])
    #expect(p.machine.isFinished)
  }

  @Test func mappedToken_isSentForItsRequestAlone() {
    var p = PlaybackDriver.active(hasTokenCallback: false)
    p.ask(1, token: "other")
    p.ask(2)
    #expect(p.take() == ["license 1 other,t1", "license 2 c1,t1"])
  }

  @Test func mappedToken_startsAWaitingSession() {
    var p = PlaybackDriver(steady { $0.startsWithLicense = true }, content: nil)
    p.start()
    #expect(p.take() == [])
    p.ask(1, token: "mapped")
    #expect(p.take() == ["setup mapped"])
    p.answer(.setup, Say.token("t1", period: .number(60)))
    #expect(p.take() == ["started", "license 1 mapped,t1"])
  }

  @Test func requests_madeBeforeTheFirstLicenceCame_areOneStart() {
    var p = PlaybackDriver.active(hasTokenCallback: true)
    p.ask(1)
    p.ask(2)
    #expect(p.take() == ["license 1 c1,t1", "license 2 c1,t1"])
  }
}
