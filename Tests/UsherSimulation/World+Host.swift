import TestSupport

@testable import UsherCore
@testable import UsherEngine

/// The simulated host: its callbacks, its reactions to events, and its calls.
extension World {
  /// Answers a question as the story says: at once, later, never, with a failure, or after blocking its thread.
  private func answer(
    _ callback: Callback, _ ask: HostQuestion, _ host: HostPlayback, good: HostAnswer, input: Input,
    bad: HostAnswer = .none,
    badInput: Input
  ) {
    guard let play = plays[host.tag] else { return }
    let chance = mixed(story.seed, host.tag, UInt64(callback.rawValue), play.answers)
    play.answers += 1
    var habit = habits.first { $0.callback == callback && $0.until > now }?.habit
    // If no `Habit` of this callback applies now, one call in 64 gets a failure, a late answer or no answer.
    if habit == nil, !story.setting.isFaultless, !isDraining, chance / 1000 % 64 == 0 {
      habit = [.fails, .never, .later][Int(chance / 64_000 % 3)]
    }
    coverage.callbacks[Int(callback.rawValue)] += 1
    if habit != nil { coverage.habits[Int(habit?.rawValue ?? 0)] += 1 }
    switch habit {
    case .later?: later.add(now + chance % 8000) { [self] in put(ask, play, good, input, chance) }
    case .never?: break
    case .fails?: put(ask, play, bad, badInput, chance)
    case .blocks?:
      let until = now + 100 + chance % 30_000
      lanes.block(until: until)
      later.add(chance % 2 == 0 ? now : until) { [self] in put(ask, play, good, input, chance) }
    case nil where chance % 3 == 0 && !story.setting.isFaultless:
      later.add(now + chance % 700) { [self] in put(ask, play, good, input, chance) }
    case nil: put(ask, play, good, input, chance)
    }
    if ask.isOpen { openAsks.append((ask, play)) }
  }

  private func put(_ ask: HostQuestion, _ play: Play, _ reply: HostAnswer, _ input: Input, _ chance: UInt64) {
    guard !isOver else { return }
    if ask.reply(reply) {
      subject = (play, input)
      log("  the host of playback \(play.id): \(input.name)")
      if chance % 16 == 0, ask.reply(reply) { fail("answers", "a question accepted two answers") }
    }
    openAsks.removeAll { !$0.ask.isOpen }
  }

  // MARK: Callbacks

  func tokenAsked(_ ask: HostQuestion, _ host: HostPlayback) {
    guard let play = plays[host.tag] else { return }
    play.tokens += 1
    answer(
      .token, ask, host, good: .value(Secret(Token(.playback, play.id, play.tokens).bytes)), input: .tokenCame,
      badInput: .noToken)
  }

  func payloadAsked(_ ask: HostQuestion, _ host: HostPlayback) {
    plays[host.tag].map { beat($0) }
    answer(.payload, ask, host, good: .value(secret("spc")), input: .payloadCame, badInput: .noPayload)
  }

  func hookAsked(_ ask: HostQuestion, _ question: HookQuestion, _ host: HostPlayback) {
    var good = HostAnswer.builtin
    let chance = mixed(story.seed, host.tag, 0x400C, plays[host.tag]?.answers ?? 0)
    if chance % 3 == 0 {
      switch question.kind {
      case .licenseBody: good = .value(secret("other"))
      case .license:
        // The library calls this hook for every reply with a status of 2xx. This host gives a licence only if the body
        // begins and ends like a JSON object. Otherwise the library reads the reply itself.
        if question.data?.withBytes({ $0.first == 0x7B && $0.last == 0x7D }) == true { good = .value(secret("ckc")) }
      case .certificate: good = .value(Secret([0x30, 0x03, 0x02, 0x01, 0x05]))
      case .headers:
        // The hook asks for the built-in headers (this call waits for the I/O thread) and adds a header.
        guard plays[host.tag]?.kind == .hooked, habits.isEmpty else { break }
        return withBuiltinHeaders(ask, question, host)
      case .licenseURL, .contentID: break
      }
    }
    answer(.hook, ask, host, good: good, input: .hookAnswered, bad: .none, badInput: .hookAnswered)
  }

  private func withBuiltinHeaders(_ ask: HostQuestion, _ question: HookQuestion, _ host: HostPlayback) {
    let play = plays[host.tag]
    if let play { openAsks.append((ask, play)) }
    runBlocking { [self] in
      guard case .value(let lines) = question.builtin() else { return }
      let all = lines.withBytes { Array($0) } + (lines.count == 0 ? [] : [0x0A]) + Array("x-more: 1".utf8)
      if ask.reply(.value(Secret(all))) { subject = (play, .hookAnswered) }
    }
  }

  func customerLicence(_ ask: HostQuestion, _ question: CustomerQuestion, _ host: HostPlayback, _ kind: Kind) {
    guard let play = plays[host.tag] else { return }
    if play.timesClosed > 0 {
      fail("after the end", "playback \(play.id): the library asked the host for a licence after PLAYBACK_CLOSED")
    }
    if question.isRenewal { beat(play) }
    let license = CustomerLicense(
      data: secret("ckc"), period: Double(story.setting.period / 1000), isEnforced: kind == .customerRenewals)
    answer(
      .customer, ask, host, good: .license(license), input: .customerLicence,
      bad: mixed(story.seed, play.answers) % 2 == 0
        ? .none : .failed(WireFailure(.refused, httpStatus: 400, serviceCode: 4000), words: nil),
      badInput: .customerNoLicence)
  }

