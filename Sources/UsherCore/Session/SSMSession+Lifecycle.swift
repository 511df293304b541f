extension SSMSession {
  /// Where the session is in its life. The line with the arrow lists every phase that may follow; `make model` tries
  /// all orders of events and fails when such a line is wrong.
  enum Phase {
    /// No session, and no request for one under way. `again`: a licence request that should have opened the session was
    /// refused because the account has too many; the next one is the last try.
    /// → settingUp, failed, ended
    case idle(again: Bool)
    /// The set-up request, or the licence request that opens the session, is under way. `again`: it is the second try.
    /// → idle, settingUp, contested, active, failed, closing, ended
    case settingUp(RequestID, again: Bool)
    /// The server refused set-up because the account has too many sessions, while this library gives one back. When
    /// that is done, or took too long, the session tries again.
    /// → idle, settingUp, ended
    case contested
    /// The session has a token and is kept alive.
    /// → failed, closing, tearingDown, ended
    case active
    /// Set-up or keep-alive failed for good.
    /// → closing, tearingDown, ended
    case failed(UsherError)
    /// The host closed the session; it awaits a reply that may carry the only token, or a newer one. At `until` it
    /// stops waiting. `setup`: the set-up request, where its reply is awaited.
    /// → tearingDown, ended
    case closing(setup: RequestID?, until: Milliseconds)
    /// A teardown request is under way.
    /// → tearingDown, retryingTeardown, ended
    case tearingDown(RequestID, Teardown)
    /// A teardown request failed in transport; the next one goes out at `at`.
    /// → tearingDown
    case retryingTeardown(Teardown, at: Milliseconds)
    /// The owner knows that the session ended. A late reply may still bring a token, which is then given back.
    /// → tearingDown
    case ended(Ended)
  }

  /// A teardown and its retries.
  struct Teardown {
    let token: Secret
    /// The generation of that token.
    let generation: UInt32
    /// Requests sent.
    var attempts: UInt32 = 0
    /// Until then the owner waits before it starts the session that needs this slot.
    let until: Milliseconds
  }

  struct Ended {
    /// The host chose to leave the session at the head-end.
    let left: Bool
    /// The set-up request whose reply is still awaited.
    var setup: RequestID?
    /// The generation of the token that a teardown carried, where at least one request of it failed.
    let failedTeardown: UInt32?
  }

  /// What the owner knows of the session's end.
  enum Reported: UInt8 { case nothing, nextMayStart, ended }

  /// The phase, and the only methods that change it. Each is named for what happened.
  struct Lifecycle {
    private(set) var phase = Phase.idle(again: false)
    private(set) var reported = Reported.nothing
    #if !hasFeature(Embedded)
      var log: TransitionLog?
    #endif

    private mutating func move(to next: Phase) {
      #if !hasFeature(Embedded)
        log?.add("SSMSession", phase.caseName, next.caseName)
      #endif
      phase = next
    }

    mutating func sentSetup(_ request: RequestID, again: Bool) { move(to: .settingUp(request, again: again)) }
    mutating func setupBroughtNothing(again: Bool) { move(to: .idle(again: again)) }
    mutating func refusedForLimit() { move(to: .contested) }
    mutating func wasSetUp() { move(to: .active) }
    mutating func failed(_ error: UsherError) { move(to: .failed(error)) }
    mutating func beganClosing(until: Milliseconds) { move(to: .closing(setup: setupInFlight, until: until)) }
    mutating func sentTeardown(_ request: RequestID, _ teardown: Teardown) {
      move(to: .tearingDown(request, teardown))
    }
    mutating func scheduledTeardown(_ teardown: Teardown, at: Milliseconds) {
      move(to: .retryingTeardown(teardown, at: at))
    }
    mutating func ended(left: Bool, failedTeardown: UInt32?) {
      move(to: .ended(Ended(left: left, setup: setupInFlight, failedTeardown: failedTeardown)))
    }

    /// The set-up request has its reply: a session that is closing or ended awaits it no longer.
    mutating func setupReplied() {
      switch phase {
      case .closing(_, let until): phase = .closing(setup: nil, until: until)
      case .ended(var end):
        end.setup = nil
        phase = .ended(end)
      case .idle, .settingUp, .contested, .active, .failed, .tearingDown, .retryingTeardown: break
      }
    }

    /// True the first time: the session then returns the action that reports it.
    mutating func report(_ what: Reported) -> Bool {
      guard what.rawValue > reported.rawValue else { return false }
      reported = what
      return true
    }

    /// The set-up request whose reply is awaited.
    var setupInFlight: RequestID? {
      switch phase {
      case .settingUp(let request, _): return request
      case .closing(let setup, _): return setup
      case .ended(let end): return end.setup
      case .idle, .contested, .active, .failed, .tearingDown, .retryingTeardown: return nil
      }
    }

    /// The generation of the token that the last teardown carried, where at least one request of it failed.
    var failedTeardown: UInt32? {
      switch phase {
      case .tearingDown(_, let teardown): return teardown.attempts > 1 ? teardown.generation : nil
      case .retryingTeardown(let teardown, _): return teardown.generation
      case .ended(let end): return end.failedTeardown
      case .idle, .settingUp, .contested, .active, .failed, .closing: return nil
      }
    }
  }
}

#if !hasFeature(Embedded)
  extension SSMSession.Phase {
    fileprivate var caseName: String {
      switch self {
      case .idle: return "idle"
      case .settingUp: return "settingUp"
      case .contested: return "contested"
      case .active: return "active"
      case .failed: return "failed"
      case .closing: return "closing"
      case .tearingDown: return "tearingDown"
      case .retryingTeardown: return "retryingTeardown"
      case .ended: return "ended"
      }
    }
  }
#endif
