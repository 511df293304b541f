import TestSupport

@testable import UsherCore
@testable import UsherEngine

/// Checks the library's promises with every request, every event and every step.
extension World {
  // MARK: Requests

  /// Records a violation if the library must not send this request.
  func judge(_ call: Call) {
    guard let play = call.play else { return }
    if play.timesClosed > 0, call.route != .teardown {
      fail("after the end", "playback \(play.id): \(call.text) after its PLAYBACK_CLOSED")
    }
    if let content = call.tokens.first(where: { $0.kind != .session }) { judgeContent(content, call, play) }
    if call.route == .setup || (call.route == .license && call.session == nil && play.kind.isV2) { judgeTurn(play) }
    guard let token = call.session else {
      if call.route == .heartbeat || call.route == .teardown || call.isRenewal, play.kind.hasServerSession,
        call.route != .renewal
      {
        fail("tokens", "playback \(play.id): \(call.route) without a session token")
      }
      return
    }
    guard let session = headEnd[token] else {
      return fail("tokens", "playback \(play.id): \(call.text), a token that the head-end never gave")
    }
    if session.playback != play.id {
      fail("tokens", "playback \(play.id): \(call.text) belongs to playback \(session.playback)")
    }
    let violations = headEnd.clientSends(
      token, isTeardown: call.route == .teardown, preparedAt: call.mayHaveWaited ? call.askedAt : nil)
    for violation in violations {
      switch violation {
      case .oldToken(let newest):
        fail("newest token", "playback \(play.id): \(call.text), but \(newest.text) was received before")
      case .teardownAfterItsAnswer:
        fail("after teardown", "playback \(play.id): \(call.text) again after its answer")
      case .requestAfterTeardown:
        fail("after teardown", "playback \(play.id): \(call.text) after the teardown was sent")
      }
    }
    if call.route == .teardown {
      if session.teardownsSent == 0 { play.teardownAt = call.askedAt }
      if session.teardownsSent > 12 { fail("retries", "playback \(play.id): more than 12 teardowns") }
    }
    if call.route == .heartbeat || call.isRenewal { beat(play) }
  }

  private func judgeContent(_ token: Token, _ call: Call, _ play: Play) {
    switch token.kind {
    case .playback where token.owner != play.id:
      fail("tokens", "playback \(play.id): \(call.text), the content token of another playback")
    case .playback where token.generation > play.tokens:
      fail("tokens", "playback \(play.id): \(call.text), a token that the host never gave")
    default: break
    }
  }

  /// Checks a set-up that the library sends for an item. The item must not hold a session already, and the earlier
  /// items of its screen must be closed. If a set-up or teardown of an earlier item is in flight, the new set-up must
  /// wait for it, but for at most 3 s. It need not wait if the delegate of this item, or of an item between the two,
  /// has the option `zap_without_waiting`.
  private func judgeTurn(_ play: Play) {
    let held = headEnd.tokens(of: play.id).first { token in
      headEnd[token].map { $0.isNewestReceived && $0.teardownsSent == 0 } ?? false
    }
    if let held { fail("one session", "playback \(play.id) sets up while it holds the session of \(held.text)") }
    for other in live where other !== play && other.player == play.player && other.wasKnown && !other.isLeft {
      guard let closed = other.closedAt else {
        if other.id < play.id {
          fail("zap", "playback \(play.id) sets up while playback \(other.id) still plays on its screen")
        }
        continue
      }
      let isBusy = running.values.contains {
        $0.play === other && !$0.isCancelled && ($0.route == .setup || $0.route == .teardown)
      }
      let zapped = plays.values.contains {
        $0.player == play.player && $0 !== other && ($0.closedAt ?? now) >= closed
          && delegates[Int($0.kind.rawValue)]?.policy.zapsAtOnce ?? false
      }
      guard isBusy, !zapped, now < min(closed, other.teardownAt) + 3000 else { continue }
      fail(
        "zap",
        "playback \(play.id) sets up \(now - closed) ms after playback \(other.id) was closed, before its slot is free"
      )
    }
  }

  // MARK: Keep-alives

  /// How many milliseconds late the engine may send a keep-alive. Usually 100 ms, because a keep-alive may wait this
  /// long in the request queue. In stories with only one or four requests at a time, other requests may delay a
  /// keep-alive longer, so the limit is 10 s.
  private var slack: Milliseconds { story.setting.perOrigin < 64 ? 10_000 : 100 }

  /// Call this when the library has sent a keep-alive, or has asked the host for a payload or for a heartbeat. Records
  /// a violation if the library has done this too late.
  func beat(_ play: Play) {
    guard let last = play.lastBeat else { return }
    if now > max(last + play.beatPeriod, play.pauseUntil) + slack, !isLate { late(play, last) }
    play.lastBeat = now
  }

  private func late(_ play: Play, _ last: Milliseconds) {
    fail(
      "late",
      "playback \(play.id) (\(play.kind)): no keep-alive for \(now - last) ms, its period is \(play.beatPeriod) ms")
  }

