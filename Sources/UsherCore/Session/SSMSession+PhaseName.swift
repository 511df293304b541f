extension SSMSession {
  /// The name of the state in docs/model.md: the phase in words and, for an active session, the state of its beat.
  package var phaseName: String {
    switch lifecycle.phase {
    case .idle(let again): return again ? "idle, opens again" : "idle"
    case .settingUp: return "setting up"
    case .contested: return "contested"
    case .awaitingSlot: return "awaiting a slot"
    case .active: return "active, \(beatName)\(healthName)"
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

  private var healthName: String {
    switch health {
    case .good: return ""
    case .doubtful: return ", doubtful"
    case .outage: return ", outage"
    }
  }
}
