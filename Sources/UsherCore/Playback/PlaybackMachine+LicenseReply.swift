/// Handles licence replies: their effect on the request, on the session that a reply may open, and on the session
/// token.
extension PlaybackMachine {
  package enum LicenseOutcome: Sendable {
    case success(SessionFields, license: Secret? = nil)
    /// A good reply has arrived, and the host's licence hook is about to read it. The session uses the fields at once;
    /// `success` or `failure` follows when the hook has answered.
    case arrived(SessionFields)
    case failure(WireFailure, Origin)
  }

  /// Handles the reply to a licence request, or its failure. Does nothing if no request with this id is in flight.
  /// - Parameter ownTeardowns: whether this context is tearing down, or has just torn down, other sessions at the same
  ///   server. The method uses this value only if the request opens the session.
  package mutating func licenseReplied(
    _ request: RequestID, _ outcome: LicenseOutcome, ownTeardowns: SSMSession.OwnTeardowns = .none, now: Milliseconds
  ) -> [Action] {
    guard let index = licenses.firstIndex(where: { $0.isInFlight(request) }) else { return [] }
    guard case .inFlight(_, let role) = licenses[index].phase else { return [] }
    switch outcome {
    case .arrived(let fields):
      licenses[index].replyArrived(request)
      let actions = use(fields, of: licenses[index], role, request, ownTeardowns: ownTeardowns, now: now)
      return withFollowUps(actions, now: now)
    case .success(let fields, let data):
      let license = licenses.remove(at: index)
      var actions = use(fields, of: license, role, request, ownTeardowns: ownTeardowns, now: now)
      if !license.isAbandoned {
        if !license.isRenewal && !license.isAuxiliary { hasLicense = true }
        // A licence comes before KEPT_ALIVE in the list of actions. But the licence that opens the session comes after
        // the actions that report the start of the session.
        let isOpening = if case .opening = role { true } else { false }
        actions.insert(.deliverLicense(license.id, data), at: isOpening ? actions.count : 0)
      }
      return withFollowUps(actions, now: now)
    case .failure(let failure, let origin):
      switch role {
      case .opening: return openingDenied(index, request, failure, origin, ownTeardowns: ownTeardowns, now: now)
      case .carriesToken(let generation): return deniedInSession(index, failure, origin, generation, now: now)
      case .sessionless:
        if failure.mayHaveTakenEffect, mayOpenSession(request) {
          return openingFailed(index, request, failure, origin, now: now)
        }
        if mayRepeat(index, failure) {
          licenses[index].returned()
          licenses[index].resends += 1
          return withFollowUps([], now: now)
        }
        if mayAskAgain(index), mayReauthorise(licenses[index], failure) {
          let actions = reauthorise(index, Denial(failure: failure, origin: origin, generation: 0))
          return withFollowUps(actions, now: now)
        }
        return denied(licenses.remove(at: index), failure, origin, now: now)
      case .reading:
        // The hook returned no licence. The server answered the request well, so the session is not affected.
        return failed(licenses.remove(at: index), failure, origin)
      }
    }
  }

  /// Returns whether the request can be sent again: the host still waits for its answer.
  private func mayAskAgain(_ index: Int) -> Bool { !isClosing && !licenses[index].isAbandoned }

  /// Returns whether the machine repeats the request. The machine does this once, if the server has closed the kept
  /// connection instead of replying; some servers close the connection after each reply. Keep-alives have their own
  /// retries.
  private func mayRepeat(_ index: Int, _ failure: WireFailure) -> Bool {
    failure.endedKeptConnection && mayAskAgain(index) && licenses[index].resends == 0
      && !(licenses[index].isRenewal && usesSession)
  }

