extension PlaybackMachine {
  /// Where the playback is in its life; its session has phases of its own. The line with the arrow lists every phase
  /// that may follow; `make model` tries all orders of events and fails when such a line is wrong.
  enum Phase {
    /// Another item plays on the player.
    /// → playing, closing
    case waiting
    /// → replacing, sessionless, closing
    case playing
    /// The session is closing; a new one starts when it is finished.
    /// → playing, sessionless, closing
    case replacing
    /// The licence reply that should have opened the session brought none: playback goes on without.
    /// → closing
    case sessionless
    /// The host closed the playback, and waits for the end of its session.
    /// → closed
    case closing(Status)
    /// The host knows that the playback is closed. Late replies may still bring tokens to give back.
    /// → nothing
    case closed(Status)
  }

  /// The phase, and the only methods that change it. Each is named for what happened.
  struct Lifecycle {
    private(set) var phase = Phase.waiting
    #if !hasFeature(Embedded)
      var log: TransitionLog?
    #endif

    private mutating func move(to next: Phase) {
      #if !hasFeature(Embedded)
        log?.add("PlaybackMachine", phase.caseName, next.caseName)
      #endif
      phase = next
    }

    mutating func started() { move(to: .playing) }
    mutating func beganReplacing() { move(to: .replacing) }
    mutating func replaced() { move(to: .playing) }
    mutating func openedNoSession() { move(to: .sessionless) }
    mutating func beganClosing(_ status: Status) { move(to: .closing(status)) }
    mutating func closed(_ status: Status) { move(to: .closed(status)) }
  }

  /// Another item plays on the player: this one has not started.
  package var isWaiting: Bool {
    if case .waiting = lifecycle.phase { return true }
    return false
  }

  /// The host closed it.
  package var isClosing: Bool { closeStatus != nil }

  /// The host closed it, and the end was reported.
  package var isClosed: Bool {
    if case .closed = lifecycle.phase { return true }
    return false
  }

  /// The status of its end, once the host closed it: closed or replaced.
  var closeStatus: Status? {
    switch lifecycle.phase {
    case .closing(let status), .closed(let status): return status
    case .waiting, .playing, .replacing, .sessionless: return nil
    }
  }

  /// The session is being replaced by one with a new content token.
  var isReplacing: Bool {
    if case .replacing = lifecycle.phase { return true }
    return false
  }

  /// Licence requests go with a session.
  var usesSession: Bool {
    if case .sessionless = lifecycle.phase { return false }
    return session.sharedPolicy.value.hasSSM
  }

  package var sessionState: SessionState {
    switch lifecycle.phase {
    case .closing, .closed: return .ended
    case .sessionless: return .none
    case .replacing: return .pending
    case .waiting, .playing: break
    }
    guard policy.hasSSM else { return .none }
    switch session.stage {
    case .failed: return .failed
    case .pending: return .pending
    case .active: return session.isDoubtful ? .doubtful : .active
    case .givingBack, .ended: return .ended
    }
  }
}

#if !hasFeature(Embedded)
  extension PlaybackMachine {
    /// From now on the playback and its sessions write down their transitions.
    package mutating func record(in log: TransitionLog) {
      lifecycle.log = log
      session.record(in: log)
    }
  }

  extension PlaybackMachine.Phase {
    fileprivate var caseName: String {
      switch self {
      case .waiting: return "waiting"
      case .playing: return "playing"
      case .replacing: return "replacing"
      case .sessionless: return "sessionless"
      case .closing: return "closing"
      case .closed: return "closed"
      }
    }
  }
#endif
