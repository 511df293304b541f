@testable import UsherCore
@testable import UsherEngine

/// The host's code: what it answers when it is asked, and what it does with what it is told.
extension World {
  /// How a callback behaves right now: at once, later, never, with a failure, or so slowly that its thread is blocked.
  private func answer(
    _ callback: Callback, _ ask: Ask, _ host: HostPlayback, good: AskReply, input: Input, bad: AskReply = .none,
    badInput: Input
  ) {
    guard let play = plays[host.tag] else { return }
    let chance = mixed(story.seed, host.tag, UInt64(callback.rawValue), play.answers)
    play.answers += 1
    var habit = habits.first { $0.callback == callback && $0.until > now }?.habit
    // Now and then something goes wrong by itself.
    if habit == nil, !story.setting.isCalm, !isDraining, chance / 1000 % 64 == 0 {
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
    case nil where chance % 3 == 0 && !story.setting.isCalm:
      later.add(now + chance % 700) { [self] in put(ask, play, good, input, chance) }
    case nil: put(ask, play, good, input, chance)
    }
    if ask.isOpen { openAsks.append((ask, play)) }
  }

  private func put(_ ask: Ask, _ play: Play, _ reply: AskReply, _ input: Input, _ chance: UInt64) {
    guard !isOver else { return }
    if ask.reply(reply) {
      subject = (play, input)
      tell("  the host of playback \(play.id): \(input.name)")
      if chance % 16 == 0, ask.reply(reply) { blame("answers", "a question took two answers") }
    }
    openAsks.removeAll { !$0.ask.isOpen }
  }

  // MARK: Asked

  func tokenAsked(_ ask: Ask, _ host: HostPlayback) {
    guard let play = plays[host.tag] else { return }
    play.tokens += 1
    answer(
      .token, ask, host, good: .value(Secret(Token(Token.playback, play.id, play.tokens).bytes)), input: .tokenCame,
      badInput: .noToken)
  }

  func payloadAsked(_ ask: Ask, _ host: HostPlayback) {
    plays[host.tag].map { beat($0) }
    answer(.payload, ask, host, good: .value(secret("spc")), input: .payloadCame, badInput: .noPayload)
  }

  func hookAsked(_ ask: Ask, _ question: HookQuestion, _ host: HostPlayback) {
    var good = AskReply.builtin
    let chance = mixed(story.seed, host.tag, 0x400C, plays[host.tag]?.answers ?? 0)
    if chance % 3 == 0 {
      switch question.kind {
      case .licenseBody: good = .value(secret("other"))
      case .license:
        // Of a reply that is whole; of another, what the library makes of it.
        if question.data?.withBytes({ $0.first == 0x7B && $0.last == 0x7D }) == true { good = .value(secret("ckc")) }
      case .certificate: good = .value(Secret([0x30, 0x03, 0x02, 0x01, 0x05]))
      case .headers:
        // Asks for the built-in headers, which waits for the I/O thread, and adds one.
        guard plays[host.tag]?.kind == .hooked, habits.isEmpty else { break }
        return withBuiltinHeaders(ask, question, host)
      case .licenseURL, .contentID: break
      }
    }
    answer(.hook, ask, host, good: good, input: .hookAnswered, bad: .none, badInput: .hookAnswered)
  }

  private func withBuiltinHeaders(_ ask: Ask, _ question: HookQuestion, _ host: HostPlayback) {
    let play = plays[host.tag]
    if let play { openAsks.append((ask, play)) }
    aside { [self] in
      guard case .value(let lines) = question.builtin() else { return }
      let all = lines.withBytes { Array($0) } + (lines.count == 0 ? [] : [0x0A]) + Array("x-more: 1".utf8)
      if ask.reply(.value(Secret(all))) { subject = (play, .hookAnswered) }
    }
  }

