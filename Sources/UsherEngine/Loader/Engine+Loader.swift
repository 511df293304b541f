internal import CPlatform
package import UsherCore

/// Performs the actions that the `LoadingMachine` of each loading request returns.
extension Engine {
  /// Any thread: starts a loading request. `complete` and the result are the same as in `requestLicense`.
  /// - Parameter id: the id by which `cancelLoad` finds the request.
  @discardableResult
  package func load(
    _ playback: PlaybackShared, _ id: UInt64, _ loader: ResourceLoader, url: [UInt8], timeout: Milliseconds?,
    isBlocking: Bool, complete: @escaping (RequestResult) -> Void
  ) -> Bool {
    submit(for: playback) {
      let handOver = self.calls.completion(playback.id, isBlocking: isBlocking, complete)
      guard let entry = self.playbacks[playback.id], !entry.machine.isClosing else {
        return handOver(RequestResult(data: nil, error: UsherError(.closed, operation: .license)))
      }
      guard let names = loader.names(url) else {
        return handOver(
          RequestResult(
            data: nil, error: UsherError(.invalidArgument, operation: .license, message: "the URL names no content")))
      }
      let job = LoadingJob(
        id: id, loader: loader, url: url, identifier: names.identifier, content: names.content, complete: handOver)
      entry.loads.append(job)
      if let timeout { job.timer = self.timers.set(at: self.clock.now.adding(timeout), .load(playback.id, job)) }
      self.perform(job.machine.start(at: self.firstServer(job)), entry, job)
    }
  }

  /// Cancels a loading request. Any thread may call this function, but in pumped mode no callback may. Returns false if
  /// the request had ended before.
  package func cancelLoad(_ playback: PlaybackID, _ id: UInt64) -> Bool {
    sync {
      guard let entry = self.playbacks[playback], let job = entry.loads.first(where: { $0.id == id }) else {
        return false
      }
      self.fail(entry, job, UsherError(.closed, operation: .license), .cancelled)
      return true
    }
  }

  func loadTimedOut(_ playback: PlaybackID, _ job: LoadingJob) {
    job.timer = nil
    guard let entry = playbacks[playback] else { return }
    fail(entry, job, UsherError(.timeout, operation: .license, message: "no key within the time given"), .timedOut)
  }

  /// Ends the loading requests of a playback that closes.
  func endLoads(_ entry: PlaybackEntry, _ status: Status) {
    for job in entry.loads { fail(entry, job, UsherError(status, operation: .license), .cancelled) }
  }

  // MARK: Servers

  /// Returns the entitlement server, or the key server if the loader does not use an entitlement server.
  private func firstServer(_ job: LoadingJob) -> LoadingMachine<Endpoint>.Candidate {
    let options = job.loader.options
    let known: Endpoint?
    switch options.route {
    case .keyServer: known = options.keyServer
    case .entitlement: known = options.entitlementServer
    case .tokenURL: known = nil
    }
    if let known { return .allowed(known) }
    let inner = job.url.withUnsafeBufferPointer { TokenURL.url(in: $0, scheme: options.scheme, target: options.target) }
    return inner.map { server($0, for: job) } ?? .missing
  }

  /// Returns the entitlement server that the library would ask if the host does not name one; nil if there is none.
  private func entitlementServer(_ job: LoadingJob) -> Endpoint? {
    if let known = job.loader.options.entitlementServer { return known }
    guard job.loader.options.route == .entitlement, case .allowed(let server) = firstServer(job) else { return nil }
    return server
  }

  /// Checks a URL that came from the content or from an entitlement server, and returns its server.
  private func server(_ url: [UInt8], for job: LoadingJob) -> LoadingMachine<Endpoint>.Candidate {
    url.withUnsafeBufferPointer { bytes in
      guard (try? job.loader.options.allowed.check(bytes)) != nil, let text = URLText(url),
        let endpoint = try? Endpoint.checked(text, insecure: options.allowsInsecureHTTP)
      else { return .refused }
      job.hideToken(in: bytes)
      return .allowed(endpoint)
    }
  }

  // MARK: Steps