  /// Handles the failure of a licence request that carried the session token of `generation`: the server denied the
  /// request or did not answer.
  private mutating func deniedInSession(
    _ index: Int, _ failure: WireFailure, _ origin: Origin, _ generation: UInt32, now: Milliseconds
  ) -> [Action] {
    // An error reply may repeat the token of its request. If the session has a newer token by now, the session must not
    // take the repeated token again.
    if let token = failure.token {
      if failure.httpStatus < 300 || generation == session.tokenGeneration {
        session.licenseBroughtToken(token, inReplyTo: generation)
      }
    } else if failure.mayHaveTakenEffect {
      session.licenseReplyLost()
    }
    let mayAsk = mayAskAgain(index)
    // If the session is being replaced, the server may have handled the teardown before this request. The machine can
    // then send the request again in the next session.
    let isStale =
      failure.isDenial && (isReplacing || mayBeStale(generation, index) || session.licenseDenied(generation))
    let denial = Denial(failure: failure, origin: origin, generation: generation)
    var actions: [Action]
    if mayAsk, isStale, licenses[index].resends < 3 {
      // Another reply has replaced the session token while this request was in flight, or may soon replace it: send the
      // request once more, with the newest token.
      licenses[index].returned()
      licenses[index].resends += 1
      licenses[index].denial = denial
      actions = []
    } else if mayRepeat(index, failure) {
      licenses[index].returned()
      licenses[index].resends += 1
      actions = []
    } else if mayAsk, mayReauthorise(licenses[index], failure) {
      actions = reauthorise(index, denial)
    } else {
      let license = licenses.remove(at: index)
      // If the host no longer waits for the request, and another token has replaced (or may replace) the token of the
      // request, the refusal says nothing about the session. So the machine treats the refusal as a time-out.
      actions = denied(license, isStale && !mayAsk ? WireFailure(.timeout) : failure, origin, now: now)
    }
    actions += perform(session.licenseReplied(now: now), now: now)
    return withFollowUps(actions, now: now)
  }

  /// Returns whether the library may ask for another content token: the server denied the request because of its token,
  /// for the first time, and the delegate has a token callback. Only requests for the content that plays can get
  /// another token; renewals under a session cannot.
  func mayReauthorise(_ license: LicenseRequest, _ failure: WireFailure) -> Bool {
    hasTokenCallback && license.reauthorised == nil && license.isForPlayingItem && !(license.isRenewal && usesSession)
      && failure.isAuthorisation
  }

  /// Makes a denied request wait until the token callback has returned another content token. One call of the callback
  /// serves all requests that the server denies meanwhile.
  mutating func reauthorise(_ index: Int, _ denial: Denial) -> [Action] {
    licenses[index].returned()
    licenses[index].hasFreshToken = true
    licenses[index].ownToken = nil
    licenses[index].reauthorised = denial
    if contentToken.isAsking { return [] }
    guard licenses[index].contentGeneration == contentGeneration else { return [] }
    tokenAskedAfterDenial()
    return [.askToken]
  }

  /// Passes the session fields of a good reply to the session.
  @inline(never)
  private mutating func use(
    _ fields: SessionFields, of license: LicenseRequest, _ role: LicenseRequest.Role, _ request: RequestID,
    ownTeardowns: SSMSession.OwnTeardowns, now: Milliseconds
  ) -> [Action] {
    switch role {
    case .reading: return []
    case .opening: return opened(license, request, fields, ownTeardowns: ownTeardowns, now: now)
    case .carriesToken(let generation): return continued(license, fields, request, generation, now: now)
    case .sessionless:
      // The library sent this request without a session, so the reply normally has no session token. Only the reply to
      // a request for the service certificate may have one; this token then opens the session.
      guard fields.token != nil, hasSSM else { return [] }
      guard session.canOpen else {
        mayHaveOrphan = true
        return []
      }
      session.openingSent(request, now: license.sentAt)
      return perform(session.setupReplied(request, .success(fields), ownTeardowns: ownTeardowns, now: now), now: now)
    }
  }

  /// Handles a good reply to the request that should open the session. If the reply has no session token, the playback
  /// continues without a session.
  private mutating func opened(
    _ license: LicenseRequest, _ request: RequestID, _ fields: SessionFields, ownTeardowns: SSMSession.OwnTeardowns,
    now: Milliseconds
  ) -> [Action] {
    guard fields.token == nil else {
      let actions = perform(
        session.setupReplied(request, .success(fields), ownTeardowns: ownTeardowns, now: now), now: now)
      return actions + perform(session.modeDecided(mode(license, fields), sentAt: license.sentAt, now: now), now: now)
    }
    mayHaveOrphan = mayHaveOrphan || fields.isTokenUnusable
    let actions = perform(session.openingFailed(request, orphanPossible: false), now: now)
    guard !isClosing, !isSessionless else { return actions }
    let wasReplacing = isReplacing
    lifecycle.openedNoSession()
    // The old session has finished. To close the playback later, the machine needs a session that has not finished.
    if wasReplacing { session = session.successor() }
    return actions + [.report(.sessionless)]
  }