  /// Runs after each step: records a violation if a keep-alive is overdue.
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
    // Whether the host caused the delay: it has not answered a question, or its callbacks block.
    let isAsked = entry.questions.contains { $0.kind != .token && $0.kind != .spc }
    let isHosts = (play.kind.isCustomer || play.kind.asksHost) && (isAsked || lanes.isFull || lanes.isBlocked(play.id))
    guard let last = play.lastBeat, !isHosts else {
      play.lastBeat = now
      return
    }
    if now > max(last + session.period, play.pauseUntil) + slack { late(play, last) }
  }

  // MARK: Events

  func check(_ event: EngineEvent, _ play: Play) {
    if event.sequence <= play.lastSequence { fail("events", "playback \(play.id): \(event.kind.name) out of order") }
    play.lastSequence = event.sequence
    if play.timesClosed > 0 { fail("events", "playback \(play.id): \(event.kind.name) after PLAYBACK_CLOSED") }
    if event.error.orphanPossible { play.mayBeOrphan = true }
    if story.setting.isFaultless { checkFaultless(play, event.error, "\(event.kind.name)") }
    switch event.kind {
    case .sessionStarted:
      play.timesStarted += 1
      play.isOutage = false
      play.hasFinalError = false
    case .setupError:
      if play.hasFinalError { fail("one error", "playback \(play.id): a second set-up error") }
      play.hasFinalError = true
    case .heartbeatError:
      let isAnswer =
        event.error.serviceCode != 0 || (400..<500).contains(event.error.httpStatus) || event.error.status == .session
      if play.hasFinalError { fail("one error", "playback \(play.id): an error after the last") }
      if play.isOutage, !isAnswer { fail("one error", "playback \(play.id): the same outage is reported twice") }
      if isAnswer, event.error.httpStatus != 429 { play.hasFinalError = true }
      play.isOutage = true
    case .recovered:
      if !play.isOutage { fail("one error", "playback \(play.id): recovered from nothing") }
      play.isOutage = false
    case .keptAlive:
      // If a renewal needs an answer of the host, it counts as sent when the renewal is complete.
      if play.kind.asksHost, play.lastBeat != nil { play.lastBeat = now }
      if play.timesStarted == 0 { fail("events", "playback \(play.id): kept alive before it started") }
    case .teardownError: play.hasTeardownError = true
    case .sessionEnded:
      if event.isLeft, !play.isLeft {
        fail("left", "playback \(play.id): its session was left to expire, but the host did not ask for that")
      }
    case .playbackClosed:
      play.timesClosed += 1
      if play.closedAt == nil { fail("events", "playback \(play.id): closed, but the host did not close it") }
    case .waitingForSlot:
      if play.hasFinalError { fail("events", "playback \(play.id): waits for a slot after set-up has failed") }
    case .sessionDoubtful, .renewalDue, .license, .licenseError, .noSession, .deviceRegistered, .contextClosed,
      .recoveredSlot, .journalError:
      break
    }
  }

  /// Records a violation if the library reports an error in a story without faults. Errors that the host itself can
  /// cause are allowed.
  func checkFaultless(_ play: Play, _ error: UsherError, _ what: String) {
    switch error.status {
    case .ok, .closed, .replaced, .noToken, .state, .timeout: break
    default:
      // A limit error is allowed if the host has left a session to expire: this session may use a slot until it
      // expires.
      if error.status == .limit, plays.values.contains(where: { $0.isLeft }) { return }
      fail("faultless", "playback \(play.id) (\(play.kind)): \(what): \(error.message), in a story without faults")
    }
  }

  // MARK: Sessions after the end

  /// Called when the engine has forgotten the playback: notes the sessions that the head-end still holds for it.
  func ended(_ play: Play) {
    play.lastBeat = nil
    headEnd.expire(account: play.account, now: now)
    for token in headEnd.tokens(of: play.id) { pending.append((play, token, now)) }
  }

  /// Checks the sessions that the head-end still held when their playback ended. The check runs a minute after this
  /// end, since events after the end may explain why the head-end still held the session.
  func judgeLeft(isLast: Bool) {
    // Wait until no callback is queued: the last events of the playback may be among them.
    guard isLast || lanes.pending == 0 else { return }
    let due = pending.filter { isLast || now >= $0.at + 60_000 }
    if due.isEmpty { return }
    pending.removeAll { isLast || now >= $0.at + 60_000 }
    for (play, token, _) in due {
      guard let session = headEnd[token], !play.isLeft, !play.hasTeardownError else { continue }
      let newest = Token(.session, token.owner, session.generation).text
      let held = "playback \(play.id) (\(play.kind)) has ended, but the session of \(newest) is held"
      if session.isNewestReceived {
        fail("leak", "\(held); teardowns sent: \(session.teardownsSent)")
      } else if !play.mayBeOrphan {
        fail("orphan", "\(held); the library only received token \(session.received), and no event says so")
      }
    }
  }

  func finalChecks(_ engine: Engine) {
    judgeLeft(isLast: true)
    // If the host has left the session of a playback to expire, the engine keeps the playback until the host frees the
    // handle, since the host may still ask for the teardown of the session. So do not count these playbacks.
    let playbacks = engine.playbacks.sortedIDs.filter { engine.playbacks[$0]?.machine.session.isLeft != true }
    let left = [
      playbacks.count, engine.requests.transfers.count, engine.timers.count, engine.requests.queuedCount,
      engine.slots.teardownCount, engine.slots.waitingCount,
      engine.closing.openCount, engine.closing.awaitedCount, engine.requests.pausedCount
    ]
    if left.contains(where: { $0 != 0 }) {
      fail(
        "left",
        "left in the engine: playbacks, transfers, timers, queued, giving back, contested, open, awaited, "
          + "held back: \(left)"
      )
    }
    for play in plays.values where play.timesClosed != 1 {
      fail("events", "playback \(play.id): PLAYBACK_CLOSED came \(play.timesClosed) times")
    }
    for open in openCompletions.values {
      fail("completions", "\(open.what) of playback \(open.play.id), asked at \(open.asked), was never completed")
    }
    for one in openAsks where one.ask.isOpen {
      fail("answers", "a question to the host of playback \(one.play.id) is still open at the end")
    }
    for play in plays.values
    where play.kind.isCustomer && play.customerTeardowns > 1 && !play.hasTeardownError && story.setting.isFaultless {
      fail("customer", "playback \(play.id): \(play.customerTeardowns) teardowns")
    }
  }
}