  private func perform(_ action: LoadingMachine<Endpoint>.Action?, _ entry: PlaybackEntry, _ job: LoadingJob) {
    switch action {
    case .askServer: askServer(entry, job, job.loader.callbacks.server, .license)
    case .askTokenURL: askServer(entry, job, job.loader.callbacks.tokenURL, .entitlement)
    case .askEntitlement(let server): askEntitlement(entry, job, server)
    case .getCertificate: getCertificate(entry, job)
    case .askSPC(let certificate): askSPC(entry, job, certificate)
    case .requestKey(let server, let spc): requestKey(entry, job, server, spc)
    case .fail(.noServer):
      let message = "the content's URL names no server"
      finish(entry, job, UsherError(.invalidArgument, operation: .license, message: message).stopping())
    case .fail(.notAllowed(let operation)):
      finish(entry, job, UsherError(.notAllowed, operation: operation).stopping())
    case nil: break
    }
  }

  /// Asks the host which server gets the SPC.
  private func askServer(
    _ entry: PlaybackEntry, _ job: LoadingJob, _ callback: ResourceLoader.ServerCallback?, _ operation: Operation
  ) {
    guard let callback else { return perform(job.machine.decided(.builtin), entry, job) }
    let question = ResourceLoader.ServerQuestion(
      url: job.url, contentIdentifier: job.identifier, content: job.content, entitlementServer: entitlementServer(job),
      kind: job.kind)
    let put: (HostQuestion, HostPlayback) -> Void = { ask, host in callback(ask, question, host) }
    job.ask = askHost(entry, .server, atMost: job.loader.options.serverTimeout, put: put) { entry, reply, status in
      job.ask = nil
      guard let entry else { return }
      switch reply {
      case .server(.keyServer(let server, let headers)):
        job.headers = headers
        job.registersDevice = operation == .entitlement && job.kind == .deviceRegistration
        server.url.withUnsafeBufferPointer { job.hideToken(in: $0) }
        self.perform(job.machine.decided(.keyServer(server)), entry, job)
      case .server(.entitlement(let wanted)):
        if let content = wanted.content { job.content = content }
        if let kind = wanted.kind { job.kind = kind }
        self.perform(job.machine.decided(.entitlement(wanted.server ?? self.entitlementServer(job))), entry, job)
      case .builtin: self.perform(job.machine.decided(.builtin), entry, job)
      case .none, .value, .license, .failed: self.fail(entry, job, UsherError(status, operation: operation))
      }
    }
  }

  private func askEntitlement(_ entry: PlaybackEntry, _ job: LoadingJob, _ server: Endpoint) {
    let loader = job.loader
    var random = [UInt8](repeating: 0, count: 16)
    guard random.withUnsafeMutableBytes({ platform_random_bytes($0.baseAddress, $0.count) }) == 0 else {
      return fail(entry, job, UsherError(.system, operation: .entitlement))
    }
    guard let messageID = UUIDBytes(random: random),
      let question = try? SEESRequest(
        messageID: messageID, kind: job.kind, contentID: job.content,
        cookie: loader.binding?.cookie ?? loader.options.cookie)
    else {
      let message = job.content.isEmpty ? "the URL names no content" : "the content identifier is not text"
      return fail(entry, job, UsherError(.invalidArgument, operation: .entitlement, message: message))
    }
    if !question.cookie.isEmpty { secrets.note(Secret(question.cookie), of: entry) }
    let headers = [
      LicenseDelegate.line("Content-Type: application/json"), LicenseDelegate.line("Accept: application/json")
    ]
    job.registersDevice = job.kind == .deviceRegistration
    let request = HTTPRequest(
      method: .post, endpoint: server, headers: headers, body: question.body, isUrgent: false, tokens: [],
      opensSession: true)
    job.transfer = requests.send(request, for: .load(entry.id, job, .entitlement(question)))
  }

  private func getCertificate(_ entry: PlaybackEntry, _ job: LoadingJob) {
    let id = entry.id
    fetchCertificate(job.loader.certificates, for: id, timeout: options.transport.httpTimeout) { answer in
      guard let entry = self.playbacks[id] else { return }
      guard let certificate = answer.data else { return self.fail(entry, job, answer.error) }
      self.perform(job.machine.certificateArrived(certificate), entry, job)
    }
  }

