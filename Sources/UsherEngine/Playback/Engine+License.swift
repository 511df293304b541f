package import UsherCore

extension Engine {
  /// Any thread: asks for a licence.
  /// - Parameters:
  ///   - timeout: nil: only the bounds of the single steps.
  ///   - complete: told once, on a callback thread; or on the I/O thread if `isBlocking`, where it may only end a wait.
  package func requestLicense(
    _ playback: PlaybackID, _ keySystem: KeySystem, isRenewal: Bool, payload: Secret, timeout: Milliseconds?,
    assetID: [UInt8] = [], contentID: [UInt8] = [],
    isBlocking: Bool, complete: @escaping (Answer) -> Void
  ) {
    submit {
      let handOver = self.calls.completion(playback, isBlocking: isBlocking, complete)
      guard let entry = self.playbacks[playback] else {
        handOver(
          Answer(
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
    isByLibrary: Bool, complete: @escaping (Answer) -> Void
  ) {
    let id = entry.nextLicense
    entry.nextLicense &+= 1
    // The Widevine CDM's request for a service certificate is two bytes and never JSON.
    let isAuxiliary = keySystem == .widevine && payload.withBytes { $0.count == 2 && $0[0] == 0x08 && $0[1] == 0x04 }
    let isRaw = (keySystem == .widevine && entry.delegate.isRaw && !isRenewal) || isAuxiliary
    let job = LicenseJob(
      keySystem: keySystem, isRenewal: isRenewal, isRaw: isRaw, payload: payload, isByLibrary: isByLibrary,
      assetID: assetID, complete: complete)
    entry.jobs[id] = job
    if let timeout { job.timer = timers.set(at: clock.now.adding(timeout), .license(entry.id, id)) }
    let token: Secret?
    switch entry.machine.isClosing ? .unneeded : mappedToken(entry, contentID) {
    case .known(let found):
      let known = entry.machine.knownToken
      // An item that named no content has the content of its first licence request.
      if entry.contentID.isEmpty, known == nil { entry.contentID = contentID }
      // The item's own is newer than the map's where the token callback replaced it.
      token = contentID == entry.contentID ? known ?? found : found
    case .unneeded: token = nil
    case .missing:
      // Another content than the item's, and the map has no token of it: there is nothing to wait for.
      return fail(entry, id, PlaybackMachine.noToken(.license))
    }
    let isForPlayingItem = token == nil || contentID == entry.contentID
    step(entry) {
      $0.requestLicense(
        id, keySystem: keySystem, isRenewal: isRenewal, isRaw: isRaw, isAuxiliary: isAuxiliary, token: token,
        isForPlayingItem: isForPlayingItem, now: self.clock.now)
    }
  }

  /// The host answered with the payload for a renewal.
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
    guard let entry = playbacks[playback], entry.machine.abandonLicense(license, now: clock.now) else { return }
    let isRenewal = entry.jobs[license]?.isRenewal == true
    fail(
      entry, license,
      UsherError(.timeout, operation: isRenewal ? .renewal : .license, message: "no licence within the time given"))
  }
}
