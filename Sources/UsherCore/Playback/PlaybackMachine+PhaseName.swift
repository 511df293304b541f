extension PlaybackMachine {
  /// The name of the state in docs/model.md: the session's phase in words. Further words follow if the playback
  /// replaces its session, continues without a session, or waits for a content token.
  package var phaseName: String {
    var name = policy.hasSSM ? session.phaseName : (isClosing ? "closed" : "playing")
    if isReplacing { name += ", replaced" }
    if policy.hasSSM, !usesSession { name += ", without session" }
    switch contentToken {
    case .asking, .askingAfterDenial: name += ", token asked"
    case .awaited: name += ", token awaited"
    case .none, .known, .missing: break
    }
    return name
  }
}
