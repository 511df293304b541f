extension SSMSession {
  /// The phases of a session. In the comment of each phase, the line with the arrow lists every phase that may follow.
  /// `make model` tries all orders of events and fails if such a line is wrong.
  enum Phase {
    /// No session exists, and no request for one is in flight. `again`: the server has refused the licence request that
    /// should open the session, because the account has too many sessions, while this context was tearing other
    /// sessions down. If the server also refuses the repeated request for this reason, and the host still waits for the
    /// licence, the session waits for a slot or fails.
    /// → settingUp, failed, ended
    case idle(again: Bool)
    /// The set-up request, or the licence request that opens the session, was sent at `sentAt` and is in flight.
    /// `again`: this request repeats one that the server refused because the account has too many sessions, while this
    /// context was tearing other sessions down.
    /// → idle, settingUp, contested, awaitingSlot, active, failed, closing, ended
    case settingUp(RequestID, again: Bool, sentAt: Milliseconds)
    /// The server refused set-up because the account has too many sessions, while this context is tearing other
    /// sessions down. The session tries again when those teardowns have ended or take too long.
    /// → idle, settingUp, ended
    case contested
    /// The server refused set-up because the account has too many sessions, and the host wants to wait until another
    /// device stops. The session tries again at `at`.
    /// → idle, settingUp, ended
    case awaitingSlot(at: Milliseconds)
    /// The session has a token and is kept alive.
    /// → failed, closing, tearingDown, ended
    case active
    /// Set-up or keep-alive failed for good.
    /// → closing, tearingDown, ended
    case failed(UsherError)
    /// The host closed the session; the session waits until `until` for a reply that may carry the only token or a
    /// newer one. `setup`: the set-up request, if its reply is the awaited one.
    /// → tearingDown, ended
    case closing(setup: RequestID?, until: Milliseconds)
    /// A teardown request is in flight.
    /// → tearingDown, retryingTeardown, ended
    case tearingDown(RequestID, Teardown)
    /// A teardown request failed, but a retry may succeed; the session sends the next request at `at`.
    /// → tearingDown
    case retryingTeardown(Teardown, at: Milliseconds)
    /// The session has reported that it ended. A late reply may still bring a token; the session then sends a teardown
    /// with this token. If the host left the session at the head-end to expire, the host may still ask for a teardown.
    /// → closing, tearingDown
    case ended(Ended)
  }

  /// Groups of phases. The owner of the session asks for the group and not for the phase.
  enum Stage { case pending, active, failed, givingBack, left, ended }

  /// A teardown and its retries.
  struct Teardown {
    let token: Secret
    /// The generation of `token`.
    let generation: UInt32
    /// How many requests were sent.
    var attempts: UInt32 = 0
    /// Whether an earlier request may have ended the session, although no good reply to it arrived.
    var mayHaveTakenEffect: Bool
    /// At this instant the session that waits for this slot may start, even if the teardown has not ended. If the
    /// teardown ends earlier, that session may start earlier.
    let until: Milliseconds
  }

  struct Ended {
    /// Whether the host chose to leave the session at the head-end, to expire there.
    let left: Bool
    /// The set-up request that is still in flight; nil if there is none.
    var setup: RequestID?
    /// The generation of the token in the last teardown; nil if no request of this teardown failed.
    let failedTeardown: UInt32?
    /// The last teardown, if the server did not answer it and so may still hold the session.
    let unanswered: Unanswered?
  }

  /// A session returns the actions `nextMayStart` and `ended` in this order, each once (`ended` twice after
  /// `reopened`). This value says which of them the session has returned last.
  enum Reported: UInt8 { case nothing, nextMayStart, ended }

  /// Holds the phase, and has the only methods that change it. Each method is named for what happened.
  struct Lifecycle {
    private(set) var phase = Phase.idle(again: false)
    /// The group of `phase`. The session stores it separately, because the engine reads the group before and after each
    /// step, and reading `phase` would copy the values in the phase.
    private(set) var stage = Stage.pending
    private(set) var reported = Reported.nothing
    #if !hasFeature(Embedded)
      var log: TransitionLog?
    #endif

    private mutating func move(to next: Phase) {
      #if !hasFeature(Embedded)
        log?.add("SSMSession", phase.caseName, next.caseName)
      #endif
      phase = next
      stage = next.stage
    }

    mutating func sentSetup(_ request: RequestID, again: Bool, at now: Milliseconds) {
      move(to: .settingUp(request, again: again, sentAt: now))
    }
    mutating func setupBroughtNothing(again: Bool) { move(to: .idle(again: again)) }
    mutating func refusedForLimit() { move(to: .contested) }
    mutating func beganAwaitingSlot(until at: Milliseconds) { move(to: .awaitingSlot(at: at)) }
    mutating func wasSetUp() { move(to: .active) }
    mutating func failed(_ error: UsherError) { move(to: .failed(error)) }
    mutating func beganClosing(until: Milliseconds) { move(to: .closing(setup: setupInFlight, until: until)) }
    mutating func sentTeardown(_ request: RequestID, _ teardown: Teardown) {
      move(to: .tearingDown(request, teardown))
    }
    mutating func scheduledTeardown(_ teardown: Teardown, at: Milliseconds) {
      move(to: .retryingTeardown(teardown, at: at))
    }
    mutating func ended(left: Bool, failedTeardown: UInt32?, unanswered: Unanswered?) {
      move(
        to: .ended(Ended(left: left, setup: setupInFlight, failedTeardown: failedTeardown, unanswered: unanswered)))
    }

    /// Called when the host asks for the teardown of a session that it had left to expire: the session then returns
    /// `ended` a second time.
    mutating func reopened() { reported = .nextMayStart }

    /// Called when the set-up request was answered: a session that is closing or has ended then stops waiting for this
    /// reply.
    mutating func setupReplied() {
      switch phase {
      case .closing(_, let until): phase = .closing(setup: nil, until: until)
      case .ended(var end):
        end.setup = nil
        phase = .ended(end)
      case .idle, .settingUp, .contested, .awaitingSlot, .active, .failed, .tearingDown, .retryingTeardown: break
      }
    }

    /// Notes that the session reports `what`. Returns true if the session has not reported it before; the session then
    /// returns the action that reports it.
    mutating func report(_ what: Reported) -> Bool {
      guard what.rawValue > reported.rawValue else { return false }
      reported = what
      return true
    }

    /// The set-up request that is in flight; nil if there is none.
    var setupInFlight: RequestID? {
      switch phase {
      case .settingUp(let request, _, _): return request
      case .closing(let setup, _): return setup
      case .ended(let end): return end.setup
      case .idle, .contested, .awaitingSlot, .active, .failed, .tearingDown, .retryingTeardown: return nil
      }
    }

    /// The generation of the token in the last teardown; nil if no request of this teardown failed.
    var failedTeardown: UInt32? {
      switch phase {
      case .tearingDown(_, let teardown): return teardown.attempts > 1 ? teardown.generation : nil
      case .retryingTeardown(let teardown, _): return teardown.generation
      case .ended(let end): return end.failedTeardown
      case .idle, .settingUp, .contested, .awaitingSlot, .active, .failed, .closing: return nil
      }
    }
  }
}

extension SSMSession.Phase {
  fileprivate var stage: SSMSession.Stage {
    switch self {
    case .idle, .settingUp, .contested, .awaitingSlot: return .pending
    case .active: return .active
    case .failed: return .failed
    // The session is giving its slot back, or will do so when a reply has arrived.
    case .closing, .tearingDown, .retryingTeardown: return .givingBack
    case .ended(let end): return end.left ? .left : .ended
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
      case .awaitingSlot: return "awaitingSlot"
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
