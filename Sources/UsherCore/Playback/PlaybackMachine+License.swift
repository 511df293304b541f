extension PlaybackMachine {
  /// Handles a licence request of the host, or the library's own request for a renewal whose payload has arrived.
  /// - Parameters:
  ///   - isRaw: the reply will be binary, so it cannot say what keeps the session alive.
  ///   - isAuxiliary: the request is not for a licence but for data that the CDM needs first (the Widevine service
  ///     certificate). Its reply does not decide what keeps the session alive.
  ///   - token: the content token from the token map for the request's content; nil if there is no token map, or the
  ///     map has no token for this content.
  ///   - isForPlayingItem: whether the request is for the content that plays, and not for additional content.
  package mutating func requestLicense(
    _ id: LicenseID, keySystem: KeySystem, isRenewal: Bool, isRaw: Bool = false, isAuxiliary: Bool = false,
    token: Secret? = nil, isForPlayingItem: Bool = true,
    now: Milliseconds
  ) -> [Action] {
    if let closeStatus {
      return [.failLicense(id, UsherError(closeStatus, operation: isRenewal ? .renewal : .license))]
    }
    lastKeySystem = keySystem
    licenses.append(
      LicenseRequest(
        id: id, keySystem: keySystem, isRenewal: isRenewal, isRaw: isRaw, isAuxiliary: isAuxiliary, ownToken: token,
        isForPlayingItem: isForPlayingItem))
    #if !hasFeature(Embedded)
      licenses[licenses.count - 1].log = lifecycle.log
    #endif
    if let token, isForPlayingItem, let actions = tokenGiven(token, now: now) { return actions + sendWaiting(now: now) }
    return sendWaiting(now: now)
  }

  /// Sends the waiting licence requests that are ready to be sent.
  mutating func sendWaiting(now: Milliseconds) -> [Action] {
    if licenses.isEmpty { return [] }
    switch lifecycle.phase {
    case .playing, .sessionless: break
    case .waiting, .replacing, .closing, .closed: return []
    }
    if policy.hasSSM, let failure = session.failure { return failWaiting(failure) }
    var actions: [Action] = []
    if policy.startsWithLicense, usesSession, !policy.opensByLicense, session.isIdle {
      guard licenses.contains(where: { $0.isWaiting }) else { return [] }
      actions = startSession(now: now)
    }
    var index = 0
    while index < licenses.count {
      guard licenses[index].isWaiting else {
        index += 1
        continue
      }
      if hasSSM && !session.isReady && !session.canOpen { return actions }
      if let denial = licenses[index].denial {
        if licenses.contains(where: { $0.awaitsReply }) {
          index += 1
          continue
        }
        licenses[index].denial = nil
        if denial.generation == session.tokenGeneration, mayReauthorise(licenses[index], denial.failure) {
          actions += reauthorise(index, denial)
        } else if denial.generation == session.tokenGeneration {
          let license = licenses.remove(at: index)
          actions += denied(license, denial.failure, denial.origin, now: now)
          continue
        }
      }
      switch readiness(licenses[index]) {
      case .send: actions.append(send(index, now: now))
      case .wait: break
      case .ask:
        tokenAsked()
        actions.append(.askToken)
      case .await:
        tokenAwaited()
        actions.append(.awaitToken(atMost: policy.tokenWait))
      case .replaceSession:
        licenses[index].hasFreshToken = true
        return actions + replaceSession(now: now)
      case .fail(let error):
        let license = licenses.remove(at: index)
        actions.append(.failLicense(license.id, error))
        continue
      }
      index += 1
    }
    return actions
  }

  private enum Readiness {
    case send, wait, ask, await, replaceSession
    case fail(UsherError)
  }

  /// Decides what a waiting request needs next. The caller has checked that the session is ready for the request.
  private func readiness(_ license: LicenseRequest) -> Readiness {
    if license.isRenewal, usesSession {
      return session.canOpen
        ? .fail(UsherError(.state, operation: .renewal, message: "there is no licence yet to renew")) : .send
    }
    if license.ownToken == nil {
      switch contentToken {
      case .asking, .askingAfterDenial, .awaited: return .wait
      case .missing: return .fail(Self.noToken(.license))
      case .none:
        if hasTokenCallback { return .ask }
        if !policy.needsToken { return .send }
        return policy.tokenWait > 0 ? .await : .fail(Self.noToken(.license))
      case .known: break
      }
    }
    guard hasLicense, !license.isAuxiliary, !license.hasFreshToken, license.resends == 0 else { return .send }
    if hasTokenCallback, license.ownToken == nil { return .ask }
    return policy.resetup == .always && usesSession && !session.canOpen ? .replaceSession : .send
  }

  /// Called when the session has failed: all licence requests that wait for it fail too.
  private mutating func failWaiting(_ failure: UsherError) -> [Action] {
    removeLicenses { $0.isWaiting }.map { license in
      var error = failure
      // If set-up failed, the requests fail with the error of set-up. If the session failed later, the requests fail
      // with the status `session`.
      if error.operation != .setup { error.status = .session }
      error.operation = license.isRenewal ? .renewal : .license
      error.orphanPossible = false
      error.isAlreadyReported = true
      return .failLicense(license.id, error)
    }
  }

  private mutating func send(_ index: Int, now: Milliseconds) -> Action {
    let request = session.newRequest()
    let license = licenses[index]
    let content = license.isRenewal && usesSession ? nil : license.ownToken ?? knownToken
    var role = LicenseRequest.Role.sessionless
    var token: Secret?
    var isRenewal = license.isRenewal
    if hasSSM, !session.canOpen {
      role = .carriesToken(generation: session.tokenGeneration)
      token = session.token
      session.licenseSent()
    } else if hasSSM, !license.isAuxiliary {
      role = .opening
      if usesSession { isRenewal = false }
      session.openingSent(request, now: now)
    }
    licenses[index].sent(request, as: role, at: now)
    licenses[index].contentGeneration = contentGeneration
    return .sendLicense(request, license.id, content: content, session: token, renewal: isRenewal)
  }

  /// Whether the server may set up a session when it answers this licence request. If so, the library must not repeat
  /// the request after its reply was lost: the repeated request could open a second session.
  package func mayOpenSession(_ request: RequestID) -> Bool {
    if session.isOpening(request) { return true }
    // A request for the service certificate that carries no session token may open a session too.
    guard policy.opening == .license, hasSSM, let license = licenses.first(where: { $0.isInFlight(request) }),
      case .inFlight(_, .sessionless) = license.phase
    else { return false }
    return license.isAuxiliary
  }

  /// Called when the host's hooks have prepared a request, which may have taken a long time. Returns the newest session
  /// token if another reply has replaced the token of the request meanwhile; otherwise nil.
  package mutating func licenseAuthorised(_ request: RequestID) -> Secret? {
    guard let index = licenses.firstIndex(where: { $0.isInFlight(request) }), let token = session.token,
      case .inFlight(_, .carriesToken(let generation)) = licenses[index].phase, generation != session.tokenGeneration
    else { return nil }
    licenses[index].gotNewerToken(request, generation: session.tokenGeneration)
    return token
  }

  /// Whether the library must not send a request that the host's hooks still prepare. This is true while the library
  /// replaces the session of the request: the library may already have sent a teardown with the token of the request.
  package func losesSession(_ request: RequestID) -> Bool {
    guard isReplacing, let license = licenses.first(where: { $0.isInFlight(request) }), !license.isAbandoned,
      case .inFlight(_, .carriesToken) = license.phase
    else { return false }
    return true
  }

  /// Called when the engine does not send a request because of `losesSession`. The request then waits for the next
  /// session, and the teardown no longer waits for the request.
  package mutating func licenseNotSent(_ request: RequestID, now: Milliseconds) -> [Action] {
    guard let index = licenses.firstIndex(where: { $0.isInFlight(request) }) else { return [] }
    licenses[index].returned()
    // The library sets the next session up with the newest content token.
    licenses[index].usesNewestContentToken()
    return withFollowUps(perform(session.licenseReplied(now: now), now: now), now: now)
  }

  /// Called when the host no longer waits for a licence request. Returns false if the request has completed already.
  package mutating func abandonLicense(_ id: LicenseID, now: Milliseconds) -> Bool {
    guard let index = licenses.firstIndex(where: { $0.id == id && !$0.isAbandoned }) else { return false }
    if licenses[index].isWaiting { licenses.remove(at: index) } else { licenses[index].isAbandoned = true }
    return true
  }

  package func hasInFlight(_ id: LicenseID) -> Bool { licenses.contains { $0.id == id && !$0.isWaiting } }

  /// Called when the payload callback failed or missed its deadline.
  package mutating func payloadFailed(_ status: Status, now: Milliseconds) -> [Action] {
    perform(session.renewalFailed(WireFailure(status), origin: .local, now: now), now: now)
  }
}

extension PlaybackMachine.LicenseRequest {
  func isInFlight(_ request: RequestID) -> Bool {
    if case .inFlight(request, _) = phase { return true }
    return false
  }
}
