extension PlaybackMachine {
  /// The host asks for a licence, or the library does: for a renewal whose payload came.
  /// - Parameters:
  ///   - isRaw: the reply will be octets, so it cannot say how the session is kept alive.
  ///   - isAuxiliary: not for a licence but for what the CDM needs before one (the Widevine service certificate). Its
  ///     reply does not decide how the session is kept alive.
  ///   - token: the content token of what the request names, where the token map has one.
  ///   - isForPlayingItem: the request is for the content that plays, not for another content beside it.
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
    if let token, isForPlayingItem, let actions = tokenGiven(token, now: now) { return actions + sendWaiting(now: now) }
    return sendWaiting(now: now)
  }

  /// Sends the licence requests that need not wait any longer.
  mutating func sendWaiting(now: Milliseconds) -> [Action] {
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
      if usesSession && !session.isReady && !session.canOpen { return actions }
      if let denial = licenses[index].denial {
        if licenses.contains(where: { !$0.isWaiting }) {
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
      case .send: actions.append(send(index))
      case .wait: break
      case .ask:
        contentToken = .asking(afterDenial: false)
        actions.append(.askToken)
      case .await:
        contentToken = .awaited
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

  /// What a waiting request needs before it can be sent. The session is ready for it.
  private func readiness(_ license: LicenseRequest) -> Readiness {
    if license.isRenewal, usesSession {
      return session.canOpen
        ? .fail(UsherError(.state, operation: .renewal, message: "there is no licence yet to renew")) : .send
    }
    if license.ownToken == nil {
      switch contentToken {
      case .asking, .awaited: return .wait
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

  /// The session failed, and with it the licence requests that wait for it.
  private mutating func failWaiting(_ failure: UsherError) -> [Action] {
    removeLicenses { $0.isWaiting }.map { license in
      var error = failure
      // The error of a failed set-up stays as it was; of a session that lived, only its end matters.
      if error.operation != .setup { error.status = .session }
      error.operation = license.isRenewal ? .renewal : .license
      error.orphanPossible = false
      return .failLicense(license.id, error)
    }
  }

  private mutating func send(_ index: Int) -> Action {
    let request = session.newRequest()
    let license = licenses[index]
    let content = license.isRenewal && usesSession ? nil : license.ownToken ?? knownToken
    var role = LicenseRequest.Role.sessionless
    var token: Secret?
    var isRenewal = license.isRenewal
    if usesSession, !session.canOpen {
      role = .carriesToken(generation: session.tokenGeneration)
      token = session.token
      session.licenseSent()
    } else if usesSession, !license.isAuxiliary {
      role = .opening
      isRenewal = false
      session.openingSent(request)
    }
    licenses[index].phase = .inFlight(request, role)
    licenses[index].contentGeneration = contentGeneration
    return .sendLicense(request, license.id, content: content, session: token, renewal: isRenewal)
  }

  /// The host's hooks have prepared a request, which may have taken long. Returns the session token to send it with;
  /// nil: the one it has is the newest, or it carries none.
  package mutating func licenseAuthorised(_ request: RequestID) -> Secret? {
    guard let index = licenses.firstIndex(where: { $0.isInFlight(request) }), let token = session.token,
      case .inFlight(_, .carriesToken(let generation)) = licenses[index].phase, generation != session.tokenGeneration
    else { return nil }
    licenses[index].phase = .inFlight(request, .carriesToken(generation: session.tokenGeneration))
    return token
  }

  package enum LicenseOutcome: Sendable {
    case success(SessionFields, license: Secret? = nil)
    case failure(WireFailure, Origin)
  }

  /// A licence request has its reply, or failed. A reply whose request id is not awaited changes nothing.
  /// - Parameter ownTeardowns: as for set-up, where this request opens the session.
  package mutating func licenseReplied(
    _ request: RequestID, _ outcome: LicenseOutcome, ownTeardowns: SSMSession.OwnTeardowns = .none, now: Milliseconds
  ) -> [Action] {
    guard let index = licenses.firstIndex(where: { $0.isInFlight(request) }) else { return [] }
    guard case .inFlight(_, let role) = licenses[index].phase else { return [] }
    switch outcome {
    case .success(let fields, let data):
      let license = licenses.remove(at: index)
      switch role {
      case .opening: return opened(license, request, fields, data, ownTeardowns: ownTeardowns, now: now)
      case .sessionless, .carriesToken: return licensed(license, fields, data, now: now)
      }
    case .failure(let failure, let origin):
      switch role {
      case .opening: return openingDenied(index, request, failure, origin, ownTeardowns: ownTeardowns, now: now)
      case .carriesToken(let generation): return deniedInSession(index, failure, origin, generation, now: now)
      case .sessionless:
        if mayAskAgain(index), mayReauthorise(licenses[index], failure) {
          let actions = reauthorise(index, Denial(failure: failure, origin: origin, generation: 0))
          return withFollowUps(actions, now: now)
        }
        return denied(licenses.remove(at: index), failure, origin, now: now)
      }
    }
  }

  /// The host waits for the request's answer.
  private func mayAskAgain(_ index: Int) -> Bool { !isClosing && !licenses[index].isAbandoned }

  /// A licence request failed that carried the session token of that generation.
  private mutating func deniedInSession(
    _ index: Int, _ failure: WireFailure, _ origin: Origin, _ generation: UInt32, now: Milliseconds
  ) -> [Action] {
    if failure.mayHaveTakenEffect { session.licenseReplyLost() }
    if let token = failure.token { session.licenseBroughtToken(token) }
    let mayAsk = mayAskAgain(index)
    let isStale = failure.isDenial && mayBeStale(generation, index)
    let denial = Denial(failure: failure, origin: origin, generation: generation)
    var actions: [Action]
    if mayAsk, isStale, licenses[index].resends < 3 {
      // Another reply replaced the session token while this request was under way, or is about to: the request goes
      // once more, with the newest token.
      licenses[index].phase = .waiting
      licenses[index].resends += 1
      licenses[index].denial = denial
      actions = []
    } else if mayAsk, mayReauthorise(licenses[index], failure) {
      actions = reauthorise(index, denial)
    } else {
      let license = licenses.remove(at: index)
      // Nobody waits for the request, and its token is not the newest: the refusal says nothing about the session.
      actions = denied(license, isStale && !mayAsk ? WireFailure(.timeout) : failure, origin, now: now)
    }
    actions += perform(session.licenseReplied(now: now), now: now)
    return withFollowUps(actions, now: now)
  }

  /// The server denied the request for its content token, for the first time, and there is a callback to ask for
  /// another.
  private func mayReauthorise(_ license: LicenseRequest, _ failure: WireFailure) -> Bool {
    hasTokenCallback && license.reauthorised == nil && license.isForPlayingItem && !(license.isRenewal && usesSession)
      && failure.isAuthorisation
  }

  /// Puts a denied request back until the callback gives another content token. One call of it serves all requests that
  /// are denied meanwhile.
  private mutating func reauthorise(_ index: Int, _ denial: Denial) -> [Action] {
    licenses[index].phase = .waiting
    licenses[index].hasFreshToken = true
    licenses[index].ownToken = nil
    licenses[index].reauthorised = denial
    if case .asking = contentToken { return [] }
    guard licenses[index].contentGeneration == contentGeneration else { return [] }
    contentToken = .asking(afterDenial: true)
    return [.askToken]
  }

  /// The reply that opens the session, or says that there is none.
  private mutating func opened(
    _ license: LicenseRequest, _ request: RequestID, _ fields: SessionFields, _ data: Secret?,
    ownTeardowns: SSMSession.OwnTeardowns, now: Milliseconds
  ) -> [Action] {
    var actions: [Action] = []
    if fields.token == nil {
      actions += perform(session.openingFailed(request, orphanPossible: false), now: now)
      if !isClosing {
        let wasReplacing = isReplacing
        lifecycle.openedNoSession()
        // The session to replace is finished. Closing the playback needs one that is not.
        if wasReplacing { session = session.successor() }
        actions.append(.report(.sessionless))
      }
    } else {
      actions += perform(
        session.setupReplied(request, .success(fields), ownTeardowns: ownTeardowns, now: now), now: now)
      actions += perform(session.modeDecided(mode(license, fields), now: now), now: now)
    }
    if !license.isAbandoned {
      hasLicense = true
      actions.append(.deliverLicense(license.id, data))
    }
    return withFollowUps(actions, now: now)
  }

  private mutating func openingDenied(
    _ index: Int, _ request: RequestID, _ failure: WireFailure, _ origin: Origin, ownTeardowns: SSMSession.OwnTeardowns,
    now: Milliseconds
  ) -> [Action] {
    let mayAsk = mayAskAgain(index)
    if failure.serviceCode == SSMCode.tooManySessions, mayAsk {
      licenses[index].phase = .waiting
      return perform(session.setupReplied(request, .failure(failure), ownTeardowns: ownTeardowns, now: now), now: now)
        + sendWaiting(now: now)
    }
    if mayAsk, mayReauthorise(licenses[index], failure) {
      let actions = reauthorise(index, Denial(failure: failure, origin: origin, generation: 0))
      return actions + perform(session.openingFailed(request, orphanPossible: false), now: now) + sendWaiting(now: now)
    }
    let license = licenses.remove(at: index)
    if failure.token != nil {
      // No licence, but a session: it is kept alive, and torn down when the playback closes.
      var fields = SessionFields()
      fields.token = failure.token
      let opened = perform(
        session.setupReplied(request, .success(fields), ownTeardowns: ownTeardowns, now: now), now: now)
      return withFollowUps(opened + denied(license, failure, origin, now: now), now: now)
    }
    let isLost = failure.mayHaveTakenEffect && policy.opening == .license
    mayHaveOrphan = mayHaveOrphan || isLost
    var actions: [Action] = []
    if !license.isAbandoned {
      var error = failure.error(origin, .license).stopping()
      error.orphanPossible = isLost
      actions.append(.failLicense(license.id, error))
    }
    return withFollowUps(actions + perform(session.openingFailed(request, orphanPossible: isLost), now: now), now: now)
  }

  /// The session token was replaced since that generation, or a reply under way may replace it.
  private func mayBeStale(_ generation: UInt32, _ index: Int) -> Bool {
    generation != session.tokenGeneration || (session.isActive && !session.isReady)
      || licenses.indices.contains { $0 != index && !licenses[$0].isWaiting }
  }

  /// The request failed for good.
  private mutating func denied(
    _ license: LicenseRequest, _ failure: WireFailure, _ origin: Origin, now: Milliseconds
  ) -> [Action] {
    var actions: [Action] = []
    if !license.isAbandoned {
      let error = failure.error(origin, license.isRenewal ? .renewal : .license)
      actions.append(.failLicense(license.id, license.isRenewal ? error : error.stopping()))
    }
    if usesSession, license.isRenewal {
      actions += perform(session.renewalEnded(failure, origin: origin, now: now), now: now)
    }
    return actions
  }

  private mutating func licensed(
    _ license: LicenseRequest, _ fields: SessionFields, _ data: Secret?, now: Milliseconds
  ) -> [Action] {
    var actions: [Action] = []
    if license.carriesToken {
      if let token = fields.token { session.licenseBroughtToken(token) }
      if license.isRenewal {
        actions += perform(session.renewalEnded(nil, origin: .license, now: now), now: now)
      } else if !license.isAuxiliary {
        actions += perform(session.modeDecided(mode(license, fields), now: now), now: now)
      }
      actions += perform(session.periodChanged(fields.period, now: now), now: now)
    }
    if !license.isRenewal && !license.isAuxiliary { hasLicense = true }
    if !license.isAbandoned { actions.insert(.deliverLicense(license.id, data), at: 0) }
    if license.carriesToken { actions += perform(session.licenseReplied(now: now), now: now) }
    return withFollowUps(actions, now: now)
  }

  /// How the session is kept alive, as the first licence reply says.
  private func mode(_ license: LicenseRequest, _ fields: SessionFields) -> SSMSession.KeepAliveMode {
    if policy.opening == .customer { return fields.enforced == false ? .heartbeat : .enforced }
    switch policy.keepAlive {
    case .heartbeat: return .heartbeat
    case .renewal: return license.keySystem == .widevine ? .cdm : .enforced
    case .auto:
      if policy.opening == .license {
        guard fields.enforced ?? (license.keySystem != .widevine) else { return .heartbeat }
        return license.keySystem == .widevine ? .cdm : .enforced
      }
      switch license.keySystem {
      case .fairPlay, .playReady, .clearKey: return fields.token == nil ? .heartbeat : .enforced
      // A reply in octets cannot say it. A needless heartbeat does no harm, a missing one loses the slot.
      case .widevine: return license.isRaw || fields.enforced == false ? .heartbeat : .cdm
      }
    }
  }

  /// The host does not wait any longer for the request. False: it has its answer already.
  package mutating func abandonLicense(_ id: LicenseID, now: Milliseconds) -> Bool {
    guard let index = licenses.firstIndex(where: { $0.id == id && !$0.isAbandoned }) else { return false }
    if licenses[index].isWaiting { licenses.remove(at: index) } else { licenses[index].isAbandoned = true }
    return true
  }

  package func hasInFlight(_ id: LicenseID) -> Bool { licenses.contains { $0.id == id && !$0.isWaiting } }

  /// The payload callback failed or was late.
  package mutating func payloadFailed(_ status: Status, now: Milliseconds) -> [Action] {
    perform(session.renewalEnded(WireFailure(status), origin: .local, now: now), now: now)
  }
}

extension PlaybackMachine.LicenseRequest {
  var carriesToken: Bool {
    if case .inFlight(_, .carriesToken) = phase { return true }
    return false
  }

  func isInFlight(_ request: RequestID) -> Bool {
    if case .inFlight(request, _) = phase { return true }
    return false
  }
}

extension WireFailure {
  /// The server wants another content token.
  var isAuthorisation: Bool { httpStatus == 401 || httpStatus == 403 }

  /// The server answered with a refusal.
  var isDenial: Bool { serviceCode != 0 || httpStatus == 401 || httpStatus == 403 }
}