  func customerLicence(_ ask: Ask, _ question: CustomerQuestion, _ host: HostPlayback, _ kind: Kind) {
    guard let play = plays[host.tag] else { return }
    if play.timesClosed > 0 {
      blame("after the end", "playback \(play.id): the host was asked for a licence after it was told of the end")
    }
    if !question.isRenewal, play.customerHolds == false { play.customerHolds = true }
    if question.isRenewal { beat(play) }
    let license = CustomerLicense(
      data: secret("ckc"), period: Double(story.setting.period / 1000), isEnforced: kind == .customerRenewals)
    answer(
      .customer, ask, host, good: .license(license), input: .customerLicence,
      bad: mixed(story.seed, play.answers) % 2 == 0
        ? .none : .failed(WireFailure(.refused, httpStatus: 400, serviceCode: 4000)), badInput: .customerNoLicence)
  }

  func customerCall(_ ask: Ask, _ host: HostPlayback, isTeardown: Bool) {
    guard let play = plays[host.tag] else { return }
    if isTeardown {
      play.customerTeardowns += 1
    } else {
      if play.customerTeardowns > 0 {
        blame("after teardown", "playback \(play.id): the host was asked for a heartbeat after the teardown")
      }
      beat(play)
    }
    let bad = mixed(story.seed, play.answers, 5) % 3 == 0 ? AskReply.failed(WireFailure(.session)) : .none
    answer(
      .customer, ask, host, good: .value(Secret([])), input: isTeardown ? .customerTeardown : .customerBeat, bad: bad,
      badInput: isTeardown ? .customerNoTeardown : .customerNoBeat)
  }

  // MARK: Told

  func told(_ event: EngineEvent) {
    guard !isOver, let play = plays[event.playback.tag] else { return }
    coverage.events[Int(event.kind.rawValue)] += 1
    tell(
      "  event for playback \(play.id): \(event.kind.name)\(event.error.status == .ok ? "" : " (\(event.error.message))")"
    )
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

  /// Playback must stop: after a while somebody tries again.
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

  /// What is only logged: a slot whose token came after the end was told.
  func logged(_ line: String) {
    guard !isOver, line.contains("came late could not be given back"),
      let id = UInt64(line.dropFirst("playback ".count).prefix { $0.isNumber })
    else { return }
    plays[id]?.hasTeardownError = true
  }

  // MARK: Asks

  /// A completion that is told once.
  func completion(_ play: Play, _ what: String, then: @escaping (Answer) -> Void = { _ in }) -> (Answer) -> Void {
    nextCompletion += 1
    let id = nextCompletion
    openCompletions[id] = (play, what, now)
    return { [weak self] answer in
      guard let self, !isOver else { return }
      if openCompletions.removeValue(forKey: id) == nil {
        blame("completions", "\(what) of playback \(play.id) was completed twice")
      }
      coverage.completions += 1
      tell("  \(what) of playback \(play.id): \(answer.error.status == .ok ? "good" : answer.error.message)")
      if story.setting.isCalm { calm(play, answer.error, what) }
      then(answer)
    }
  }

  func license(_ play: Play, isRenewal: Bool, timeout: Milliseconds?, other: UInt64? = nil) {
    let named = play.kind == .mapped ? contentID(other ?? play.choice.content) : []
    subject = (play, isRenewal ? .renewalAsked : .licenceAsked)
    engine?.requestLicense(
      play.id, play.kind.keySystem, isRenewal: isRenewal, payload: secret("spc"), timeout: timeout, contentID: named,
      isBlocking: false,
      complete: completion(play, isRenewal ? "renewal" : "licence") { [self] answer in
        guard play.kind == .widevine, answer.error.status == .ok, play.timesClosed == 0 else { return }
        // The CDM renews by itself.
        later.add(now + story.setting.period * 4 / 5) { [self] in
          if play.timesClosed == 0 { license(play, isRenewal: true, timeout: nil) }
        }
      })
  }

  func contentID(_ content: UInt64) -> [UInt8] { Array("content".utf8) + decimal(content) }
}
