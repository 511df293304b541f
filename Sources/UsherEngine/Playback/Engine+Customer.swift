package import UsherCore

/// Customer SSM: the library calls the host's callbacks instead of sending requests. Only the host knows the session
/// and its token.
extension Engine {
  func askCustomer(_ entry: PlaybackEntry, _ request: RequestID, _ license: LicenseID, _ job: LicenseJob) {
    guard let customer = entry.delegate.customer else {
      return licenseDecoded(entry, request, license, .failure(withoutCallbacks(job.isByLibrary ? .callback : .state)))
    }
    let question = CustomerQuestion(
      keySystem: job.keySystem, isRenewal: job.isRenewal, payload: job.payload, assetID: job.assetID)
    let isBounded = job.isRenewal && entry.machine.session.period > 0
    let deadline =
      isBounded
      ? min(entry.delegate.hookTimeout, entry.machine.keepAliveTimeout(now: clock.now)) : entry.delegate.hookTimeout
    askHost(
      entry, .customerLicense, atMost: deadline,
      put: { ask, host in customer.license(ask, question, host) }
    ) { entry, reply, status in
      if let entry { self.licenseDecoded(entry, request, license, customerDecoding(reply, status)) }
    }
  }

  func askCustomer(_ entry: PlaybackEntry, _ request: RequestID, _ call: SSMSession.Call) {
    let id = entry.id
    guard let customer = entry.delegate.customer else {
      // The host removed the callbacks during the session, so the call fails. The customer's server still has the
      // session.
      return ssmReplied(id, request, call, .failure(withoutCallbacks(.callback)))
    }
    guard let callback = call == .heartbeat ? customer.heartbeat : customer.teardown else {
      // The customer has no callback for this call, so the call succeeds at once. Without a heartbeat callback, the
      // library reports no KEPT_ALIVE. Without a teardown callback, the session ends as if the host had left it.
      return step(entry) { machine in
        var actions = machine.ssmReplied(
          request, call, .success(SessionFields()), ownTeardowns: .none, now: self.clock.now)
        for index in actions.indices.reversed() {
          if case .report(.keptAlive) = actions[index] {
            actions.remove(at: index)
          } else if case .report(.ended) = actions[index] {
            actions[index] = .report(.ended(left: true))
          }
        }
        return actions
      }
    }
    let deadline =
      call == .heartbeat
      ? entry.machine.keepAliveTimeout(now: clock.now) : entry.delegate.policy.teardownTimeout
    askHost(entry, .customerCall, atMost: deadline, put: callback) { _, reply, status in
      switch reply {
      case .builtin, .value, .license, .server: self.ssmReplied(id, request, call, .success(SessionFields()))
      case .failed(let failure, _):
        // If the server no longer has the session, its teardown is done.
        let isDone = call == .teardown && failure.status == .session
        self.ssmReplied(id, request, call, isDone ? .success(SessionFields()) : .failure(failure))
      case .none: self.ssmReplied(id, request, call, .failure(hostFailure(status)))
      }
    }
  }
}

/// The failure of a call to a delegate without callbacks.
private func withoutCallbacks(_ status: Status) -> WireFailure { hostFailure(status, "the delegate has no callbacks") }

/// The failure of the host itself: a callback failed or did not answer, and no server is known to have failed.
@inline(never)
package func hostFailure(_ status: Status, _ message: String = "") -> WireFailure {
  var failure = WireFailure(status, message: message)
  failure.origin = .local
  return failure
}

private func customerDecoding(_ reply: HostAnswer, _ status: Status) -> LicenseDecoding {
  switch reply {
  case .license(let license):
    var fields = SessionFields()
    // The library never gets the customer's session token. It uses a placeholder, which shows that the session exists.
    fields.token = Secret([0x2D])
    fields.period = .number(license.period)
    fields.enforced = license.isEnforced
    return .success(LicenseReply(data: license.data, fields: fields))
  case .failed(let failure, _): return .failure(failure)
  case .none, .builtin, .value, .server: return .failure(hostFailure(status == .ok ? .callback : status))
  }
}

/// Converts the status with which a customer answered a heartbeat or a teardown to a failure. With three statuses
/// (`session`, `refused`, `limit`) the customer's server has ended the session; after any other failure the library
/// retries a heartbeat, but never a teardown. A status that cannot come from a server means that the callback failed.
package func customerCallFailure(_ status: Status) -> WireFailure {
  switch status {
  case .session, .refused, .limit, .transport, .tls, .timeout, .http, .protocolError, .tooLarge, .redirect:
    return WireFailure(status)
  default: return hostFailure(.callback, status.message)
  }
}