  private func askSPC(_ entry: PlaybackEntry, _ job: LoadingJob, _ certificate: Secret?) {
    let loader = job.loader
    let question = ResourceLoader.Question(certificate: certificate, contentIdentifier: job.identifier, url: job.url)
    let put: (HostQuestion, HostPlayback) -> Void = { ask, host in loader.callbacks.spc(ask, question, host) }
    job.ask = askHost(entry, .spc, atMost: loader.options.spcTimeout, put: put) { entry, reply, status in
      job.ask = nil
      guard let entry else { return }
      guard let spc = reply.secret else { return self.fail(entry, job, UsherError(status, operation: .license)) }
      self.perform(job.machine.spcArrived(spc), entry, job)
    }
  }

  private func requestKey(_ entry: PlaybackEntry, _ job: LoadingJob, _ server: Endpoint, _ spc: Secret) {
    let options = job.loader.options
    var format = options.request
    if let name = options.contentField {
      format.fields.append(FPSRequestFormat.Field(name, Secret(job.identifier)))
    }
    guard let body = spc.withBytes({ bytes -> Secret? in try? format.body(bytes) }) else {
      let message = "the content identifier does not fit into the request's format"
      return fail(entry, job, UsherError(.callback, operation: .license, message: message))
    }
    let request = HTTPRequest(
      method: .post, endpoint: server, headers: [contentType(format)] + options.headers + job.headers, body: body,
      isUrgent: false, tokens: job.tokens)
    for token in job.tokens { secrets.note(token, of: entry) }
    job.transfer = requests.send(request, for: .load(entry.id, job, .key))
  }

  private func contentType(_ format: FPSRequestFormat) -> Secret {
    let name: [UInt8] = Array("Content-Type: ".utf8)
    return format.contentType.withUTF8Buffer { Secret(name + Array($0) + [0]) }
  }

  func loadReplied(
    _ playback: PlaybackID, _ job: LoadingJob, _ step: LoadingJob.Step, _ outcome: HTTPOutcome,
    hiding secrets: ReplySecrets
  ) {
    job.transfer = nil
    guard !job.machine.isEnded, let entry = playbacks[playback] else { return }
    switch (step, outcome) {
    case (.entitlement, .failure(let failure)): fail(entry, job, failure.error(.entitlement, .entitlement))
    case (.key, .failure(let failure)):
      guard let again = job.machine.keyRequestFailed(endedKeptConnection: failure.endedKeptConnection) else {
        return fail(entry, job, failure.error(.license, .license))
      }
      perform(again, entry, job)
    case (.entitlement(let question), .response(let response)):
      entitlementReplied(entry, job, question, response, hiding: secrets)
    case (.key, .response(let response)): keyReplied(entry, job, response, hiding: secrets)
    }
  }

  private func entitlementReplied(
    _ entry: PlaybackEntry, _ job: LoadingJob, _ question: SEESRequest, _ response: HTTPResponse,
    hiding secrets: ReplySecrets
  ) {
    if let failure = ReplyDecoder.denial(response, hiding: secrets) {
      // If the body of the reply has the reason for a refusal, use that reason: it is more precise than the HTTP
      // status.
      if case .denied(let code, let message)? = question.refusal(response.body, hiding: secrets),
        code != 0 || !message.isEmpty
      {
        return refused(entry, job, entitlementError(.denied(code: code, message: message), response.status))
      }
      return refused(entry, job, failure.error(.entitlement, .entitlement))
    }
    do throws(SEESRequest.Refusal) {
      let url = try question.read(response.body, hiding: secrets)
      let server = server(url.withBytes { Array($0) }, for: job)
      perform(job.machine.entitled(server), entry, job)
    } catch {
      refused(entry, job, entitlementError(error, response.status))
    }
  }

  private func keyReplied(
    _ entry: PlaybackEntry, _ job: LoadingJob, _ response: HTTPResponse,
    hiding secrets: ReplySecrets
  ) {
    if var failure = ReplyDecoder.denial(response, hiding: secrets) {
      if failure.status == .http || failure.message.isEmpty {
        let expressPlay = response.body.withBytes { ExpressPlayError.read($0, hiding: secrets) }
        if failure.status == .http, expressPlay.code != 0 {
          failure.status = .refused
          failure.serviceCode = expressPlay.code
        }
        if failure.message.isEmpty { failure.message = expressPlay.message }
      }
      if failure.serviceCode == -4001 { job.loader.binding?.deviceUnknown() }
      return refused(entry, job, failure.error(.license, .license))
    }
    do throws(FPSResponseFormat.Failure) {
      let ckc = try job.loader.options.response.read(response)
      guard job.machine.end(.done) else { return }
      stop(entry, job)
      events.emit(.license, entry)
      deviceMayBeRegistered(entry, job)
      job.end(RequestResult(data: ckc))
    } catch {
      refused(entry, job, ReplyDecoder.unreadable(response, error.words).error(.license, .license))
    }
  }

