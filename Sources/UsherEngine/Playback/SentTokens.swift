internal import UsherCore

/// The last tokens that the requests of one playback carried. A server may repeat a replaced token in a later message,
/// so the playback keeps the last ones to recognise them: about 4 kB, between 1 and 32 tokens.
struct SentTokens {
  private var tokens: [Secret] = []
  private var oldest = 0
  private static var mostBytes: Int { 4096 }

  mutating func note(_ token: Secret) {
    if tokens.contains(where: { $0.address == token.address }) { return }
    let most = max(1, min(32, Self.mostBytes / max(1, token.count)))
    if tokens.count < most {
      tokens.append(token)
    } else {
      tokens[oldest] = token
      oldest += 1
      if oldest == tokens.count { oldest = 0 }
    }
  }

  func addSecrets(to hidden: HiddenSecrets) {
    for token in tokens { hidden.add(token) }
  }
}
