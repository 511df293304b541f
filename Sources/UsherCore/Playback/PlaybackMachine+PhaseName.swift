extension PlaybackMachine {
  /// The session's phase in words, and the playback's if it is unusual: this is the state's name in docs/model.md.
  package var phaseName: String {
    var name = policy.hasSSM ? session.phaseName : (isClosing ? "closed" : "playing")
    if isReplacing { name += ", replaced" }
    if policy.hasSSM, !usesSession { name += ", without session" }
    switch contentToken {
    case .asking: name += ", token asked"
    case .awaited: name += ", token awaited"
    case .none, .known, .missing: break
    }
    return name
  }
}
