extension SSMSession {
  /// The phase, and what keeps the session alive, in words: for those who watch the machine.
  package var phaseName: String {
    switch phase {
    case .idle: return opensAgain ? "idle, opens again" : "idle"
    case .settingUp: return "setting up"
    case .contested: return "contested"
    case .active: return "active, \(beatName)\(toldOutage ? ", outage" : toldDoubtful ? ", doubtful" : "")"
    case .failed: return "failed"
    case .closing: return "closing"
    case .tearingDown: return "tearing down"
    case .retryingTeardown: return "retrying teardown"
    case .ended: return isFinished ? "ended" : "ended, reply awaited"
    }
  }

  private var beatName: String {
    if isPaused { return "paused" }
    switch beat {
    case .off: return "no beat"
    case .waiting: return "beat waits"
    case .inFlight: return "beating"
    case .refused: return "beat refused"
    case .retrying: return "beat retries"
    case .asked: return "payload asked"
    }
  }
}

extension PlaybackMachine {
  /// The session's phase, and what is special about the playback's.
  package var phaseName: String {
    var name = policy.hasSSM ? session.phaseName : (isClosing ? "closed" : "playing")
    if isRestarting { name += ", replaced" }
    if isSessionless { name += ", without session" }
    switch contentToken {
    case .asking: name += ", token asked"
    case .awaited: name += ", token awaited"
    case .none, .known, .missing: break
    }
    return name
  }
}
