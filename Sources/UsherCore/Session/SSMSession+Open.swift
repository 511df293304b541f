/// Sessions that a licence request opens. In SSP V2 the server sets the session up when it answers the request; in
/// customer SSM the host sets it up.
extension SSMSession {
  /// Whether the next licence request would open the session.
  package var canOpen: Bool { policy.opensByLicense && isIdle }

  /// Called when the licence request that opens the session was sent.
  package mutating func openingSent(_ request: RequestID, now: Milliseconds) {
    guard case .idle(let again) = lifecycle.phase else { return }
    lifecycle.sentSetup(request, again: again, at: now)
  }

  package func isOpening(_ request: RequestID) -> Bool { policy.opensByLicense && lifecycle.setupInFlight == request }

  /// Whether the set-up in flight is the first one: no repetition after a refusal for the limit.
  package var isFirstSetup: Bool {
    if slotWait == nil, case .settingUp(_, again: false, _) = lifecycle.phase { return true }
    return false
  }

  /// Called when the licence request that could open the session has failed for good: ends the wait for a slot. If a
  /// later request finds no slot, a new wait begins.
  package mutating func endSlotWait() { slotWait = nil }

  /// Called when the reply to the licence request that opens the session brought no session: the reply was an error, or
  /// the content needs no session.
  /// - Parameter orphanPossible: whether the server may have set up a session nevertheless.
  package mutating func openingFailed(_ request: RequestID, orphanPossible: Bool) -> [Action] {
    guard request == lifecycle.setupInFlight else { return [] }
    lifecycle.setupReplied()
    switch lifecycle.phase {
    case .settingUp(_, let again, _):
      lifecycle.setupBroughtNothing(again: again)
      return []
    case .closing: return end(left: false, orphanPossible: orphanPossible)
    case .idle, .contested, .awaitingSlot, .active, .failed, .tearingDown, .retryingTeardown, .ended: return []
    }
  }
}
