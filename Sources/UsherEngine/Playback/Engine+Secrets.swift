package import UsherCore

/// The secrets that no message made of a reply may repeat: those of its request and of all playbacks that the reply
/// concerns. They are collected only when a message is made.
package enum ReplySecrets {
  case of(Engine, Transfer)
  /// For tests.
  case these(HiddenSecrets)

  @inline(never)
  func all() -> HiddenSecrets {
    switch self {
    case .of(let engine, let transfer): return engine.secrets(of: transfer)
    case .these(let given): return given
    }
  }
}

/// The secrets that no message may repeat. All texts from outside, of servers and of the host, become messages with
/// them.
extension Engine {
  fileprivate func secrets(of transfer: Transfer) -> HiddenSecrets {
    let hidden = HiddenSecrets()
    transfer.request.addSecrets(to: hidden)
    switch transfer.purpose {
    case .ssm(let id, _, _), .license(let id, _, _), .load(let id, _, _): playbacks[id]?.addSecrets(to: hidden)
    case .certificate(let source): for id in source.playbacks { playbacks[id]?.addSecrets(to: hidden) }
    }
    return hidden
  }

  /// Makes the words that the host gave for a failure safe to show.
  func cleaned(_ reply: HostAnswer, _ entry: PlaybackEntry?) -> HostAnswer {
    guard case .failed(var failure, let words?) = reply else { return reply }
    let hidden = HiddenSecrets()
    entry?.addSecrets(to: hidden)
    failure.message = words.withBytes { hidden.cleaned($0) }
    return .failed(failure, words: nil)
  }
}

extension PlaybackEntry {
  fileprivate func addSecrets(to hidden: HiddenSecrets) {
    sent.addSecrets(to: hidden)
    // These two may have come since the last request.
    if let token = machine.session.token { hidden.add(token) }
    if let token = machine.knownToken { hidden.add(token) }
    for job in jobs.values { hidden.addBody(job.payload) }
    for job in abandoned.values { hidden.addBody(job.payload) }
  }
}
