extension PlaybackMachine {
  /// A licence is asked for, by the host or, for a renewal whose payload came, by the library.
  /// - Parameters:
  ///   - isRaw: the reply will be octets, so it cannot say how the session is kept alive.
  ///   - isAuxiliary: not a licence but what the CDM needs before it (the Widevine service certificate): decides nothing.
  package mutating func requestLicense(
    _ id: LicenseID, keySystem: KeySystem, isRenewal: Bool, isRaw: Bool = false, isAuxiliary: Bool = false, now: Milliseconds
  ) -> [Action] {
    if let closing { return [.failLicense(id, UsherError(closing, operation: isRenewal ? .renewal : .license))] }
    lastKeySystem = keySystem
    flows.append(LicenseFlow(id: id, keySystem: keySystem, isRenewal: isRenewal, isRaw: isRaw, isAuxiliary: isAuxiliary))
    return pump(now: now)
  }

  /// Sends what can be sent.
  mutating func pump(now: Milliseconds) -> [Action] {
    guard isStarted, !isClosing, !isRestarting else { return [] }
    var actions: [Action] = []
    if policy.hasSSM, let failure = session.failure {
      for flow in takeFlows(where: { $0.isWaiting }) {
        var error = failure
        // A set-up that failed is told as what it was; of one that lived it matters that it lives no more.
        if error.operation != .setup { error.status = .session }
        error.operation = flow.isRenewal ? .renewal : .license
        error.orphanPossible = false
        actions.append(.failLicense(flow.id, error))
      }
      return actions
    }
    var index = 0
    while index < flows.count {
      guard flows[index].isWaiting else { index += 1; continue }
      if policy.hasSSM && !session.isReady { return actions }
      if let denial = flows[index].denial {
        if flows.contains(where: { !$0.isWaiting }) { index += 1; continue }
        flows[index].denial = nil
        if denial.generation == session.tokenGeneration {
          let flow = flows.remove(at: index)
          actions += denied(flow, denial.failure, denial.origin, now: now)
          continue
        }
      }
      if flows[index].isRenewal, policy.hasSSM {
        actions.append(send(index))
      } else {
        switch contentToken {
        case .asking: break
        case .missing:
          let flow = flows.remove(at: index)
          actions.append(.failLicense(flow.id, Self.noToken(.license)))
          continue
        case .none:
          if hasTokenCallback {
            contentToken = .asking
            actions.append(.askToken)
          } else {
            let flow = flows.remove(at: index)
            actions.append(.failLicense(flow.id, Self.noToken(.license)))
            continue
          }
        case .known:
          if licenseAsked && !flows[index].isAuxiliary && !flows[index].hasFreshToken && flows[index].resends == 0 {
            if hasTokenCallback {
              contentToken = .asking
              actions.append(.askToken)
              break
            }
            if policy.resetup == .always, policy.hasSSM {
              flows[index].hasFreshToken = true
              return actions + restart(now: now)
            }
          }
          actions.append(send(index))
        }
      }
      index += 1
    }
    return actions
  }

  private mutating func send(_ index: Int) -> Action {
    let request = session.newRequest()
    let flow = flows[index]
    flows[index].phase = .inFlight(request, generation: session.tokenGeneration)
    var content: Secret?
    if case .known(let token) = contentToken, !(flow.isRenewal && policy.hasSSM) { content = token }
    if !flow.isRenewal && !flow.isAuxiliary { licenseAsked = true }
    if policy.hasSSM { session.foreignSent() }
    return .sendLicense(request, flow.id, content: content, session: policy.hasSSM ? session.token : nil, renewal: flow.isRenewal)
  }

  package enum LicenseOutcome: Sendable {
    case success(SessionFields)
    case failure(WireFailure, Origin)
  }

  /// The reply to a licence request; late ones are told by their request id.
  package mutating func licenseReplied(_ request: RequestID, _ outcome: LicenseOutcome, now: Milliseconds) -> [Action] {
    guard let index = flows.firstIndex(where: { $0.isInFlight(request) }) else { return [] }
    guard case .inFlight(_, let generation) = flows[index].phase else { return [] }
    switch outcome {
    case .success(let fields):
      let flow = flows.remove(at: index)
      return licensed(flow, fields, now: now)
    case .failure(let failure, let origin):
      if policy.hasSSM, !isClosing, !flows[index].isAbandoned, flows[index].resends < 3, failure.isDenial, mayBeStale(generation, index) {
        // Another reply replaced the session token, or is about to, while this was on its way: once more with the newest.
        flows[index].phase = .waiting
        flows[index].resends += 1
        flows[index].denial = Denial(failure: failure, origin: origin, generation: generation)
        return perform(session.foreignAnswered(now: now), now: now) + restartIfFinished(now: now) + pump(now: now)
      }
      let flow = flows.remove(at: index)
      var actions = denied(flow, failure, origin, now: now)
      guard policy.hasSSM else { return actions }
      actions += perform(session.foreignAnswered(now: now), now: now)
      return actions + restartIfFinished(now: now) + pump(now: now)
    }
  }

  private func mayBeStale(_ generation: UInt32, _ index: Int) -> Bool {
    generation != session.tokenGeneration || (session.isActive && !session.isReady)
      || flows.indices.contains { $0 != index && !flows[$0].isWaiting }
  }

  /// The server's last word on a request.
  private mutating func denied(_ flow: LicenseFlow, _ failure: WireFailure, _ origin: Origin, now: Milliseconds) -> [Action] {
    var actions: [Action] = []
    if !flow.isAbandoned {
      let error = failure.error(origin, flow.isRenewal ? .renewal : .license)
      actions.append(.failLicense(flow.id, flow.isRenewal ? error : error.stopping()))
    }
    if policy.hasSSM, flow.isRenewal { actions += perform(session.renewalEnded(failure, origin: origin, now: now), now: now) }
    return actions
  }

  private mutating func licensed(_ flow: LicenseFlow, _ fields: SessionFields, now: Milliseconds) -> [Action] {
    var actions: [Action] = []
    if policy.hasSSM {
      if let token = fields.token { session.foreignToken(token) }
      if flow.isRenewal {
        actions += perform(session.renewalEnded(nil, origin: .license, now: now), now: now)
      } else if !flow.isAuxiliary {
        actions += perform(session.modeDecided(mode(flow, fields), now: now), now: now)
      }
    }
    if !flow.isAbandoned { actions.insert(.deliverLicense(flow.id), at: 0) }
    if policy.hasSSM { actions += perform(session.foreignAnswered(now: now), now: now) }
    return actions + restartIfFinished(now: now) + pump(now: now)
  }

  /// How the session is kept alive, as the first licence reply says.
  private func mode(_ flow: LicenseFlow, _ fields: SessionFields) -> SSMSession.KeepAliveMode {
    switch policy.keepAlive {
    case .heartbeat: return .heartbeat
    case .renewal: return flow.keySystem == .widevine ? .cdm : .enforced
    case .auto:
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
  /// The server answered, and said no.
  var isDenial: Bool { serviceCode != 0 || httpStatus == 401 || httpStatus == 403 }
}
