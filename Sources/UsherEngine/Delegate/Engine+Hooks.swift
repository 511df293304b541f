package import UsherCore

/// A licence request on its way through the hooks.
final class LicensePreparation {
  let request: RequestID
  let license: LicenseID
  let job: LicenseJob
  let content: Secret?
  var draft: LicenseDraft
  fileprivate var step = 0
  /// The host's own headers, as they stand.
  fileprivate var hasHeaders = false

  init(request: RequestID, license: LicenseID, job: LicenseJob, content: Secret?, draft: LicenseDraft) {
    self.request = request
    self.license = license
    self.job = job
    self.content = content
    self.draft = draft
  }
}

/// The host's parts of a delegate: asked one after the other, each now or later; where the host has none, or says so, the built-in behaviour.
extension Engine {
  /// Puts a question to the host in the order of the playback. Its end, however it comes, is told on the I/O thread, once; without the playback where that
  /// is gone by then.
  func ask(
    _ entry: PlaybackEntry, _ kind: Ask.Kind, _ question: HookQuestion? = nil, atMost: Milliseconds,
    endsWithPlayback: Bool = true,
    put: @escaping (Ask, HostPlayback) -> Void, answered: @escaping (PlaybackEntry?, AskReply, Status) -> Void
  ) {
    let id = entry.id
    let ask = Ask(kind, engine: self, question: question) { reply, status in
      let entry = self.playbacks[id]
      entry?.hookAsks.removeAll { !$0.isOpen }
      entry?.customerAsks.removeAll { !$0.isOpen }
      answered(entry, reply, status)
    }
    if endsWithPlayback { entry.hookAsks.append(ask) } else { entry.customerAsks.append(ask) }
    ask.timer = timers.set(at: clock.now.adding(atMost), .ask(ask))
    let host = entry.host
    call(id) { put(ask, host) }
  }

  /// A step of a licence request: of no interest once the playback is gone.
  private func ask(
    _ entry: PlaybackEntry, _ hook: @escaping DelegateHooks.Hook, _ question: HookQuestion,
    answered: @escaping (PlaybackEntry, AskReply, Status) -> Void
  ) {
    ask(
      entry, .hook(question.kind), question, atMost: entry.delegate.hookTimeout,
      put: { ask, host in hook(ask, question, host) }
    ) { entry, reply, status in
      if let entry { answered(entry, reply, status) }
    }
  }

  /// URL, body, and last the headers, since tokens are replaced meanwhile; then the request goes out.
  func prepare(_ entry: PlaybackEntry, _ preparation: LicensePreparation, _ hooks: DelegateHooks) {
    // Closed, or out of time, while the host's answer was on its way: nobody wants the licence any more.
    guard !entry.machine.isClosing, entry.jobs[preparation.license] != nil else {
      return licenseFailed(entry, preparation.request, WireFailure(entry.machine.isClosing ? .closed : .timeout))
    }
    while preparation.step < 3 {
      preparation.step += 1
      let hook: DelegateHooks.Hook?
      switch preparation.step {
      case 1: hook = hooks.licenseURL
      case 2: hook = hooks.licenseBody
      default: hook = hooks.headers
      }
      guard let hook else { continue }
      if preparation.step == 3 { authorise(entry, preparation) }
      return ask(entry, hook, question(entry, preparation)) { entry, reply, status in
        if let failure = self.take(reply, status, into: preparation) {
          return self.licenseFailed(entry, preparation.request, failure)
        }
        self.prepare(entry, preparation, hooks)
      }
    }
    if !preparation.hasHeaders { authorise(entry, preparation) }
    dispatch(entry, preparation)
  }

  /// A session token that was replaced while the host thought is not sent.
  private func authorise(_ entry: PlaybackEntry, _ preparation: LicensePreparation) {
    guard let session = entry.machine.licenseAuthorised(preparation.request) else { return }
    preparation.draft.authorisation = entry.delegate.licenseAuthorisation(preparation.content, session)
    preparation.draft.tokens.append(session)
  }