  func customerCall(_ ask: HostQuestion, _ host: HostPlayback, isTeardown: Bool) {
    guard let play = plays[host.tag] else { return }
    if isTeardown {
      play.customerTeardowns += 1
    } else {
      if play.customerTeardowns > 0 {
        fail("after teardown", "playback \(play.id): the library asked the host for a heartbeat after the teardown")
      }
      beat(play)
    }
    let bad = mixed(story.seed, play.answers, 5) % 3 == 0 ? HostAnswer.failed(WireFailure(.session), words: nil) : .none
    answer(
      .customer, ask, host, good: .value(Secret([])), input: isTeardown ? .customerTeardown : .customerBeat, bad: bad,
      badInput: isTeardown ? .customerNoTeardown : .customerNoBeat)
  }

  // MARK: Events

  func receive(_ event: EngineEvent) {
    guard !isOver, let play = plays[event.playback.tag] else { return }
    coverage.events[Int(event.kind.rawValue)] += 1
    let error = event.error.status == .ok ? "" : " (\(event.error.message))"
    log("  event for playback \(play.id): \(event.kind.name)\(error)")
    check(event, play)
    let habit = habits.first { $0.callback == .event && $0.until > now }?.habit
    if habit == .blocks { lanes.block(until: now + mixed(story.seed, play.id, now) % 20_000) }
    if event.error.mustStop { tryAgain(play) }
    guard event.kind == .renewalDue else { return }
    beat(play)
    if habit == .never || habit == .fails { return }
    let delay = habit == .later ? mixed(story.seed, play.id, now) % 8000 : 0
    later.add(now + delay) { [self] in if play.timesClosed == 0 { license(play, isRenewal: true, timeout: nil) } }
  }

  /// After an error that stops playback: in three of four cases plays the same item again, as a viewer does.
  private func tryAgain(_ play: Play) {
    let chance = mixed(story.seed, play.id, 0xA6A1)
    guard chance % 4 != 0, !isDraining, play.timesClosed == 0 else { return }
    later.add(now + 1000 + chance % 60_000) { [self] in
      guard play.closedAt == nil, !isDraining, plays[play.id + 1_000_000] == nil else { return }
      perform(
        .play(
          play.id + 1_000_000, player: play.player, play.kind,
          Choice(hasPayload: play.choice.hasPayload, content: play.choice.content)))
      perform(.license(play.id + 1_000_000, isRenewal: false, timeout: nil))
    }
  }

  /// Reads a line of the log. The library reports one error only in the log, without an event: it could not tear down a
  /// session whose token came after PLAYBACK_CLOSED.
  func logged(_ line: String) {
    guard !isOver, line.contains("came late could not be given back"),
      let id = UInt64(line.dropFirst("playback ".count).prefix { $0.isNumber })
    else { return }
    plays[id]?.hasTeardownError = true
  }

  // MARK: Calls

  /// Makes a completion that the library must call exactly once.
  func completion(
    _ play: Play, _ what: String, then: @escaping (RequestResult) -> Void = { _ in }
  ) -> (RequestResult) -> Void {
    nextCompletion += 1
    let id = nextCompletion
    openCompletions[id] = (play, what, now)
    return { [weak self] answer in
      guard let self, !isOver else { return }
      if openCompletions.removeValue(forKey: id) == nil {
        fail("completions", "\(what) of playback \(play.id) was completed twice")
      }
      coverage.completions += 1
      log("  \(what) of playback \(play.id): \(answer.error.status == .ok ? "good" : answer.error.message)")
      if story.setting.isFaultless { checkFaultless(play, answer.error, what) }
      then(answer)
    }
  }

  /// Makes a request. If the host has closed the playback, the library must refuse the request; otherwise it must
  /// accept it.
  func request(
    _ play: Play, _ what: String, then: @escaping (RequestResult) -> Void = { _ in },
    start: (@escaping (RequestResult) -> Void) -> Bool
  ) {
    let complete = completion(play, what, then: then)
    let isAccepted = start(complete)
    if !isAccepted { openCompletions.removeValue(forKey: nextCompletion) }
    let isOpen = play.closedAt == nil
    if isAccepted != isOpen {
      fail("completions", "\(what) of playback \(play.id) is \(isAccepted ? "accepted after close" : "refused")")
    }
  }

  func license(_ play: Play, isRenewal: Bool, timeout: Milliseconds?, other: UInt64? = nil) {
    let named = play.kind == .mapped ? contentID(other ?? play.choice.content) : []
    subject = (play, isRenewal ? .renewalAsked : .licenceAsked)
    let renew = { [self] (answer: RequestResult) in
      guard play.kind == .widevine, answer.error.status == .ok, play.timesClosed == 0 else { return }
      // Widevine's CDM starts a renewal itself, here after four fifths of the period; the library does not ask for it.
      later.add(now + story.setting.period * 4 / 5) { [self] in
        if play.timesClosed == 0 { license(play, isRenewal: true, timeout: nil) }
      }
    }
    request(play, isRenewal ? "renewal" : "licence", then: renew) {
      engine?.requestLicense(
        play.shared, play.kind.keySystem, isRenewal: isRenewal, payload: secret("spc"), timeout: timeout,
        contentID: named, isBlocking: false, complete: $0) ?? false
    }
  }

  func contentID(_ content: UInt64) -> [UInt8] { Array("content".utf8) + decimal(content) }
}
