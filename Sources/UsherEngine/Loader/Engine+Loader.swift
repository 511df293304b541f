internal import CPlatform
package import UsherCore

/// Loading requests: where the key server is, certificate, SPC, CKC.
extension Engine {
  /// Any thread. `complete` as in `requestLicense`.
  /// - Parameter id: names it for `cancelLoad`.
  package func load(
    _ playback: PlaybackID, _ id: UInt64, _ loader: ResourceLoader, url: [UInt8], timeout: Milliseconds?,
    isBlocking: Bool, complete: @escaping (Answer) -> Void
  ) {
    submit {
      let handOver = self.calls.completion(playback, isBlocking: isBlocking, complete)
      guard let entry = self.playbacks[playback], !entry.machine.isClosing else {
        return handOver(Answer(data: nil, error: UsherError(.closed, operation: .license)))
      }
      guard let names = loader.names(url) else {
        return handOver(
          Answer(
            data: nil, error: UsherError(.invalidArgument, operation: .license, message: "the URL names no content")))
      }
      let job = LoadingJob(
        id: id, loader: loader, url: url, identifier: names.identifier, content: names.content, complete: handOver)
      entry.loads.append(job)
      if let timeout { job.timer = self.timers.set(at: self.clock.now.adding(timeout), .load(playback, job)) }
      self.begin(entry, job)
    }
  }

  /// Any thread but a callback's in pumped mode. False: it was finished before.
  package func cancelLoad(_ playback: PlaybackID, _ id: UInt64) -> Bool {
    sync {
      guard let entry = self.playbacks[playback], let job = entry.loads.first(where: { $0.id == id }) else {
        return false
      }
      self.fail(entry, job, UsherError(.closed, operation: .license), tells: false)
      return true
    }
  }

  func loadTimedOut(_ playback: PlaybackID, _ job: LoadingJob) {
    job.timer = nil
    guard let entry = playbacks[playback] else { return }
    fail(entry, job, UsherError(.timeout, operation: .license, message: "no key within the time given"))
  }

  /// The playback closes.
  func endLoads(_ entry: PlaybackEntry, _ status: Status) {
    for job in entry.loads { fail(entry, job, UsherError(status, operation: .license), tells: false) }
  }

  // MARK: Steps

  private func begin(_ entry: PlaybackEntry, _ job: LoadingJob) {
    let options = job.loader.options
    switch options.route {
    case .keyServer:
      if let fixed = options.keyServer { job.keyServer = fixed } else { guard derive(entry, job) else { return } }
      certificate(entry, job)
    case .tokenURL:
      guard derive(entry, job) else { return }
      certificate(entry, job)
    case .entitlement: askEntitlement(entry, job)
    }
  }

  /// The key server's URL out of the content's.
  private func derive(_ entry: PlaybackEntry, _ job: LoadingJob) -> Bool {
    let options = job.loader.options
    let inner = job.url.withUnsafeBufferPointer { TokenURL.url(in: $0, scheme: options.scheme, target: options.target) }
    guard let inner, let endpoint = allowed(entry, job, inner, .license) else {
      if inner == nil {
        fail(
          entry, job,
          UsherError(.invalidArgument, operation: .license, message: "no URL of a server stands in the content's URL"))
      }
      return false
    }
    job.keyServer = endpoint
    return true
  }

  /// An endpoint that the content, or a server, named, if it may be used; else the job has failed.
  private func allowed(_ entry: PlaybackEntry, _ job: LoadingJob, _ url: [UInt8], _ operation: Operation) -> Endpoint? {
    let isListed = url.withUnsafeBufferPointer { text in (try? job.loader.options.allowed.check(text)) != nil }
    guard isListed, let text = URLText(url), let endpoint = Endpoint.checked(text, insecure: options.allowsInsecureHTTP)
    else {
      fail(entry, job, UsherError(.notAllowed, operation: operation))
      return nil
    }
    if let token = url.withUnsafeBufferPointer({ TokenURL.queryValue("ExpressPlayToken", in: $0) }), token.count >= 8 {
      job.secrets.append(Secret(token))
    }
    return endpoint
  }

