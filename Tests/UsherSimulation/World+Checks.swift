@testable import UsherCore
@testable import UsherEngine

/// The promises, looked at with each request, each event and each step.
extension World {
  // MARK: Requests

  /// May this be sent?
  func judge(_ call: Call) {
    guard let play = call.play else { return }
    if play.timesClosed > 0, call.route != .teardown {
      blame("after the end", "playback \(play.id): \(call.text) after its end was told")
    }
    if let content = call.tokens.first(where: { $0.letter != Token.session }) { judgeContent(content, call, play) }
    if call.route == .setup || (call.route == .license && call.session == nil && play.kind.isV2) { judgeTurn(play) }
    guard let token = call.session else {
      if call.route == .heartbeat || call.route == .teardown || call.isRenewal, play.kind.hasServerSession,
        call.route != .renewal
      {
        blame("tokens", "playback \(play.id): \(call.route) without a session token")
      }
      return
    }
    guard let session = headEnd[token.first] else {
      return blame("tokens", "playback \(play.id): \(call.text), which no head-end gave")
    }
    if session.playback != play.id {
      blame("tokens", "playback \(play.id): \(call.text) is playback \(session.playback)'s")
    }
    if token.second < session.delivered, !call.hasWaited || session.deliveredAt < call.askedAt {
      blame("newest token", "playback \(play.id): \(call.text), though S\(token.first).\(session.delivered) had come")
    }
    if call.route == .teardown {
      if session.teardownAnswered == token.second {
        blame("after teardown", "playback \(play.id): \(call.text) again after its answer")
      }
      if session.teardownsSent == 0 { play.teardownAt = call.askedAt }
      headEnd.change(token.first) {
        $0.teardownSent = true
        $0.teardownsSent += 1
      }
      if session.teardownsSent > 12 { blame("retries", "playback \(play.id): more than 12 teardowns") }
    } else if session.teardownSent {
      blame("after teardown", "playback \(play.id): \(call.text) after the teardown was sent")
    }
    if call.route == .heartbeat || call.isRenewal { beat(play) }
  }

  private func judgeContent(_ token: Token, _ call: Call, _ play: Play) {
    switch token.letter {
    case Token.playback where token.first != play.id:
      blame("tokens", "playback \(play.id): \(call.text), another's content token")
    case Token.playback where token.second > play.tokens:
      blame("tokens", "playback \(play.id): \(call.text), a token nobody gave")
    default: break
    }
  }

  /// Teardown before set-up on one screen.
  private func judgeTurn(_ play: Play) {
    let ours = headEnd.alive(play.id).filter {
      headEnd[$0]?.delivered == headEnd[$0]?.generation && headEnd[$0]?.teardownSent == false
    }
    if !ours.isEmpty { blame("one session", "playback \(play.id) sets up while it holds session S\(ours[0])") }
    for other in live where other !== play && other.player == play.player && other.wasThere && !other.isLeft {
      guard let closed = other.closedAt else {
        if other.id < play.id {
          blame("zap", "playback \(play.id) is set up though playback \(other.id) still plays on its screen")
        }
        continue
      }
      let isBusy = running.values.contains {
        $0.play === other && !$0.isGivenUp && ($0.route == .setup || $0.route == .teardown)
      }
      guard isBusy, now < min(closed, other.teardownAt) + 3000 else { continue }
      blame(
        "zap",
        "playback \(play.id) is set up \(now - closed) ms after playback \(other.id) was closed, whose slot is not given back"
      )
    }
  }

  // MARK: Keep-alives

  /// How much later than a period a keep-alive may go out: it waits a tenth of a second for a place among the requests under way, and where the host
  /// wants few of them, as long as answers come.
  private var slack: Milliseconds { story.setting.perOrigin < 64 ? 10_000 : 100 }

  /// A keep-alive went out, or the host was asked for what it needs.
  func beat(_ play: Play) {
    guard let last = play.lastBeat else { return }
    if now > last + play.beatPeriod + slack { late(play, last) }
    play.lastBeat = now
  }

  private func late(_ play: Play, _ last: Milliseconds) {
    blame(
      "late",
      "playback \(play.id) (\(play.kind)): no keep-alive for \(now - last) ms, its period is \(play.beatPeriod) ms")
  }

  /// After each step: is one overdue?
  func watch(_ play: Play, _ entry: PlaybackEntry) {
    let session = entry.machine.session
    guard session.isActive, session.schedule != nil, !session.isPaused, !entry.machine.isReplacing,
      play.closedAt == nil,
      session.mode == .heartbeat || session.mode == .enforced
    else {
      play.lastBeat = nil
      return
    }
    play.beatPeriod = session.period
    // While the host has been asked, or its threads are blocked, it is not the library that is late.
    let isAsked = entry.questions.contains { $0.kind != .token && $0.kind != .spc }
    let isHosts = (play.kind.isCustomer || play.kind.asksHost) && (isAsked || lanes.isFull || lanes.isBlocked(play.id))
    guard let last = play.lastBeat, !isHosts else {
      play.lastBeat = now
      return
    }
    if now > last + session.period + slack { late(play, last) }
  }

  // MARK: Events