  private func question(_ entry: PlaybackEntry, _ preparation: LicensePreparation) -> HookQuestion {
    let job = preparation.job
    let draft = preparation.draft
    let id = entry.id
    let kind: HookKind
    switch preparation.step {
    case 1: kind = .licenseURL
    case 2: kind = .licenseBody
    default: kind = .headers
    }
    return HookQuestion(
      kind, keySystem: job.keySystem, isRenewal: job.isRenewal, assetID: job.assetID, data: job.payload
    ) {
      switch kind {
      case .headers:
        return self.sync {
          if !preparation.hasHeaders, let entry = self.playbacks[id] { self.authorise(entry, preparation) }
          return .value(headerText(preparation.draft.authorisation))
        }
      case .licenseURL:
        guard let endpoint = draft.endpoint else {
          return .failed(UsherError(.state, operation: .license, message: "the delegate has no licence URL"))
        }
        return .value(Secret(Array(endpoint.url.dropLast())))
      default: return .value(draft.body)
      }
    }
  }

  /// nil: taken. Else why the request does not go out.
  private func take(_ reply: AskReply, _ status: Status, into preparation: LicensePreparation) -> WireFailure? {
    switch reply {
    case .builtin: return nil
    case .value(let value):
      switch preparation.step {
      case 3:
        preparation.hasHeaders = true
        preparation.draft.authorisation = headerLines(value)
        preparation.draft.tokens += preparation.draft.authorisation.compactMap(headerValue)
      case 1:
        guard let text = value.withBytes({ URLText(Array($0)) }),
          let endpoint = Endpoint.checked(text, insecure: options.allowsInsecureHTTP)
        else {
          return WireFailure(.callback, message: "the URL hook answered something that is no URL")
        }
        preparation.draft.endpoint = endpoint
      default: preparation.draft.body = value
      }
      return nil
    case .none where status == .callback && preparation.step == 3:
      return WireFailure(.declined, message: "the header hook said not to send the request")
    case .none: return WireFailure(status, message: status == .timeout ? "a hook did not answer in time" : "")
    case .failed(let failure): return failure
    case .license: return WireFailure(.callback)
    }
  }

  /// The hook that finds the licence in a reply. What the reply says about the session is read all the same.
  func askLicenseHook(
    _ hook: @escaping DelegateHooks.Hook, _ entry: PlaybackEntry, _ request: RequestID, _ license: LicenseID,
    _ job: LicenseJob, _ response: HTTPResponse,
    _ builtin: LicenseDecoding, _ fields: SessionFields
  ) {
    let question = HookQuestion(
      .license, keySystem: job.keySystem, isRenewal: job.isRenewal, assetID: job.assetID, data: response.body,
      httpStatus: response.status
    ) {
      switch builtin {
      case .success(let reply): return .value(reply.data)
      case .failure(let failure): return .failed(failure.error(.license, job.isRenewal ? .renewal : .license))
      }
    }
    ask(entry, hook, question) { entry, reply, status in
      switch reply {
      case .builtin: self.licenseDecoded(entry, request, license, builtin)
      case .value(let data):
        self.licenseDecoded(entry, request, license, .success(LicenseReply(data: data, fields: fields)))
      case .none, .failed, .license:
        var failure = WireFailure(status == .ok ? .callback : status)
        if case .failed(let told) = reply { failure = told }
        failure.token = fields.token
        failure.httpStatus = response.status
        self.licenseDecoded(entry, request, license, .failure(failure))
      }
    }
  }
}

/// "Name: value" lines, each ending in NUL, as one text.
private func headerText(_ lines: [Secret]) -> Secret {
  let size = lines.reduce(0) { $0 + $1.count }
  return Secret(count: max(size - 1, 0)) { target in
    var at = 0
    for line in lines {
      line.withBytes { copy($0, into: target, at: at) }
      at += line.count
      if at <= target.count { target[at - 1] = 0x0A }
    }
  }
}

/// The lines of a text, each ending in NUL.
package func headerLines(_ text: Secret) -> [Secret] {
  text.withBytes { bytes in
    bytes.split(separator: 0x0A).map { line in
      Secret(count: line.count + 1) { copy(UnsafeBufferPointer(rebasing: line), into: $0) }
    }
  }
}

/// What a header line says, to be kept from whatever the server says back; nil where it is too short to be a secret.
private func headerValue(_ line: Secret) -> Secret? {
  line.withBytes { bytes in
    guard let colon = bytes.firstIndex(of: 0x3A) else { return nil }
    let value = bytes[(colon + 1)...].drop { $0 == 0x20 }.dropLast()
    return value.count < 16 ? nil : Secret(UnsafeBufferPointer(rebasing: value))
  }
}