  /// If the token of this licence registers the device, and the loader does not count the device as registered yet:
  /// records the registration, and reports it to the host.
  private func deviceMayBeRegistered(_ entry: PlaybackEntry, _ job: LoadingJob) {
    guard job.registersDevice, job.loader.binding?.isRegistered != true else { return }
    job.loader.binding?.licenseArrived()
    events.emit(.deviceRegistered, entry)
  }

  // MARK: End

  /// Called when a server has replied, but the reply has neither a key nor an entitlement.
  private func refused(_ entry: PlaybackEntry, _ job: LoadingJob, _ error: UsherError) {
    meter.failed(error)
    fail(entry, job, error)
  }

  private func fail(
    _ entry: PlaybackEntry, _ job: LoadingJob, _ error: UsherError,
    _ ending: LoadingMachine<Endpoint>.Ending = .failed
  ) {
    guard job.machine.end(ending) else { return }
    // After a time-out or a cancellation the host may request the key again, so the error does not say that playback
    // must stop. The same is true for licence requests.
    finish(entry, job, ending == .failed ? error.stopping() : error, isReported: ending.isReported)
  }

  private func finish(_ entry: PlaybackEntry, _ job: LoadingJob, _ error: UsherError, isReported: Bool = true) {
    stop(entry, job)
    if isReported { events.emit(.licenseError, entry, error: error) }
    job.end(RequestResult(data: nil, error: error))
  }

  /// Ends the question, the requests and the timer of a loading request.
  private func stop(_ entry: PlaybackEntry, _ job: LoadingJob) {
    entry.loads.removeAll { $0 === job }
    timers.cancel(job.timer)
    if let transfer = job.transfer { requests.abandon(transfer) }
    job.transfer = nil
    let ask = job.ask
    job.ask = nil
    ask?.expire(.closed)
  }
}

extension LoadingJob {
  /// Error messages must not show the token in the URL of a server.
  fileprivate func hideToken(in url: UnsafeBufferPointer<UInt8>) {
    if let token = TokenURL.queryValue("ExpressPlayToken", in: url), token.count >= 8 { tokens.append(Secret(token)) }
  }
}

extension SEESRequest {
  fileprivate func refusal(_ body: Secret, hiding secrets: ReplySecrets) -> Refusal? {
    do throws(Refusal) { _ = try read(body, hiding: secrets) } catch { return error }
    return nil
  }

  fileprivate func read(
    _ body: Secret, hiding secrets: ReplySecrets
  ) throws(Refusal) -> Secret {
    // The closure of `withBytes` cannot throw a typed error, so it stores the error here.
    var refusal: Refusal?
    let url = body.withBytes { bytes -> Secret? in
      do throws(Refusal) { return try tokenURL(in: bytes, hiding: secrets) } catch {
        refusal = error
        return nil
      }
    }
    if let url { return url }
    throw refusal ?? .notJSON
  }
}

extension FPSResponseFormat {
  func read(_ response: HTTPResponse) throws(Failure) -> Secret {
    var failure: Failure?
    let made = response.body.withBytes { bytes -> Secret? in
      do throws(Failure) { return try ckc(bytes, response.media) } catch {
        failure = error
        return nil
      }
    }
    if let made { return made }
    throw failure ?? .empty
  }
}

private func entitlementError(_ refusal: SEESRequest.Refusal, _ httpStatus: Int32) -> UsherError {
  var error = UsherError(.protocolError, origin: .entitlement, operation: .entitlement, httpStatus: httpStatus)
  switch refusal {
  case .notJSON: error.message = "the entitlement server's answer is not JSON"
  case .otherMessage: error.message = "the entitlement server answered another message"
  case .otherVersion: error.message = "the entitlement server answered in a later version"
  case .noTokenURL: error.message = "the entitlement server named no token URL"
  case .denied(let code, let message):
    error.status = .refused
    error.serviceCode = code
    error.message = message.isEmpty ? "the entitlement server denied the content" : message
  }
  return error
}
