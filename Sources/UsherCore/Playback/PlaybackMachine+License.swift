extension PlaybackMachine {
  /// A licence is asked for, by the host or, for a renewal whose payload came, by the library.
  /// - Parameters:
  ///   - isRaw: the reply will be octets, so it cannot say how the session is kept alive.
  ///   - isAuxiliary: not a licence but what the CDM needs before it (the Widevine service certificate): decides nothing.
  ///   - token: the content token of what the request names, where the token map has one.
  package mutating func requestLicense(
    _ id: LicenseID, keySystem: KeySystem, isRenewal: Bool, isRaw: Bool = false, isAuxiliary: Bool = false,
    token: Secret? = nil, isItems: Bool = true,
    now: Milliseconds
  ) -> [Action] {
    if let closing { return [.failLicense(id, UsherError(closing, operation: isRenewal ? .renewal : .license))] }
    lastKeySystem = keySystem
    flows.append(
      LicenseFlow(
        id: id, keySystem: keySystem, isRenewal: isRenewal, isRaw: isRaw, isAuxiliary: isAuxiliary, ownToken: token,
        isItems: isItems))
    if let token, isItems, let actions = tokenGiven(token, now: now) { return actions + pump(now: now) }
    return pump(now: now)
  }

  /// Sends what can be sent.
  mutating func pump(now: Milliseconds) -> [Action] {
    guard isStarted, !isClosing, !isRestarting else { return [] }
    if policy.hasSSM, let failure = session.failure { return failWaiting(failure) }
    var actions: [Action] = []
    if policy.startsWithLicense, usesSession, !policy.opensByLicense, session.isIdle {
      guard flows.contains(where: { $0.isWaiting }) else { return [] }
      actions = startSession(now: now)
    }
    var index = 0
    while index < flows.count {
      guard flows[index].isWaiting else {
        index += 1
        continue
      }
      if usesSession && !session.isReady && !session.canOpen { return actions }
      if let denial = flows[index].denial {
        if flows.contains(where: { !$0.isWaiting }) {
          index += 1
          continue
        }
        flows[index].denial = nil
        if denial.generation == session.tokenGeneration, mayReauthorise(flows[index], denial.failure) {
          actions += reauthorise(index, denial)
        } else if denial.generation == session.tokenGeneration {
          let flow = flows.remove(at: index)
          actions += denied(flow, denial.failure, denial.origin, now: now)
          continue
        }
      }
      switch readiness(flows[index]) {
      case .send: actions.append(send(index))
      case .wait: break
      case .ask:
        contentToken = .asking
        actions.append(.askToken)
      case .await:
        contentToken = .awaited
        actions.append(.awaitToken(atMost: policy.tokenWait))
      case .restart:
        flows[index].hasFreshToken = true
        return actions + restart(now: now)
      case .fail(let error):
        let flow = flows.remove(at: index)
        actions.append(.failLicense(flow.id, error))
        continue
      }
      index += 1
    }
    return actions
  }

  private enum Readiness {
    case send, wait, ask, await, restart
    case fail(UsherError)
  }

  /// What a request that waits needs before it can go out; the session is as it should be.
  private func readiness(_ flow: LicenseFlow) -> Readiness {
    if flow.isRenewal, usesSession {
      return session.canOpen
        ? .fail(UsherError(.state, operation: .renewal, message: "there is no licence yet to renew")) : .send
    }
    if flow.ownToken == nil {
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
    guard hasLicense, !flow.isAuxiliary, !flow.hasFreshToken, flow.resends == 0 else { return .send }
    if hasTokenCallback, flow.ownToken == nil { return .ask }
    return policy.resetup == .always && usesSession && !session.canOpen ? .restart : .send
  }

  /// The session failed, and with it what waits for it.
  private mutating func failWaiting(_ failure: UsherError) -> [Action] {
    takeFlows(where: { $0.isWaiting }).map { flow in
      var error = failure
      // A set-up that failed is told as what it was; of one that lived it matters that it lives no more.
      if error.operation != .setup { error.status = .session }
      error.operation = flow.isRenewal ? .renewal : .license
      error.orphanPossible = false
      return .failLicense(flow.id, error)
    }
  }

  private mutating func send(_ index: Int) -> Action {
    let request = session.newRequest()
    let flow = flows[index]
    flows[index].phase = .inFlight(request, generation: session.tokenGeneration)
    flows[index].contentGeneration = contentGeneration
    let content = flow.isRenewal && usesSession ? nil : flow.ownToken ?? knownToken
    if usesSession {
      flows[index].isOpening = session.canOpen && !flow.isAuxiliary
      flows[index].isForeign = !session.canOpen
      if flows[index].isOpening { session.openingSent(request) }
      if flows[index].isForeign { session.foreignSent() }
    }
    let token = flows[index].isForeign ? session.token : nil
    return .sendLicense(
      request, flow.id, content: content, session: token, renewal: flow.isRenewal && !flows[index].isOpening)
  }

  /// A request that the host still had a part in takes its tokens now. nil: those it was sent with are the newest, or it carries no session token.
  package mutating func licenseAuthorised(_ request: RequestID) -> Secret? {
    guard let index = flows.firstIndex(where: { $0.isInFlight(request) }), flows[index].isForeign,
      let token = session.token,
      case .inFlight(_, let generation) = flows[index].phase, generation != session.tokenGeneration
    else { return nil }
    flows[index].phase = .inFlight(request, generation: session.tokenGeneration)
    return token
  }

  package enum LicenseOutcome: Sendable {
    case success(SessionFields, license: Secret? = nil)
    case failure(WireFailure, Origin)
  }

  /// The reply to a licence request; late ones are told by their request id.
  /// - Parameter ownTeardowns: as for set-up, where this request opened the session.
  package mutating func licenseReplied(
    _ request: RequestID, _ outcome: LicenseOutcome, ownTeardowns: SSMSession.OwnTeardowns = .none, now: Milliseconds
  ) -> [Action] {
    guard let index = flows.firstIndex(where: { $0.isInFlight(request) }) else { return [] }
    guard case .inFlight(_, let generation) = flows[index].phase else { return [] }
    switch outcome {
    case .success(let fields, let license):
      let flow = flows.remove(at: index)
      return flow.isOpening
        ? opened(flow, request, fields, license, ownTeardowns: ownTeardowns, now: now)
        : licensed(flow, fields, license, now: now)
    case .failure(let failure, let origin):
      let isForeign = flows[index].isForeign
      let mayAsk = !isClosing && !flows[index].isAbandoned
      if isForeign, failure.mayHaveTakenEffect { session.licenseLost() }
      if isForeign, let token = failure.token { session.foreignToken(token) }
      if mayAsk, isForeign, flows[index].resends < 3, failure.isDenial, mayBeStale(generation, index) {
        // Another reply replaced the session token, or is about to, while this was on its way: once more with the newest.
        flows[index].phase = .waiting
        flows[index].resends += 1
        flows[index].denial = Denial(failure: failure, origin: origin, generation: generation)
        return goingOn(perform(session.foreignAnswered(now: now), now: now), now: now)
      }
      if flows[index].isOpening {
        return openingDenied(index, request, failure, origin, ownTeardowns: ownTeardowns, now: now)
      }
      if mayAsk, mayReauthorise(flows[index], failure) {
        let actions = reauthorise(index, Denial(failure: failure, origin: origin, generation: generation))
        return goingOn(actions + (isForeign ? perform(session.foreignAnswered(now: now), now: now) : []), now: now)
      }
      let isStale = isForeign && !mayAsk && failure.isDenial && mayBeStale(generation, index)
      let flow = flows.remove(at: index)
      // Nobody waits for it, and its token was replaced meanwhile, or is about to be: of the session that says nothing.
      var actions = denied(flow, isStale ? WireFailure(.timeout) : failure, origin, now: now)
      guard isForeign else { return actions }
      actions += perform(session.foreignAnswered(now: now), now: now)
      return goingOn(actions, now: now)
    }
  }

  /// Denied for its content token, for the first time, and there is a callback that may have a better one.
  private func mayReauthorise(_ flow: LicenseFlow, _ failure: WireFailure) -> Bool {
    hasTokenCallback && flow.reauthorised == nil && flow.isItems && !(flow.isRenewal && usesSession)
      && failure.isAuthorisation
  }

  /// Puts a denied request back until another content token is there. One question serves all that are denied meanwhile.
  private mutating func reauthorise(_ index: Int, _ denial: Denial) -> [Action] {
    flows[index].phase = .waiting
    flows[index].hasFreshToken = true
    flows[index].ownToken = nil
    flows[index].reauthorised = denial
    if case .asking = contentToken { return [] }
    guard flows[index].contentGeneration == contentGeneration else { return [] }
    contentToken = .asking
    isReauthorising = true
    return [.askToken]
  }

  /// The reply that opens the session, or says that there is none.
  private mutating func opened(
    _ flow: LicenseFlow, _ request: RequestID, _ fields: SessionFields, _ license: Secret?,
    ownTeardowns: SSMSession.OwnTeardowns, now: Milliseconds
  ) -> [Action] {
    var actions: [Action] = []
    if fields.token == nil {
      actions += perform(session.openingFailed(request, orphanPossible: false), now: now)
      if !isClosing {
        isSessionless = true
        actions.append(.report(.sessionless))
      }
    } else {
      actions += perform(
        session.setupReplied(request, .success(fields), ownTeardowns: ownTeardowns, now: now), now: now)
      actions += perform(session.modeDecided(mode(flow, fields), now: now), now: now)
    }
    if !flow.isAbandoned {
      hasLicense = true
      actions.append(.deliverLicense(flow.id, license))
    }
    return goingOn(actions, now: now)
  }

  private mutating func openingDenied(
    _ index: Int, _ request: RequestID, _ failure: WireFailure, _ origin: Origin, ownTeardowns: SSMSession.OwnTeardowns,
    now: Milliseconds
  ) -> [Action] {
    let mayAsk = !isClosing && !flows[index].isAbandoned
    flows[index].isOpening = false
    if failure.serviceCode == SSMCode.tooManySessions, mayAsk {
      flows[index].phase = .waiting
      return perform(session.setupReplied(request, .failure(failure), ownTeardowns: ownTeardowns, now: now), now: now)
        + pump(now: now)
    }
    if mayAsk, mayReauthorise(flows[index], failure) {
      let actions = reauthorise(index, Denial(failure: failure, origin: origin, generation: 0))
      return actions + perform(session.openingFailed(request, orphanPossible: false), now: now) + pump(now: now)
    }
    let flow = flows.remove(at: index)
    if failure.token != nil {
      // No licence, but a session that is ours: kept alive, and given back at the end.
      var fields = SessionFields()
      fields.token = failure.token
      let opened = perform(
        session.setupReplied(request, .success(fields), ownTeardowns: ownTeardowns, now: now), now: now)
      return goingOn(opened + denied(flow, failure, origin, now: now), now: now)
    }
    let isLost = failure.mayHaveTakenEffect && policy.opening == .license
    var actions: [Action] = []
    if !flow.isAbandoned {
      var error = failure.error(origin, .license).stopping()
      error.orphanPossible = isLost
      actions.append(.failLicense(flow.id, error))
    }
    return goingOn(actions + perform(session.openingFailed(request, orphanPossible: isLost), now: now), now: now)
  }

  private func mayBeStale(_ generation: UInt32, _ index: Int) -> Bool {
    generation != session.tokenGeneration || (session.isActive && !session.isReady)
      || flows.indices.contains { $0 != index && !flows[$0].isWaiting }
  }

  /// The server's last word on a request.
  private mutating func denied(
    _ flow: LicenseFlow, _ failure: WireFailure, _ origin: Origin, now: Milliseconds
  ) -> [Action] {
    var actions: [Action] = []
    if !flow.isAbandoned {
      let error = failure.error(origin, flow.isRenewal ? .renewal : .license)
      actions.append(.failLicense(flow.id, flow.isRenewal ? error : error.stopping()))
    }
    if usesSession, flow.isRenewal {
      actions += perform(session.renewalEnded(failure, origin: origin, now: now), now: now)
    }
    return actions
  }

  private mutating func licensed(
    _ flow: LicenseFlow, _ fields: SessionFields, _ license: Secret?, now: Milliseconds
  ) -> [Action] {
    var actions: [Action] = []
    if flow.isForeign {
      if let token = fields.token { session.foreignToken(token) }
      if flow.isRenewal {
        actions += perform(session.renewalEnded(nil, origin: .license, now: now), now: now)
      } else if !flow.isAuxiliary {
        actions += perform(session.modeDecided(mode(flow, fields), now: now), now: now)
      }
      actions += perform(session.periodChanged(fields.period, now: now), now: now)
    }
    if !flow.isRenewal && !flow.isAuxiliary { hasLicense = true }
    if !flow.isAbandoned { actions.insert(.deliverLicense(flow.id, license), at: 0) }
    if flow.isForeign { actions += perform(session.foreignAnswered(now: now), now: now) }
    return goingOn(actions, now: now)
  }

  /// How the session is kept alive, as the first licence reply says.
  private func mode(_ flow: LicenseFlow, _ fields: SessionFields) -> SSMSession.KeepAliveMode {
    if policy.opening == .customer { return fields.enforced == false ? .heartbeat : .enforced }
    switch policy.keepAlive {
    case .heartbeat: return .heartbeat
    case .renewal: return flow.keySystem == .widevine ? .cdm : .enforced
    case .auto:
      if policy.opening == .license {
        guard fields.enforced ?? (flow.keySystem != .widevine) else { return .heartbeat }
        return flow.keySystem == .widevine ? .cdm : .enforced
      }
      switch flow.keySystem {
      case .fairPlay, .playReady, .clearKey: return fields.token == nil ? .heartbeat : .enforced
      // Octets cannot say it; a heartbeat too many does no harm, one too few loses the slot.
      case .widevine: return flow.isRaw || fields.enforced == false ? .heartbeat : .cdm
      }
    }
  }

  /// The host waits no longer for it.
  package mutating func abandonLicense(_ id: LicenseID, now: Milliseconds) -> Bool {
    guard let index = flows.firstIndex(where: { $0.id == id && !$0.isAbandoned }) else { return false }
    if flows[index].isWaiting { flows.remove(at: index) } else { flows[index].isAbandoned = true }
    return true
  }

  package func hasInFlight(_ id: LicenseID) -> Bool { flows.contains { $0.id == id && !$0.isWaiting } }

  /// The payload callback failed or was late.
  package mutating func payloadFailed(_ status: Status, now: Milliseconds) -> [Action] {
    perform(session.renewalEnded(WireFailure(status), origin: .local, now: now), now: now)
  }
}

extension PlaybackMachine.LicenseFlow {
  func isInFlight(_ request: RequestID) -> Bool {
    if case .inFlight(request, _) = phase { return true }
    return false
  }
}

extension WireFailure {
  /// The server wants another content token.
  var isAuthorisation: Bool { httpStatus == 401 || httpStatus == 403 }

  /// The server answered, and said no.
  var isDenial: Bool { serviceCode != 0 || httpStatus == 401 || httpStatus == 403 }
}
