// Sessions that a licence request opens: SSP V2, where the server sets one up while it answers, and customer SSM, where the host does.
extension SSMSession {
  /// Whether the next licence request would open it.
  package var canOpen: Bool { policy.opensByLicense && isIdle }

  /// A licence request went out whose reply opens the session.
  package mutating func openingSent(_ request: RequestID) {
    guard case .idle = phase else { return }
    phase = .settingUp(request, again: opensAgain)
    setupInFlight = request
  }

  package func isOpening(_ request: RequestID) -> Bool { policy.opensByLicense && setupInFlight == request }

  /// Its reply brought no session: an error of its own, or content that needs none.
  /// - Parameter orphanPossible: the server may have set one up all the same.
  package mutating func openingFailed(_ request: RequestID, orphanPossible: Bool) -> [Action] {
    guard request == setupInFlight else { return [] }
    setupInFlight = nil
    lostOpening = lostOpening || orphanPossible
    switch phase {
    case .settingUp:
      phase = .idle
      return []
    case .closing: return end(left: false, orphanPossible: orphanPossible)
    case .idle, .contested, .active, .failed, .tearingDown, .retryingTeardown, .ended: return []
    }
  }

  /// Set-up was denied for its content token: another one is asked for, and set-up begins anew.
  mutating func setupWithdrawn(_ request: RequestID) -> Bool {
    guard case .settingUp(request, _) = phase, setupInFlight == request else { return false }
    setupInFlight = nil
    phase = .idle
    return true
  }

  /// A renewal named another period.
  package mutating func periodChanged(_ field: PeriodField, now: Milliseconds) -> [Action] {
    guard policy.opening == .customer, case .active = phase else { return [] }
    if field.isZero, schedule != nil {
      schedule = nil
      beat = .off
      return [.cancelTimer]
    }
    guard let new = policy.period(field), new != period else { return [] }
    guard schedule != nil else { return beginSchedule(period: new, now: now) }
    schedule?.change(period: new, now: now)
    if case .waiting = beat { return rearm() }
    return []
  }
}

extension PeriodField {
  /// The reply says: none.
  var isZero: Bool {
    switch self {
    case .number(let number), .text(let number): return number == 0
    case .missing, .wrongType: return false
    }
  }
}