  private mutating func openingDenied(
    _ index: Int, _ request: RequestID, _ failure: WireFailure, _ origin: Origin, ownTeardowns: SSMSession.OwnTeardowns,
    now: Milliseconds
  ) -> [Action] {
    // A reply with a session token has opened a session, even if the reply refuses the licence. After such a reply the
    // machine does not ask for another content token.
    let mayAsk = mayAskAgain(index) && failure.token == nil
    if failure.serviceCode == SSMCode.tooManySessions, mayAsk {
      licenses[index].returned()
      return perform(session.setupReplied(request, .failure(failure), ownTeardowns: ownTeardowns, now: now), now: now)
        + sendWaiting(now: now)
    }
    if mayAsk, mayReauthorise(licenses[index], failure) {
      let actions = reauthorise(index, Denial(failure: failure, origin: origin, generation: 0))
      return actions + perform(session.openingFailed(request, orphanPossible: false), now: now) + sendWaiting(now: now)
    }
    if failure.token != nil {
      let license = licenses.remove(at: index)
      // The reply has a session token but no licence. The machine keeps this session alive, and tears it down when the
      // playback closes.
      var fields = SessionFields()
      fields.token = failure.token
      let opened = perform(
        session.setupReplied(request, .success(fields), ownTeardowns: ownTeardowns, now: now), now: now)
      return withFollowUps(opened + denied(license, failure, origin, now: now), now: now)
    }
    return openingFailed(index, request, failure, origin, now: now)
  }

  /// Called when a request that could open the session has failed and will not be retried.
  @inline(never)
  private mutating func openingFailed(
    _ index: Int, _ request: RequestID, _ failure: WireFailure, _ origin: Origin, now: Milliseconds
  ) -> [Action] {
    let license = licenses.remove(at: index)
    session.endSlotWait()
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

  /// Returns whether another token has replaced the session token of `generation`, or a reply in flight may replace it.
  private func mayBeStale(_ generation: UInt32, _ index: Int) -> Bool {
    generation != session.tokenGeneration || (session.isActive && !session.isReady)
      || licenses.indices.contains { $0 != index && licenses[$0].awaitsReply }
  }

  /// Called when a licence request has failed and will not be retried.
  mutating func denied(
    _ license: LicenseRequest, _ failure: WireFailure, _ origin: Origin, now: Milliseconds
  ) -> [Action] {
    let actions = failed(license, failure, origin)
    guard usesSession, license.isRenewal else { return actions }
    return actions + perform(session.renewalFailed(failure, origin: origin, now: now), now: now)
  }

  private func failed(_ license: LicenseRequest, _ failure: WireFailure, _ origin: Origin) -> [Action] {
    guard !license.isAbandoned else { return [] }
    let error = failure.error(origin, license.isRenewal ? .renewal : .license)
    return [.failLicense(license.id, license.isRenewal ? error : error.stopping())]
  }

  /// Handles a good reply to a request that carried the session token.
  private mutating func continued(
    _ license: LicenseRequest, _ fields: SessionFields, _ request: RequestID, _ generation: UInt32, now: Milliseconds
  ) -> [Action] {
    session.licenseAccepted(request, fields.token, inReplyTo: generation)
    if fields.token == nil, fields.isTokenUnusable { session.licenseReplyLost() }
    var actions: [Action] = []
    if license.isRenewal {
      actions = perform(session.renewed(sentAt: license.sentAt, now: now), now: now)
    } else if !license.isAuxiliary {
      actions = perform(session.modeDecided(mode(license, fields), sentAt: license.sentAt, now: now), now: now)
    }
    actions += perform(session.periodChanged(fields.period, sentAt: license.sentAt, now: now), now: now)
    return actions + perform(session.licenseReplied(now: now), now: now)
  }

  /// Decides from the first licence reply what keeps the session alive.
  private func mode(_ license: LicenseRequest, _ fields: SessionFields) -> SSMSession.KeepAliveMode {
    if policy.opening == .customer { return fields.enforced.map { $0 ? .enforced : .heartbeat } ?? .none }
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
      // A binary reply cannot say what keeps the session alive, so the library sends heartbeats: a needless heartbeat
      // does no harm, but without a necessary one the session would expire.
      case .widevine: return license.isRaw || fields.enforced == false ? .heartbeat : .cdm
      }
    }
  }
}

extension WireFailure {
  /// Whether the server may accept the request with another content token.
  var isAuthorisation: Bool { httpStatus == 401 || httpStatus == 403 }

  /// Whether the server refused the request.
  var isDenial: Bool { serviceCode != 0 || httpStatus == 401 || httpStatus == 403 }
}
