internal import UsherCore

/// One attempt to get a licence: the request, which passes through the host's hooks to the server, and its reply.
final class LicenseAttempt {
  let id: RequestID
  let license: LicenseID
  let content: Secret?
  var draft: LicenseDraft
  var exchange: LicenseExchange

  init(_ id: RequestID, _ license: LicenseID, content: Secret?, draft: LicenseDraft, hooks: DelegateHooks?) {
    self.id = id
    self.license = license
    self.content = content
    self.draft = draft
    exchange = LicenseExchange(hooks: hooks?.requestHooks ?? LicenseExchange.Hooks(), hasURL: draft.endpoint != nil)
  }
}

/// Performs the actions that a `LicenseExchange` returns: asks hooks, sends the request, reads the reply.
extension Engine {
  func sendLicense(
    _ entry: PlaybackEntry, _ request: RequestID, _ license: LicenseID, content: Secret?, session: Secret?,
    isRenewal: Bool
  ) {
    guard let job = entry.jobs[license], !job.hasEnded else { return }
    if entry.machine.session.isOpening(request) { noteSetup(entry) }
    if entry.delegate.isCustomer { return askCustomer(entry, request, license, job) }
    let draft = entry.delegate.licenseDraft(
      job.keySystem, payload: job.payload, content: content, session: session, isRenewal: isRenewal, isRaw: job.isRaw)
    let hooks = entry.delegate.hooks
    let request = LicenseAttempt(request, license, content: content, draft: draft, hooks: hooks)
    job.request = request
    perform(request.exchange.start(), entry, job, request, hooks)
  }

  private func perform(
    _ action: LicenseExchange.Action?, _ entry: PlaybackEntry, _ job: LicenseJob, _ request: LicenseAttempt,
    _ hooks: DelegateHooks?
  ) {
    switch action {
    case .ask(let part): ask(part, entry, job, request, hooks)
    case .authoriseAndAskForHeaders:
      authorise(entry, request)
      ask(.headers, entry, job, request, hooks)
    case .send: send(entry, job, request)
    case .authoriseAndSend:
      authorise(entry, request)
      send(entry, job, request)
    case .fail(let status, let message): endUnsent(entry, request, WireFailure(status, message: message))
    case nil: break
    }
  }

  private func send(_ entry: PlaybackEntry, _ job: LicenseJob, _ request: LicenseAttempt) {
    guard let message = request.draft.request else { return endUnsent(entry, request, WireFailure(.state)) }
    for token in message.tokens { secrets.note(token, of: entry) }
    let isBounded = job.isRenewal && entry.machine.session.period > 0
    message.isRetry = isBounded && entry.machine.session.isRetry
    message.opensSession = entry.machine.mayOpenSession(request.id)
    job.transfer = requests.send(
      message, for: .license(entry.id, request.id, request.license),
      atMost: isBounded ? entry.machine.keepAliveTimeout(now: clock.now) : .never,
      connectingAgainFrom: message.isRetry ? entry.machine.connectsAgainFrom() : .never)
  }

  private func endUnsent(_ entry: PlaybackEntry, _ request: LicenseAttempt, _ failure: WireFailure) {
    _ = entry.jobAfterAttempt(request.license)
    step(entry) { $0.licenseReplied(request.id, .failure(failure, .local), now: self.clock.now) }
  }

  private func leaveUnsent(_ entry: PlaybackEntry, _ job: LicenseJob, _ request: LicenseAttempt) {
    // If the library itself requested this renewal, drop it: for the next session the library asks the host for a new
    // payload.
    if job.isByLibrary { return endUnsent(entry, request, WireFailure(.state)) }
    job.request = nil
    step(entry) { $0.licenseNotSent(request.id, now: self.clock.now) }
  }

  private func ask(
    _ part: LicenseExchange.Part, _ entry: PlaybackEntry, _ job: LicenseJob, _ request: LicenseAttempt,
    _ hooks: DelegateHooks?
  ) {
    guard let hook = hooks?.hook(for: part) else { return }
    askHook(entry, hook, question(part, entry, job, request)) { entry, reply, status in
      // While the hook was asked, the library may have replaced the session, because the host made another licence
      // request.
      if entry.machine.losesSession(request.id) { return self.leaveUnsent(entry, job, request) }
      let answer = self.take(part, reply, status, &request.draft)
      self.perform(request.exchange.answered(answer), entry, job, request, hooks)
    }
  }

