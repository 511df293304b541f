package import UsherCore

/// Calls of the host that change a delegate in use, or that need a delegate.
extension Engine {
  /// Any thread: sets or replaces a delegate's token callback.
  package func setTokenCallback(_ delegate: LicenseDelegate, _ callback: LicenseDelegate.TokenCallback?) {
    submit {
      delegate.tokenCallback = callback
      for id in self.playbacks.sortedIDs {
        guard let entry = self.playbacks[id], entry.delegate === delegate else { continue }
        entry.machine.tokenCallbackChanged(isSet: callback != nil)
      }
    }
  }

  /// Any thread: sets, replaces or removes the callbacks of a customer's delegate.
  package func setCustomer(_ delegate: LicenseDelegate, _ callbacks: CustomerCallbacks?) {
    submit { delegate.customer = callbacks }
  }

  /// Any thread: sets or removes a delegate's hooks.
  package func setHooks(_ delegate: LicenseDelegate, _ hooks: DelegateHooks?) {
    if hooks?.certificate != nil { delegate.certificates.expectHook() }
    submit { delegate.hooks = hooks }
  }

  /// Any thread: sets a header of later licence requests; nil removes it.
  package func setLicenseHeader(_ delegate: LicenseDelegate, name: [UInt8], line: Secret?) {
    submit {
      delegate.licenseHeaders.removeAll { equalIgnoringCase($0.name, name) }
      if let line { delegate.licenseHeaders.append((name, line)) }
    }
  }

  /// Any thread: requests the content identifier of a URL. A player needs this identifier for its key request.
  /// `complete` and the result are the same as in `requestLicense`.
  @discardableResult
  package func requestContentID(
    _ playback: PlaybackShared, url: [UInt8], timeout: Milliseconds, isBlocking: Bool,
    complete: @escaping (RequestResult) -> Void
  ) -> Bool {
    submit(for: playback) {
      let handOver = self.calls.completion(playback.id, isBlocking: isBlocking, complete)
      guard let entry = self.playbacks[playback.id], !entry.machine.isClosing else {
        return handOver(contentIDAnswer(.failed(UsherError(.closed))))
      }
      let hooks = entry.delegate.hooks
      let scheme = hooks?.scheme ?? AssetID.fairPlayScheme
      guard let hook = hooks?.contentID else { return handOver(contentIDAnswer(contentIdentifier(url, scheme))) }
      let question = HookQuestion(.contentID, assetID: url) { contentIdentifier(url, scheme) }
      let deadline = min(timeout, entry.delegate.hookTimeout)
      self.askHost(
        entry, .hook(.contentID), question, atMost: deadline, put: { ask, host in hook(ask, question, host) }
      ) {
        _, reply, status in
        switch reply {
        case .builtin: handOver(contentIDAnswer(question.builtin()))
        case .value(let value): handOver(contentIDAnswer(.value(value)))
        case .failed(let failure, _): handOver(contentIDAnswer(.failed(failure.error(.local, .license))))
        case .none, .license, .server:
          handOver(contentIDAnswer(.failed(UsherError(status == .ok ? .callback : status, operation: .license))))
        }
      }
    }
  }
}

/// Returns the content identifier that the library finds in the URL without a hook.
private func contentIdentifier(_ url: [UInt8], _ scheme: [UInt8]) -> HookQuestion.BuiltIn {
  let bytes = url.withUnsafeBufferPointer { text -> [UInt8]? in
    try? ContentIdentifier.decodedJSON.bytes(of: text, scheme: scheme)
  }
  guard let bytes else {
    return .failed(UsherError(.invalidArgument, operation: .license, message: "the URL names no content"))
  }
  return .value(Secret(bytes))
}

/// Returns the key of the token map for an asset ID; nil if the asset ID names no content.
package func sspContentID(_ assetID: [UInt8]) -> [UInt8]? {
  let asset = assetID.withUnsafeBufferPointer { text -> AssetID? in try? AssetID(text) }
  return asset?.read().contentID
}

private func contentIDAnswer(_ made: HookQuestion.BuiltIn) -> RequestResult {
  switch made {
  case .value(let value):
    return RequestResult(data: value, period: 0, renewType: .none, isRenewal: false, error: UsherError(.ok))
  case .failed(let error): return RequestResult(data: nil, period: 0, renewType: .none, isRenewal: false, error: error)
  }
}