  private func askEntitlement(_ entry: PlaybackEntry, _ job: LoadingJob) {
    let loader = job.loader
    var server = loader.options.entitlementServer
    if server == nil {
      guard derive(entry, job) else { return }
      server = job.keyServer
      job.keyServer = nil
    }
    var random = [UInt8](repeating: 0, count: 16)
    random.withUnsafeMutableBytes { if let base = $0.baseAddress { platform_random_bytes(base, 16) } }
    let kind = loader.binding?.kind ?? .timeBased
    guard let server, let messageID = UUIDBytes(random: random),
      let question = try? SEESRequest(
        messageID: messageID, kind: kind, contentID: job.content,
        cookie: loader.binding?.cookie ?? loader.options.cookie)
    else {
      return fail(
        entry, job, UsherError(.invalidArgument, operation: .entitlement, message: "the content identifier is no text"))
    }
    let headers = [
      LicenseDelegate.line("Content-Type: application/json"), LicenseDelegate.line("Accept: application/json")
    ]
    let request = HTTPRequest(
      method: .post, endpoint: server, headers: headers, body: question.body, isUrgent: false, tokens: [])
    send(request, for: entry, job, .entitlement(question))
  }

  private func certificate(_ entry: PlaybackEntry, _ job: LoadingJob) {
    guard job.loader.certificates.canSupply else { return askSPC(entry, job, nil) }
    let id = entry.id
    // Its own bound ends it where the server does not; the job's ends the job.
    fetchCertificate(job.loader.certificates, for: id, timeout: options.transport.httpTimeout) { answer in
      guard job.isOpen, let entry = self.playbacks[id] else { return }
      if let certificate = answer.data {
        self.askSPC(entry, job, certificate)
      } else {
        self.fail(entry, job, answer.error)
      }
    }
  }

  private func askSPC(_ entry: PlaybackEntry, _ job: LoadingJob, _ certificate: Secret?) {
    let loader = job.loader
    let question = ResourceLoader.Question(certificate: certificate, contentIdentifier: job.identifier, url: job.url)
    let put: (Ask, HostPlayback) -> Void = { ask, host in loader.askSPC(ask, question, host) }
    job.ask = askHost(entry, .spc, atMost: loader.options.spcTimeout, put: put) { entry, reply, status in
      job.ask = nil
      guard job.isOpen, let entry else { return }
      if let spc = reply.secret {
        self.sendSPC(entry, job, spc)
      } else {
        self.fail(entry, job, UsherError(status, operation: .license))
      }
    }
  }

  private func sendSPC(_ entry: PlaybackEntry, _ job: LoadingJob, _ spc: Secret) {
    var format = job.loader.options.request
    if let name = job.loader.options.contentField {
      format.fields.append(FPSRequestFormat.Field(name, Secret(job.identifier)))
    }
    let body = spc.withBytes { bytes -> Secret? in try? format.body(bytes) }
    guard let server = job.keyServer, let body else {
      return fail(
        entry, job,
        UsherError(
          .callback, operation: .license, message: "the content identifier does not fit into the request's format"))
    }
    let headers = [contentType(format)] + job.loader.options.headers
    send(
      HTTPRequest(method: .post, endpoint: server, headers: headers, body: body, isUrgent: false, tokens: job.secrets),
      for: entry, job, .key)
  }

  private func contentType(_ format: FPSRequestFormat) -> Secret {
    let name: [UInt8] = Array("Content-Type: ".utf8)
    return format.contentType.withUTF8Buffer { Secret(name + Array($0) + [0]) }
  }

  private func send(_ request: HTTPRequest, for entry: PlaybackEntry, _ job: LoadingJob, _ step: LoadingJob.Step) {
    job.transfer = requests.send(request, for: .load(entry.id, job, step))
  }

  func loadReplied(_ playback: PlaybackID, _ job: LoadingJob, _ step: LoadingJob.Step, _ outcome: HTTPOutcome) {
    job.transfer = nil
    guard job.isOpen, let entry = playbacks[playback] else { return }
    switch (step, outcome) {
    case (.entitlement, .failure(let failure)): fail(entry, job, failure.error(.entitlement, .entitlement))
    case (.key, .failure(let failure)): fail(entry, job, failure.error(.license, .license))
    case (.entitlement(let question), .response(let response)): entitled(entry, job, question, response)
    case (.key, .response(let response)): keyCame(entry, job, response)
    }
  }