  /// Asks one hook. Ignores the answer if the playback has been removed meanwhile.
  func askHook(
    _ entry: PlaybackEntry, _ hook: @escaping DelegateHooks.Hook, _ question: HookQuestion,
    answered: @escaping (PlaybackEntry, HostAnswer, Status) -> Void
  ) {
    askHost(
      entry, .hook(question.kind), question, atMost: entry.delegate.hookTimeout,
      put: { ask, host in hook(ask, question, host) }
    ) { entry, reply, status in
      if let entry { answered(entry, reply, status) }
    }
  }

  private func question(
    _ part: LicenseExchange.Part, _ entry: PlaybackEntry, _ job: LicenseJob, _ request: LicenseAttempt
  ) -> HookQuestion {
    let id = entry.id
    let draft = request.draft
    return HookQuestion(
      part.kind, keySystem: job.keySystem, isRenewal: job.isRenewal, assetID: job.assetID, data: job.payload
    ) {
      switch part {
      case .url:
        guard let endpoint = draft.endpoint else {
          return .failed(UsherError(.state, operation: .license, message: "the delegate has no licence URL"))
        }
        return .value(Secret(Array(endpoint.url.dropLast())))
      case .body: return .value(draft.body)
      case .headers:
        return self.sync {
          if request.exchange.isAskingForHeaders, let entry = self.playbacks[id] { self.authorise(entry, request) }
          return .value(headerText(request.draft.authorisation))
        }
      }
    }
  }

  private func authorise(_ entry: PlaybackEntry, _ request: LicenseAttempt) {
    guard let session = entry.machine.licenseAuthorised(request.id) else { return }
    request.draft.authorisation = entry.delegate.licenseAuthorisation(request.content, session)
    request.draft.tokens.append(session)
  }

  /// Puts a hook's answer into the request.
  private func take(
    _ part: LicenseExchange.Part, _ reply: HostAnswer, _ status: Status, _ draft: inout LicenseDraft
  ) -> LicenseExchange.Answer {
    guard let value = reply.secret else { return LicenseExchange.Answer(reply, status) }
    switch part {
    case .url:
      do throws(UsherError) {
        guard let text = value.withBytes({ URLText(Array($0)) }),
          let endpoint = try Endpoint.checked(text, insecure: options.allowsInsecureHTTP)
        else { return .missing(.invalidArgument) }
        draft.endpoint = endpoint
      } catch {
        return .missing(error.status)
      }
    case .body: draft.body = value
    case .headers: draft.authorisation = headerLines(value)
    }
    return .value
  }
}

/// Handles the reply to a licence request: the licence hook reads it, the machine gets its session fields, and the
/// host's request completes.
extension Engine {
  func licenseReplied(
    _ playback: PlaybackID, _ id: RequestID, _ license: LicenseID, _ outcome: HTTPOutcome,
    hiding secrets: ReplySecrets
  ) {
    guard let entry = playbacks[playback] else { return }
    guard let job = entry.jobs[license], let request = job.request, request.id == id else { return }
    let decoding = ReplyDecoder.license(
      outcome, keySystem: job.keySystem, names: entry.delegate.fields, hiding: secrets)
    // If the host no longer waits for the licence, the library takes only the session token from the reply.
    guard case .response(let response) = outcome, ReplyDecoder.isSuccess(response), !job.hasEnded,
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
    guard let job = entry.jobAfterAttempt(license) else { return }
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
}

extension LicenseExchange.Answer {
  init(_ reply: HostAnswer, _ status: Status) {
    switch reply {
    case .value: self = .value
    case .builtin: self = .builtin
    case .none: self = .missing(status)
    case .failed, .license, .server: self = .missing(.callback)
    }
  }
}

extension LicenseExchange.Part {
  fileprivate var kind: HookKind {
    switch self {
    case .url: return .licenseURL
    case .body: return .licenseBody
    case .headers: return .headers
    }
  }
}

extension DelegateHooks {
  fileprivate func hook(for part: LicenseExchange.Part) -> Hook? {
    switch part {
    case .url: return licenseURL
    case .body: return licenseBody
    case .headers: return headers
    }
  }

  fileprivate var requestHooks: LicenseExchange.Hooks {
    var hooks = LicenseExchange.Hooks()
    hooks.url = licenseURL != nil
    hooks.body = licenseBody != nil
    hooks.headers = headers != nil
    return hooks
  }
}
