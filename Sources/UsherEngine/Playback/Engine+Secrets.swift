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
    addSecrets(to: hidden)
    switch transfer.purpose {
    case .ssm(let id, _, _), .license(let id, _, _), .load(let id, _, _): playbacks[id]?.addSecrets(to: hidden)
    case .certificate(let source): for id in source.playbacks { playbacks[id]?.addSecrets(to: hidden) }
    }
    return hidden
  }

  private func addSecrets(to hidden: HiddenSecrets) {
    shortTokens.addSecrets(to: hidden)
    if let proxy = options.transport.proxy { proxy.withBytes { hidden.addProxy($0) } }
  }

  /// Notes a token that a request of a playback carries. The context keeps the last 128 short ones of all playbacks;
  /// `cleaned` recognises a long token of another playback because it looks like one.
  func note(_ token: Secret, of entry: PlaybackEntry) {
    if entry.sent.note(token), isShort(token) { shortTokens.keep(token, most: 128) }
  }

  /// Notes the session token in a reply, for the messages of other playbacks.
  func note(_ fields: SessionFields, of entry: PlaybackEntry) {
    if let token = fields.token, isShort(token) { note(token, of: entry) }
  }

  private func isShort(_ token: Secret) -> Bool { token.count <= 64 }

  /// Makes the words that the host gave for a failure safe to show.
  func cleaned(_ reply: HostAnswer, _ entry: PlaybackEntry?) -> HostAnswer {
    guard case .failed(var failure, let words?) = reply else { return reply }
    let hidden = HiddenSecrets()
    addSecrets(to: hidden)
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
