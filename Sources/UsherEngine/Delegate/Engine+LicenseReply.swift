internal import UsherCore

/// Handles the reply to a licence request: the licence hook reads it, the machine gets its session fields, and the
/// host's request completes.
extension Engine {
  func licenseReplied(
    _ playback: PlaybackID, _ id: RequestID, _ license: LicenseID, _ outcome: HTTPOutcome,
    hiding secrets: ReplySecrets
  ) {
    guard let entry = playbacks[playback] else { return }
    // An abandoned licence request still needs its reply: the reply may have a session token.
    guard let job = entry.jobs[license] ?? entry.abandoned[license], let request = job.request, request.id == id else {
      return
    }
    let decoding = ReplyDecoder.license(
      outcome, keySystem: job.keySystem, names: entry.delegate.fields, hiding: secrets)
    guard case .response(let response) = outcome, ReplyDecoder.isSuccess(response),
      let hook = entry.delegate.hooks?.license
    else {
      guard request.exchange.replied(hasHook: false) != nil else { return }
      return licenseDecoded(entry, id, license, decoding)
    }
    switch request.exchange.replied(hasHook: true) {
    case .ask: break
    case .useBuiltin: return licenseDecoded(entry, id, license, decoding)
    case .useAnswer, .fail, nil: return
    }
    let fields: SessionFields
    switch decoding {
    case .success(let reply):
      fields = reply.fields
      job.isReading = true
    case .failure:
      fields = ReplyDecoder.sessionFields(response, entry.delegate.fields)
      job.isReading = fields.token != nil
    }
    if job.isReading { report(entry, id, .arrived(fields)) }
    askHook(entry, hook, question(job, response, decoding)) { entry, reply, status in
      let result: LicenseDecoding
      switch request.exchange.licenseAnswered(LicenseExchange.Answer(reply, status)) {
      case .useBuiltin: result = decoding
      case .useAnswer:
        guard let answer = reply.secret else { return }
        result = .success(LicenseReply(data: answer, fields: fields))
      case .fail(let status):
        var failure = WireFailure(status, httpStatus: response.status)
        if case .failure(let unread) = decoding { failure.mayHaveTakenEffect = unread.mayHaveTakenEffect }
        result = .failure(failure)
      case .ask, nil: return
      }
      self.licenseDecoded(entry, id, license, result)
    }
  }

  private func question(_ job: LicenseJob, _ response: HTTPResponse, _ decoding: LicenseDecoding) -> HookQuestion {
    HookQuestion(
      .license, keySystem: job.keySystem, isRenewal: job.isRenewal, assetID: job.assetID, data: response.body,
      httpStatus: response.status
    ) {
      switch decoding {
      case .success(let reply): return .value(reply.data)
      case .failure(let failure): return .failed(failure.error(.license, job.isRenewal ? .renewal : .license))
      }
    }
  }

  func licenseDecoded(_ entry: PlaybackEntry, _ request: RequestID, _ license: LicenseID, _ decoding: LicenseDecoding) {
    guard let job = entry.jobs[license] ?? entry.abandoned.removeValue(forKey: license) else { return }
    let outcome: PlaybackMachine.LicenseOutcome
    switch decoding {
    case .success(let reply):
      secrets.note(reply.fields, of: entry)
      outcome = .success(reply.fields, license: reply.data)
    case .failure(let failure):
      let isSSM = job.isRenewal && job.keySystem == .widevine && entry.delegate.policy.hasSSM
      meter.failed(isSSM ? .ssm : .license, failure)
      outcome = .failure(failure, isSSM ? .ssm : .license)
    }
    report(entry, request, outcome)
  }

  private func report(_ entry: PlaybackEntry, _ request: RequestID, _ outcome: PlaybackMachine.LicenseOutcome) {
    step(entry) {
      let ownTeardowns = $0.session.isOpening(request) ? self.ownTeardowns(besides: entry) : .none
      return $0.licenseReplied(request, outcome, ownTeardowns: ownTeardowns, now: self.clock.now)
    }
  }

  func deliver(_ entry: PlaybackEntry, _ license: LicenseID, _ data: Secret?) {
    guard let job = entry.jobs.removeValue(forKey: license) else { return }
    timers.cancel(job.timer)
    events.emit(.license, entry, isOfItem: job.isOfItem)
    job.end(
      RequestResult(
        data: data, period: entry.machine.session.period, renewType: renewType(entry),
        isRenewal: job.isRenewal, error: UsherError(.ok)))
  }

  private func renewType(_ entry: PlaybackEntry) -> RenewType {
    guard entry.machine.session.isActive else { return .none }
    switch entry.machine.session.mode {
    case .heartbeat: return entry.machine.session.period > 0 ? .heartbeat : .none
    case .enforced: return .enforced
    case .cdm: return .cdm
    case .none: return .none
    }
  }

  func fail(_ entry: PlaybackEntry, _ license: LicenseID, _ error: UsherError) {
    guard let job = entry.jobs.removeValue(forKey: license) else { return }
    timers.cancel(job.timer)
    job.request?.exchange.abandon(error.status)
    if entry.machine.hasInFlight(license) { entry.abandoned[license] = job }
    // If the library itself requested this renewal and got no good reply, the machine decides whether to report the
    // failure as a heartbeat error.
    let isReported = job.isReading || !job.isByLibrary
    if isReported && !entry.machine.isClosing {
      events.emit(.licenseError, entry, error: error, isOfItem: job.isOfItem)
    }
    job.end(RequestResult(data: nil, period: 0, renewType: .none, isRenewal: job.isRenewal, error: error))
  }
}
