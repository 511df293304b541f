package import UsherCore

/// The secrets of a context. The engine removes them from the texts that servers and the host supply, before these
/// texts become messages.
struct ContextSecrets {
  /// The last short tokens that requests of all playbacks carried.
  private var shortTokens = SentTokens()
  private let proxy: Secret?

  init(proxy: Secret?) { self.proxy = proxy }

  /// Keeps a token that a request of a playback carries. The context also keeps the last 128 short tokens of all
  /// playbacks. It need not keep the long tokens of all playbacks, because `cleaned` removes every long word that looks
  /// like a token.
  mutating func note(_ token: Secret, of entry: PlaybackEntry) {
    if entry.sent.note(token), isShort(token) { shortTokens.keep(token, most: 128) }
  }

  /// Keeps the session token of a reply if the token is short, so that the messages of other playbacks do not contain
  /// it.
  mutating func note(_ fields: SessionFields, of entry: PlaybackEntry) {
    if let token = fields.token, isShort(token) { note(token, of: entry) }
  }

  private func isShort(_ token: Secret) -> Bool { token.count <= 64 }

  func add(to hidden: HiddenSecrets) {
    shortTokens.addSecrets(to: hidden)
    if let proxy { proxy.withBytes { hidden.addProxy($0) } }
  }

  /// Removes the secrets from the reason that the host gave for a failure.
  func cleaned(_ reply: HostAnswer, _ entry: PlaybackEntry?) -> HostAnswer {
    guard case .failed(var failure, let words?) = reply else { return reply }
    let hidden = HiddenSecrets()
    add(to: hidden)
    entry?.addSecrets(to: hidden)
    failure.message = words.withBytes { hidden.cleaned($0) }
    return .failed(failure, words: nil)
  }
}

/// The secrets that a message made from a reply must not contain: those of the request, and of all playbacks that the
/// reply concerns. The engine collects these secrets only when it makes such a message.
package enum ReplySecrets {
  case of(Engine, Transfer)
  /// For tests.
  case these(HiddenSecrets)

  @inline(never)
  func all() -> HiddenSecrets {
    switch self {
    case .these(let given): return given
    case .of(let engine, let transfer):
      let hidden = HiddenSecrets()
      transfer.request.addSecrets(to: hidden)
      engine.secrets.add(to: hidden)
      switch transfer.purpose {
      case .ssm(let id, _, _), .license(let id, _, _), .load(let id, _, _): engine.playbacks[id]?.addSecrets(to: hidden)
      case .certificate(let source): for id in source.playbacks { engine.playbacks[id]?.addSecrets(to: hidden) }
      case .connection, .recovery: break
      }
      return hidden
    }
  }
}

extension PlaybackEntry {
  fileprivate func addSecrets(to hidden: HiddenSecrets) {
    sent.addSecrets(to: hidden)
    // `sent` has only the secrets of requests. Perhaps no request has carried these two tokens yet.
    if let token = machine.session.token { hidden.add(token) }
    if let token = machine.knownToken { hidden.add(token) }
    for job in jobs.values { hidden.addBody(job.payload) }
  }
}