  private func entitled(_ entry: PlaybackEntry, _ job: LoadingJob, _ question: SEESRequest, _ response: HTTPResponse) {
    if let failure = ReplyDecoder.denial(response) {
      // With any HTTP status it is the answer to our question that counts, if there is one.
      if case .denied(let code, let message)? = question.refusal(response.body), code != 0 || !message.isEmpty {
        return fail(entry, job, entitlementError(.denied(code: code, message: message), response.status))
      }
      return fail(entry, job, failure.error(.entitlement, .entitlement))
    }
    do throws(SEESRequest.Refusal) {
      let url = try question.read(response.body)
      guard let endpoint = allowed(entry, job, url.withBytes { Array($0) }, .entitlement) else { return }
      job.keyServer = endpoint
      certificate(entry, job)
    } catch {
      fail(entry, job, entitlementError(error, response.status))
    }
  }

  private func keyCame(_ entry: PlaybackEntry, _ job: LoadingJob, _ response: HTTPResponse) {
    if var failure = ReplyDecoder.denial(response, hiding: job.secrets) {
      if failure.status == .http || failure.message.isEmpty {
        let told = response.body.withBytes { ExpressPlayError.read($0, hiding: job.secrets) }
        if failure.status == .http, told.code != 0 {
          failure.status = .refused
          failure.serviceCode = told.code
        }
        if failure.message.isEmpty { failure.message = told.message }
      }
      if failure.serviceCode == -4001 { job.loader.binding?.deviceUnknown() }
      return fail(entry, job, failure.error(.license, .license))
    }
    do throws(FPSResponseFormat.Failure) {
      let ckc = try job.loader.options.response.read(response.body)
      job.loader.binding?.licenseArrived()
      guard let complete = job.take() else { return }
      close(entry, job)
      events.emit(.license, entry)
      complete(Answer(data: ckc))
    } catch {
      fail(entry, job, ReplyDecoder.unreadable(response, words(error)).error(.license, .license))
    }
  }

  // MARK: End

  private func fail(_ entry: PlaybackEntry, _ job: LoadingJob, _ error: UsherError, tells: Bool = true) {
    guard let complete = job.take() else { return }
    close(entry, job)
    if tells { events.emit(.licenseError, entry, error: error) }
    complete(Answer(data: nil, error: error))
  }

  private func close(_ entry: PlaybackEntry, _ job: LoadingJob) {
    entry.loads.removeAll { $0 === job }
    timers.cancel(job.timer)
    if let transfer = job.transfer { requests.abandon(transfer) }
    job.transfer = nil
    let ask = job.ask
    job.ask = nil
    ask?.expire(.closed)
  }
}

extension SEESRequest {
  fileprivate func refusal(_ body: Secret) -> Refusal? {
    do throws(Refusal) { _ = try read(body) } catch { return error }
    return nil
  }

  fileprivate func read(_ body: Secret) throws(Refusal) -> Secret {
    // The closure cannot throw a typed error through `withBytes`.
    var refusal: Refusal?
    let url = body.withBytes { bytes -> Secret? in
      do throws(Refusal) { return try tokenURL(in: bytes) } catch {
        refusal = error
        return nil
      }
    }
    if let url { return url }
    throw refusal ?? .notJSON
  }
}

extension FPSResponseFormat {
  fileprivate func read(_ body: Secret) throws(Failure) -> Secret {
    var failure: Failure?
    let made = body.withBytes { bytes -> Secret? in
      do throws(Failure) { return try ckc(bytes) } catch {
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

private func words(_ failure: FPSResponseFormat.Failure) -> String {
  switch failure {
  case .empty: return "the CKC is empty"
  case .webPage: return "the answer is a web page"
  case .text: return "the answer is a text that is no CKC"
  case .noElement: return "the answer has no ckc element"
  case .notBase64: return "the CKC is not base64"
  case .notJSON: return "the answer is not JSON"
  case .noMember: return "the answer has no CKC"
  }
}
