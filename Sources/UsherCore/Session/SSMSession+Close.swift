/// A server that asks for more patience than this before a teardown gets none: the host waits for the end.
private let longestTeardownPause: Milliseconds = 10_000

extension SSMSession {
  package enum Ending: Sendable { case teardown, leave }

  /// Ends the session. Replies still under way are waited for, at most the teardown cap, since they may carry the only token, or a newer one.
  package mutating func close(_ ending: Ending, now: Milliseconds) -> [Action] {
    switch phase {
    case .idle, .contested: return end(left: false, orphanPossible: false)
    case .closing, .tearingDown, .retryingTeardown, .ended: return []
    case .settingUp:
      if ending == .leave { return end(left: true, orphanPossible: false) }
      return beginClosing(now: now)
    case .active:
      if ending == .leave { return end(left: true, orphanPossible: false) }
      return isBeatInFlight || foreign > 0 ? beginClosing(now: now) : sendTeardown(now: now)
    case .failed(let error):
      if ending == .leave || token == nil || isUnknownToServer {
        return end(left: ending == .leave && token != nil, orphanPossible: error.orphanPossible)
      }
      return isBeatInFlight || foreign > 0 ? beginClosing(now: now) : sendTeardown(now: now)
    }
  }

  private mutating func beginClosing(now: Milliseconds) -> [Action] {
    // Refused as unknown: the server means it, unless a licence still brings a newer token.
    if case .refused(_, _, let generation) = beat, generation == tokenGeneration { isUnknownToServer = true }
    phase = .closing
    if !isBeatInFlight { beat = .off }
    capAt = now.adding(policy.teardownTimeout)
    return [.setTimer(capAt)]
  }

  mutating func closingSetupReplied(_ outcome: SSMOutcome, now: Milliseconds) -> [Action] {
    switch outcome {
    case .success(let fields):
      guard fields.token != nil else { return end(left: false, orphanPossible: true) }
      take(fields.token)
      return sendTeardown(now: now)
    case .failure(let failure): return end(left: false, orphanPossible: failure.mayHaveTakenEffect)
    }
  }

  /// A licence request with the session token was sent.
  package mutating func foreignSent() { foreign &+= 1 }

  /// A licence request with the session token may have been answered, but the answer is lost.
  package mutating func licenseLost() { mayHaveLostToken = true }

  /// A licence request with the session token was answered; a new token in it was given to `foreignToken` before.
  package mutating func foreignAnswered(now: Milliseconds) -> [Action] {
    foreign = foreign > 0 ? foreign - 1 : 0
    if case .active = phase, case .refused(let failure, let attempt, let generation) = beat {
      if generation != tokenGeneration { return sendBeat(attempt: attempt, now: now) }
      return foreign > 0 ? [] : beatRefused(failure, origin: .ssm, operation: .heartbeat)
    }
    return foreignEnded(now: now)
  }

  /// A licence reply brought a newer session token.
  package mutating func foreignToken(_ newToken: Secret) {
    take(newToken)
    isUnknownToServer = false
  }

  /// Looks at what is awaited while closing.
  mutating func foreignEnded(now: Milliseconds) -> [Action] {
    switch phase {
    case .closing:
      guard setupInFlight == nil, !isBeatInFlight, foreign == 0 else { return [] }
      if isUnknownToServer { return end(left: false, orphanPossible: mayBeHeldByAnotherToken) }
      return token == nil ? end(left: false, orphanPossible: true) : sendTeardown(now: now)
    case .retryingTeardown:
      // No need to try the old token again.
      return hasNewerToken ? sendTeardown(now: now) : []
    case .ended:
      // The session was given up with an older token and that failed; a newer one came after all.
      if !isLeft, teardownRefused, hasNewerToken { return sendTeardown(now: now) }
      return []
    case .idle, .settingUp, .contested, .active, .failed, .tearingDown: return []
    }
  }

  /// A server that does not know our token may hold the session all the same.
  private var mayBeHeldByAnotherToken: Bool { mayHaveLostToken || isBeatInFlight || foreign > 0 }

  /// A token newer than the one the last teardown carried.
  private var hasNewerToken: Bool { token != nil && tokenGeneration != teardownGeneration }

  mutating func sendTeardown(now: Milliseconds) -> [Action] {
    guard let last = token else { return end(left: false, orphanPossible: false) }
    teardownGeneration = tokenGeneration
    teardownRefused = false
    teardownAttempts = 0
    capAt = now.adding(policy.teardownTimeout)
    // Cleared before it is sent, so that nothing later can use it.
    token = nil
    return sendTeardown(with: last, now: now)
  }

  private mutating func sendTeardown(with last: Secret, now: Milliseconds) -> [Action] {
    if !isBeatInFlight { beat = .off }
    let request = newRequest()
    teardownAttempts &+= 1
    phase = .tearingDown(request, last)
    return [.cancelTimer, .send(request, .teardown, token: last)] + (wasReleased ? [] : [.setTimer(capAt)])
  }

  mutating func capReached(now: Milliseconds) -> [Action] {
    switch phase {
    case .closing:
      guard now >= capAt else { return [.setTimer(capAt)] }
      return token == nil ? end(left: false, orphanPossible: true) : sendTeardown(now: now)
    case .tearingDown:
      guard now >= capAt else { return [.setTimer(capAt)] }
      return [release()].compactMap { $0 }  // the request goes on; its end is told
    case .retryingTeardown(let last, let at):
      var actions: [Action] = []
      if now >= capAt, let released = release() { actions.append(released) }
      return actions + (now >= at ? sendTeardown(with: last, now: now) : [.setTimer(wasReleased ? at : min(at, capAt))])
    case .idle, .settingUp, .contested, .active, .failed, .ended: return []
    }
  }

  package mutating func teardownReplied(_ request: RequestID, _ outcome: SSMOutcome, now: Milliseconds) -> [Action] {
    guard case .tearingDown(request, let last) = phase else { return [] }
    switch outcome {
    case .success: return end(left: false, orphanPossible: false)
    case .failure(let failure):
      teardownRefused = true
      if hasNewerToken { return sendTeardown(now: now) }
      // An earlier try may have reached the server although its reply did not reach us.
      if teardownAttempts > 1, failure.isUnknownSession {
        return end(left: false, orphanPossible: mayBeHeldByAnotherToken)
      }
      if failure.isTransient, teardownAttempts <= policy.teardownRetries,
        (failure.retryAfter ?? 0) <= longestTeardownPause
      {
        let at = now.adding(max(500 << UInt64(min(teardownAttempts - 1, 16)), failure.retryAfter ?? 0))
        phase = .retryingTeardown(last, at: at)
        return [.setTimer(wasReleased ? at : min(at, capAt))]
      }
      var error = failure.error(.ssm, .teardown).stopping()
      error.orphanPossible = failure.isUnknownSession && mayBeHeldByAnotherToken
      return [.teardownFailed(error)] + end(left: false, orphanPossible: error.orphanPossible)
    }
  }

  mutating func end(left: Bool, orphanPossible: Bool) -> [Action] {
    let orphanPossible = orphanPossible || lostOpening
    phase = .ended
    isLeft = isLeft || left
    if !isBeatInFlight { beat = .off }
    if setupInFlight == nil && foreign == 0 && !isBeatInFlight { token = nil }
    var actions: [Action] = [.cancelTimer]
    if let released = release() { actions.append(released) }
    if !isEndTold {
      isEndTold = true
      actions.append(.ended(left: left, orphanPossible: orphanPossible))
    }
    return actions
  }
}
