extension PlaybackMachine {
  /// The phases of a playback; its session has separate phases. In the comment of each phase, the line with the arrow
  /// lists every phase that may follow. `make model` tries all orders of events and fails if such a line is wrong.
  enum Phase {
    /// This playback has not started. There are three possible reasons: another item still plays on the player; the
    /// host has only prepared the playback; or the library first tears down the sessions of dead processes.
    /// → playing, closing
    case waiting
    /// → replacing, sessionless, closing
    case playing
    /// The old session is closing; a new session starts when the old one has finished.
    /// → playing, sessionless, closing
    case replacing
    /// The licence reply that should have opened a session had no session token, so playback continues without a
    /// session. The reply to a later licence request may still open one.
    /// → playing, closing
    case sessionless
    /// The host closed the playback or started a newer item, and the playback waits until its session has ended.
    /// → closed
    case closing(Status)
    /// The playback has reported that it is closed. Late replies may still bring session tokens; the library tears
    /// those sessions down.
    /// → nothing
    case closed(Status)
  }

  /// Holds the phase, and has the only methods that change it. Each method is named for what happened.
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
    mutating func sessionDecided() { move(to: .playing) }
    mutating func beganClosing(_ status: Status) { move(to: .closing(status)) }
    mutating func closed(_ status: Status) { move(to: .closed(status)) }
  }

  /// Whether this playback has not started; see `Phase.waiting`.
  package var isWaiting: Bool {
    if case .waiting = lifecycle.phase { return true }
    return false
  }

  /// Whether the playback is closing or closed: the host closed it, or started a newer item on the same player.
  package var isClosing: Bool { closeStatus != nil }

  /// Whether the playback has reported that it is closed.
  package var isClosed: Bool {
    if case .closed = lifecycle.phase { return true }
    return false
  }

  /// The status with which the playback ends: closed or replaced. nil if nothing has closed the playback yet.
  var closeStatus: Status? {
    switch lifecycle.phase {
    case .closing(let status), .closed(let status): return status
    case .waiting, .playing, .replacing, .sessionless: return nil
    }
  }

  /// Whether the playback is closing its session in order to start a new one with a new content token.
  var isReplacing: Bool {
    if case .replacing = lifecycle.phase { return true }
    return false
  }

  /// Whether the last licence reply that could open a session had no session token.
  var isSessionless: Bool {
    if case .sessionless = lifecycle.phase { return true }
    return false
  }

  /// Whether licence requests use the session.
  var usesSession: Bool { hasSSM && !isSessionless }

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
    case .givingBack, .left, .ended: return .ended
    }
  }
}

#if !hasFeature(Embedded)
  extension PlaybackMachine {
    /// From now on the playback and its sessions record their transitions.
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