  func check(_ event: EngineEvent, _ play: Play) {
    if event.sequence <= play.lastSequence { blame("events", "playback \(play.id): \(event.kind.name) out of order") }
    play.lastSequence = event.sequence
    if play.timesClosed > 0 { blame("events", "playback \(play.id): \(event.kind.name) after its end was told") }
    if event.error.orphanPossible { play.mayBeOrphan = true }
    if story.setting.isCalm { calm(play, event.error, "\(event.kind.name)") }
    switch event.kind {
    case .sessionStarted:
      play.timesStarted += 1
      play.isOutage = false
      play.hasFinalError = false
    case .setupError:
      if play.hasFinalError { blame("one error", "playback \(play.id): a second set-up error") }
      play.hasFinalError = true
    case .heartbeatError:
      let isAnswer =
        event.error.serviceCode != 0 || (400..<500).contains(event.error.httpStatus) || event.error.status == .session
      if play.hasFinalError { blame("one error", "playback \(play.id): an error after the last") }
      if play.isOutage, !isAnswer { blame("one error", "playback \(play.id): the same outage is told twice") }
      if isAnswer, event.error.httpStatus != 429 { play.hasFinalError = true }
      play.isOutage = true
    case .recovered:
      if !play.isOutage { blame("one error", "playback \(play.id): recovered from nothing") }
      play.isOutage = false
    case .keptAlive:
      // Where the host has a part in renewals, this is when it was done with them.
      if play.kind.asksHost, play.lastBeat != nil { play.lastBeat = now }
      if play.timesStarted == 0 { blame("events", "playback \(play.id): kept alive before it started") }
    case .teardownError: play.hasTeardownError = true
    case .sessionEnded:
      if event.isLeft, !play.isLeft {
        blame("left", "playback \(play.id): its session was left to expire, which nobody wished")
      }
    case .playbackClosed:
      play.timesClosed += 1
      if play.closedAt == nil { blame("events", "playback \(play.id): closed by nobody") }
    case .sessionDoubtful, .renewalDue, .license, .licenseError, .noSession: break
    }
  }

  /// Where nothing breaks, nothing fails.
  func calm(_ play: Play, _ error: UsherError, _ what: String) {
    switch error.status {
    case .ok, .closed, .replaced, .noToken, .state, .timeout: break
    default:
      // A slot left to its lease may be in the way.
      if error.status == .limit, plays.values.contains(where: { $0.isLeft }) { return }
      blame("calm", "playback \(play.id) (\(play.kind)): \(what): \(error.message), though nothing was broken")
    }
  }

  // MARK: Ends

  /// Nothing of it is left in the engine: then nothing of it is left at the head-end.
  func ended(_ play: Play) {
    play.lastBeat = nil
    for (session, generation) in play.inHook {
      headEnd.change(session) { $0.delivered = max($0.delivered, generation) }
    }
    headEnd.expire(play.account, now: now)
    for id in headEnd.alive(play.id) {
      pending.append((play, id, now))
    }
  }

  /// The events of an end come after it; so what is left is judged when all is quiet.
  func judgeLeft(isLast: Bool) {
    // The events of its end may wait for a thread of the host.
    guard isLast || lanes.pending == 0 else { return }
    let due = pending.filter { isLast || now >= $0.at + 60_000 }
    if due.isEmpty { return }
    pending.removeAll { isLast || now >= $0.at + 60_000 }
    for (play, id, _) in due {
      guard let session = headEnd[id], !play.isLeft, !play.hasTeardownError else { continue }
      if session.delivered == session.generation {
        blame(
          "leak",
          "playback \(play.id) (\(play.kind)) is gone, but S\(id).\(session.generation) is held; teardowns sent: \(session.teardownsSent)"
        )
      } else if !play.mayBeOrphan {
        let newest = "S\(id).\(session.generation)"
        blame(
          "orphan",
          "playback \(play.id) (\(play.kind)) is gone; \(newest) is held, which never came (S\(id).\(session.delivered) did), and no event says so"
        )
      }
    }
  }

  func finalChecks(_ engine: Engine) {
    judgeLeft(isLast: true)
    let left = [
      engine.playbacks.count, engine.requests.transfers.count, engine.timers.count, engine.requests.queuedCount,
      engine.slots.teardownCount, engine.slots.waitingCount,
      engine.closing.openCount, engine.closing.awaitedCount, engine.requests.pausedCount
    ]
    if left.contains(where: { $0 != 0 }) {
      blame(
        "left",
        "left in the engine: playbacks, transfers, timers, queued, giving back, contested, open, awaited, held back: \(left)"
      )
    }
    for play in plays.values where play.timesClosed != 1 {
      blame("events", "playback \(play.id): its end was told \(play.timesClosed) times")
    }
    for open in openCompletions.values {
      blame("completions", "\(open.what) of playback \(open.play.id), asked at \(open.asked), was never completed")
    }
    for one in openAsks where one.ask.isOpen {
      blame("answers", "a question to the host of playback \(one.play.id) is open for ever")
    }
    for play in plays.values
    where play.kind.isCustomer && play.customerTeardowns > 1 && !play.hasTeardownError && story.setting.isCalm {
      blame("customer", "playback \(play.id): \(play.customerTeardowns) teardowns")
    }
  }
}
