package import UsherCore

/// Requests for certificates: the engine returns a kept certificate, asks a hook for one, or fetches one.
extension Engine {
  /// Any thread: requests a certificate. `timeout`, `complete` and the result are the same as in `requestLicense`.
  @discardableResult
  package func requestCertificate(
    _ playback: PlaybackShared, timeout: Milliseconds?, isBlocking: Bool, complete: @escaping (RequestResult) -> Void
  ) -> Bool {
    submit(for: playback) {
      let handOver = self.calls.completion(playback.id, isBlocking: isBlocking, complete)
      guard let entry = self.playbacks[playback.id], !entry.machine.isClosing else {
        return handOver(certificateFailure(UsherError(.closed)))
      }
      let delegate = entry.delegate
      if let hook = delegate.hooks?.certificate { return self.askCertificateHook(hook, entry, timeout, handOver) }
      self.fetchCertificate(delegate.certificates, for: playback.id, timeout: timeout, handOver)
    }
  }

  private func askCertificateHook(
    _ hook: @escaping DelegateHooks.Hook, _ entry: PlaybackEntry, _ timeout: Milliseconds?,
    _ handOver: @escaping (RequestResult) -> Void
  ) {
    let playback = entry.id
    let source = entry.delegate.certificates
    // The close of a playback ends its certificate requests. So after the close, the playback must not begin another
    // request: nothing would end it.
    func fetch(_ handOver: @escaping (RequestResult) -> Void) {
      guard let entry = playbacks[playback], !entry.machine.isClosing else {
        return handOver(certificateFailure(UsherError(.closed)))
      }
      fetchCertificate(source, for: playback, timeout: timeout, handOver)
    }
    let question = HookQuestion(.certificate) {
      let wait = Wait<RequestResult>()
      self.submit { fetch { wait.end($0) } }
      let answer = wait.wait()
      return answer.data.map { .value($0) } ?? .failed(answer.error)
    }
    askHost(
      entry, .hook(.certificate), question, atMost: min(timeout ?? .never, entry.delegate.hookTimeout),
      put: { ask, host in hook(ask, question, host) }
    ) { _, reply, status in
      switch reply {
      case .builtin: fetch(handOver)
      case .value(let certificate): handOver(RequestResult(data: certificate))
      case .failed(let failure, _): handOver(certificateFailure(failure.error(.local, .certificate)))
      case .none, .license, .server: handOver(certificateFailure(UsherError(status == .ok ? .callback : status)))
      }
    }
  }

  /// Completes the request at once if the source keeps a certificate. Otherwise starts the fetch, unless a fetch runs
  /// already, and completes the request when the fetch has ended.
  /// - Parameter timeout: the time limit of this request; the fetch may continue afterwards.
  func fetchCertificate(
    _ source: CertificateSource, for playback: PlaybackID, timeout: Milliseconds?,
    _ handOver: @escaping (RequestResult) -> Void
  ) {
    if let certificate = source.certificate { return handOver(RequestResult(data: certificate)) }
    let waiter = CertificateWaiter(playback: playback, complete: handOver)
    if let timeout { waiter.timer = timers.set(at: clock.now.adding(timeout), .certificate(source, waiter)) }
    guard source.add(waiter) else { return }
    guard let request = source.request else {
      return endCertificate(source, UsherError(.state, message: "the delegate has no certificate URL"))
    }
    requests.send(request, for: .certificate(source))
  }

  func certificateReplied(
    _ source: CertificateSource, _ outcome: HTTPOutcome, hiding secrets: ReplySecrets
  ) {
    switch outcome {
    case .failure(let failure): endCertificate(source, failure.error(.certificate, .certificate))
    case .response(let response):
      switch ReplyDecoder.certificate(response, hiding: secrets) {
      case .failure(let failure): endCertificate(source, failure.error(.certificate, .certificate))
      case .success(let certificate): complete(source.end(certificate), RequestResult(data: certificate))
      }
    }
  }

  func certificateTimedOut(_ source: CertificateSource, _ waiter: CertificateWaiter) {
    guard source.remove(waiter) else { return }
    waiter.complete(certificateFailure(UsherError(.timeout)))
  }

  /// Completes the certificate requests of a playback that closes.
  func endCertificates(of entry: PlaybackEntry, _ status: Status) {
    while let waiter = entry.delegate.certificates.removeWaiter(of: entry.id) {
      complete([waiter], certificateFailure(UsherError(status)))
    }
  }

  /// Called when the fetch failed: all waiting requests get the error.
  func endCertificate(_ source: CertificateSource, _ error: UsherError) {
    meter.failed(error)
    complete(source.end(nil), certificateFailure(error))
  }

  private func complete(_ waiters: [CertificateWaiter], _ answer: RequestResult) {
    for waiter in waiters {
      timers.cancel(waiter.timer)
      waiter.complete(answer)
    }
  }
}

private func certificateFailure(_ error: UsherError) -> RequestResult {
  var error = error
  error.operation = .certificate
  return RequestResult(data: nil, error: error)
}
