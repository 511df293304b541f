package import UsherCore

extension Engine {
  /// Any thread: requests a licence.
  /// - Parameters:
  ///   - timeout: the time limit of the whole request; nil: only the limits of its steps apply.
  ///   - complete: a function that is called once with the answer. If `isBlocking` is true, the I/O thread calls this
  ///     function, which may only end a wait; otherwise the function runs as a callback of the playback.
  /// - Returns: false if the host has asked to close the playback; then `complete` is not called.
  @discardableResult
  package func requestLicense(
    _ playback: PlaybackShared, _ keySystem: KeySystem, isRenewal: Bool, payload: Secret, timeout: Milliseconds?,
    assetID: [UInt8] = [], contentID: [UInt8] = [],
    isBlocking: Bool, complete: @escaping (RequestResult) -> Void
  ) -> Bool {
    submit(for: playback) {
      let handOver = self.calls.completion(playback.id, isBlocking: isBlocking, complete)
      guard let entry = self.playbacks[playback.id] else {
        handOver(
          RequestResult(
            data: nil, period: 0, renewType: .none, isRenewal: isRenewal,
            error: UsherError(.closed, operation: .license)))
        return
      }
      self.beginLicense(
        entry, keySystem, isRenewal: isRenewal, payload: payload, timeout: timeout, assetID: assetID,
        contentID: contentID, isByLibrary: false,
        complete: handOver)
    }
  }

  private func beginLicense(
    _ entry: PlaybackEntry, _ keySystem: KeySystem, isRenewal: Bool, payload: Secret, timeout: Milliseconds?,
    assetID: [UInt8] = [], contentID: [UInt8] = [],
    isByLibrary: Bool, complete: @escaping (RequestResult) -> Void
  ) {
    let id = entry.nextLicense
    entry.nextLicense &+= 1
    // The Widevine CDM's request for a service certificate has these two bytes. Neither this request nor its reply is
    // JSON.
    let isAuxiliary = keySystem == .widevine && payload.withBytes { $0.count == 2 && $0[0] == 0x08 && $0[1] == 0x04 }
    let isRaw = (keySystem == .widevine && entry.delegate.isRaw && !isRenewal) || isAuxiliary
    let job = LicenseJob(
      keySystem: keySystem, isRenewal: isRenewal, isRaw: isRaw, payload: payload, isByLibrary: isByLibrary,
      assetID: assetID, complete: complete)
    job.isOfItem = !isAuxiliary
    entry.jobs[id] = job
    if entry.delegate.isCustomer, !isAuxiliary { entry.lastPayload = payload }
    if let timeout {
      job.timeout = timeout
      job.timer = timers.set(at: clock.now.adding(timeout), .license(entry.id, id))
    }
    let token: Secret?
    switch entry.machine.isClosing ? .unneeded : mappedToken(entry, contentID) {
    case .known(let found):
      let known = entry.machine.knownToken
      // If the playback has no token, the content of this request becomes the playback's content. If the playback has
      // a content identifier already, `setContent` does not change it.
      if known == nil { playbacks.setContent(contentID, of: entry) }
      // If the token callback replaced the item's token, the callback's token is newer than the token in the map.
      token = contentID == entry.contentID ? known ?? found : found
    case .unneeded: token = nil
    case .missing:
      // The request is for other content than the item, and the map has no token for that content. No callback can
      // supply such a token, so the request fails.
      job.isOfItem = false
      return fail(entry, id, PlaybackMachine.noToken(.license))
    }
    let isForPlayingItem = token == nil || contentID == entry.contentID
    job.isOfItem = job.isOfItem && isForPlayingItem
    step(entry) {
      $0.requestLicense(
        id, keySystem: keySystem, isRenewal: isRenewal, isRaw: isRaw, isAuxiliary: isAuxiliary, token: token,
        isForPlayingItem: isForPlayingItem, now: self.clock.now)
    }
  }

  /// Requests a renewal with the payload that the host has given for it.
  func renew(_ entry: PlaybackEntry, _ keySystem: KeySystem, _ payload: Secret) {
    let id = entry.id
    let renewed = entry.callbacks.renewed
    let host = entry.host
    beginLicense(entry, keySystem, isRenewal: true, payload: payload, timeout: nil, isByLibrary: true) { answer in
      guard answer.error.status == .ok, let renewed else { return }
      self.calls.run(id) { renewed(answer, host) }
    }
  }

  func licenseTimedOut(_ playback: PlaybackID, _ license: LicenseID) {
    guard let entry = playbacks[playback] else { return }
    if entry.machine.session.awaitsSlot(now: clock.now), let job = entry.jobs[license] {
      job.timer = timers.set(at: clock.now.adding(job.timeout), .license(playback, license))
      return
    }
    guard entry.machine.abandonLicense(license, now: clock.now) else { return }
    let isRenewal = entry.jobs[license]?.isRenewal == true
    fail(
      entry, license,
      UsherError(.timeout, operation: isRenewal ? .renewal : .license, message: "no licence within the time given"))
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
    guard let job = entry.jobs[license], !job.hasEnded else { return }
    timers.cancel(job.timer)
    job.request?.exchange.abandon(error.status)
    if !entry.machine.hasInFlight(license) { entry.jobs[license] = nil }
    // If the library itself requested this renewal and got no good reply, the machine decides whether to report the
    // failure as a heartbeat error.
    let isReported = job.isReading || !job.isByLibrary
    if isReported && !entry.machine.isClosing {
      events.emit(.licenseError, entry, error: error, isOfItem: job.isOfItem)
    }
    job.end(RequestResult(data: nil, period: 0, renewType: .none, isRenewal: job.isRenewal, error: error))
  }
}
