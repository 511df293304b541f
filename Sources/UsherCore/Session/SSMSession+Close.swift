/// The longest Retry-After that a teardown obeys. If the server asks for more, the library does not repeat the
/// teardown, because the host is waiting for the session to end.
private let longestTeardownPause: Milliseconds = 10_000

extension SSMSession {
  package enum Ending: Sendable { case teardown, leave }

  /// Ends the session. Before the session sends a teardown, it waits for the replies in flight, at most for the
  /// time-out of a teardown, because these replies may carry the only token or a newer one.
  package mutating func close(_ ending: Ending, now: Milliseconds) -> [Action] {
    switch lifecycle.phase {
    case .idle, .contested, .awaitingSlot: return end(left: false, orphanPossible: false)
    case .closing, .tearingDown, .retryingTeardown, .ended: return []
    case .settingUp:
      if ending == .leave { return end(left: true, orphanPossible: false) }
      return beginClosing(now: now)
    case .active:
      if ending == .leave { return end(left: true, orphanPossible: false) }
      return awaitsReply ? beginClosing(now: now) : sendTeardown(now: now)
    case .failed(let error):
      if ending == .leave || token == nil || newest.isUnknownToServer {
        return end(left: ending == .leave && token != nil, orphanPossible: error.orphanPossible)
      }
      return awaitsReply ? beginClosing(now: now) : sendTeardown(now: now)
    }
  }

  /// Whether the host left the session at the head-end, to expire there.
  package var isLeft: Bool { stage == .left }

  /// Whether `tearDownLeft` can tear the session down: the session has its token, or a reply in flight may bring one.
  package var mayTearDownLeft: Bool { token != nil || awaitsReply }

  /// Tears down the session that an earlier `close` left at the head-end to expire. If the server has answered that it
  /// does not know the session, sends nothing. If `close` has not left a session, does nothing.
  package mutating func tearDownLeft(now: Milliseconds) -> [Action] {
    guard isLeft, mayTearDownLeft else { return [] }
    lifecycle.reopened()
    guard awaitsReply || newest.isUnknownToServer else { return sendTeardown(now: now) }
    return beginClosing(now: now) + continueClosing(now: now)
  }

  @inline(never)
  private mutating func beginClosing(now: Milliseconds) -> [Action] {
    // If the beat is `refused` and carried the newest token, the server does not know this token. Only a licence reply
    // in flight can still bring a newer one.
    if case .refused(_, _, let generation) = beat, generation == tokenGeneration { newest.refuseAsUnknown() }
    if !isBeatInFlight { beatEnded() }
    let until = now.adding(policy.teardownTimeout)
    lifecycle.beganClosing(until: until)
    return [.setTimer(until)]
  }

  mutating func closingSetupReplied(_ outcome: SSMOutcome, now: Milliseconds) -> [Action] {
    if let token = outcome.token {
      take(token)
      return sendTeardown(now: now)
    }
    switch outcome {
    case .success: return end(left: false, orphanPossible: true)
    case .failure(let failure): return end(left: false, orphanPossible: failure.mayHaveTakenEffect)
    }
  }

  /// Continues after a reply has arrived while the session was closing, or after it had ended.
  mutating func continueClosing(now: Milliseconds) -> [Action] {
    switch lifecycle.phase {
    case .closing:
      guard !awaitsReply else { return [] }
      if newest.isUnknownToServer { return end(left: false, orphanPossible: newest.mayHaveSuccessor) }
      return token == nil ? end(left: false, orphanPossible: true) : sendTeardown(now: now)
    case .retryingTeardown(let teardown, _):
      // A newer token has arrived: send the teardown with it now, instead of a retry with the old token.
      guard newest.isNewer(than: teardown.generation) else { return [] }
      return sendTeardown(mayHaveTakenEffect: teardown.mayHaveTakenEffect, now: now)
    case .ended(let end):
      // The teardown with an older token failed, and a newer token has arrived since then.
      guard !end.left, let failed = end.failedTeardown, newest.isNewer(than: failed) else { return [] }
      return sendTeardown(now: now)
    case .idle, .settingUp, .contested, .awaitingSlot, .active, .failed, .tearingDown: return []
    }
  }

  /// Whether the server may hold the session under another token, although it refused the newest token as unknown.
  private var mayBeHeldByAnotherToken: Bool { newest.mayHaveSuccessor || isBeatInFlight || licensesInFlight > 0 }

  /// Sends a teardown with the newest token.
  /// - Parameter mayHaveTakenEffect: whether an earlier teardown, which carried another token, may have ended the
  ///   session.
  @inline(never)
  mutating func sendTeardown(mayHaveTakenEffect: Bool = false, now: Milliseconds) -> [Action] {
    guard let token else { return end(left: false, orphanPossible: false) }
    // Forget the token before the teardown is sent, so that no later request can use it.
    newest.forget()
    return send(
      Teardown(
        token: token, generation: tokenGeneration, mayHaveTakenEffect: mayHaveTakenEffect,
        until: now.adding(policy.teardownTimeout)))
  }

  private mutating func send(_ teardown: Teardown) -> [Action] {
    if !isBeatInFlight { beatEnded() }
    let request = newRequest()
    var teardown = teardown
    teardown.attempts &+= 1
    lifecycle.sentTeardown(request, teardown)
    let send = Action.send(request, .teardown, token: teardown.token)
    return hasFreedSlot ? [.cancelTimer, send] : [.cancelTimer, send, .setTimer(teardown.until)]
  }

  /// Whether the teardown request in flight repeats a request that failed.
  package var isTeardownRetry: Bool {
    if case .tearingDown(_, let teardown) = lifecycle.phase { return teardown.attempts > 1 }
    return false
  }

  /// Called when the timer of a closing session has fired.
  mutating func closingTimerFired(now: Milliseconds) -> [Action] {
    switch lifecycle.phase {
    case .closing(_, let until):
      guard now >= until else { return [.setTimer(until)] }
      return token == nil ? end(left: false, orphanPossible: true) : sendTeardown(now: now)
    case .tearingDown(_, let teardown):
      guard now >= teardown.until else { return [.setTimer(teardown.until)] }
      // The next session may start now. The teardown request stays in flight, and its reply ends this session.
      return freeSlot()
    case .retryingTeardown(let teardown, let at):
      let actions = now >= teardown.until ? freeSlot() : []
      return actions + (now >= at ? send(teardown) : [timer(teardown, retryAt: at)])
    case .idle, .settingUp, .contested, .awaitingSlot, .active, .failed, .ended: return []
    }
  }

  /// Sets the timer for the next teardown request. But if `teardown.until` is earlier, and the slot does not yet count
  /// as free, sets the timer for `teardown.until`: then the session that waits for this slot may start.
  private func timer(_ teardown: Teardown, retryAt at: Milliseconds) -> Action {
    .setTimer(hasFreedSlot ? at : min(at, teardown.until))
  }

  package mutating func teardownReplied(_ request: RequestID, _ outcome: SSMOutcome, now: Milliseconds) -> [Action] {
    guard case .tearingDown(request, var teardown) = lifecycle.phase else { return [] }
    switch outcome {
    case .success: return end(left: false, orphanPossible: false)
    case .failure(let failure):
      if newest.isNewer(than: teardown.generation) || (failure.isUnknownSession && newest.useOther()) {
        return sendTeardown(
          mayHaveTakenEffect: teardown.mayHaveTakenEffect || failure.mayHaveTakenEffect, now: now)
      }
      // An earlier teardown request may have reached the server although its reply was lost. If so, that request has
      // ended the session.
      if teardown.mayHaveTakenEffect, failure.isUnknownSession {
        return end(left: false, orphanPossible: mayBeHeldByAnotherToken)
      }
      if failure.isTransient, teardown.attempts <= policy.teardownRetries,
        (failure.retryAfter ?? 0) <= longestTeardownPause
      {
        teardown.mayHaveTakenEffect = teardown.mayHaveTakenEffect || failure.mayHaveTakenEffect
        let isImmediate = failure.endedKeptConnection && teardown.attempts == 1
        let pause: Milliseconds = isImmediate ? 0 : 500 << UInt64(min(teardown.attempts - 1, 16))
        let at = now.adding(max(pause, failure.retryAfter ?? 0))
        lifecycle.scheduledTeardown(teardown, at: at)
        return [timer(teardown, retryAt: at)]
      }
      var error = failure.error(.ssm, .teardown)
      error.orphanPossible = failure.isUnknownSession && mayBeHeldByAnotherToken
      return [.teardownFailed(error)]
        + end(
          left: false, orphanPossible: error.orphanPossible, failedTeardown: teardown.generation,
          unanswered: failure.isFinal
            ? nil
            : Unanswered(
              token: teardown.token, mayHaveTakenEffect: teardown.mayHaveTakenEffect || failure.mayHaveTakenEffect))
    }
  }

  mutating func end(left: Bool, orphanPossible: Bool) -> [Action] {
    end(left: left, orphanPossible: orphanPossible, failedTeardown: lifecycle.failedTeardown, unanswered: nil)
  }

  private mutating func end(
    left: Bool, orphanPossible: Bool, failedTeardown: UInt32?, unanswered: Unanswered?
  ) -> [Action] {
    lifecycle.ended(left: left, failedTeardown: failedTeardown, unanswered: unanswered)
    newest.teardownEnded()
    if !isBeatInFlight { beatEnded() }
    if !awaitsReply, !left { newest.forgetAll() }
    var actions: [Action] = [.cancelTimer]
    actions += freeSlot()
    if lifecycle.report(.ended) { actions.append(.ended(left: left, orphanPossible: orphanPossible)) }
    return actions
  }

  /// Reports that the session which waits for this slot may start; does nothing if this was reported before.
  private mutating func freeSlot() -> [Action] { lifecycle.report(.nextMayStart) ? [.nextMayStart] : [] }
}
