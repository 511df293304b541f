internal import UsherCore

/// The last tokens of one playback, or of all playbacks of a context. A server may repeat a token of an earlier request
/// or of another screen, so the library keeps the last ones to recognise them.
struct SentTokens {
  private var tokens: [Secret] = []
  private var oldest = 0

  /// Notes a token of a playback, which keeps the last 32 tokens, or fewer so that they have about 4 kB.
  /// - Returns: false if the playback has the token already.
  mutating func note(_ token: Secret) -> Bool {
    if tokens.contains(where: { $0.address == token.address }) { return false }
    keep(token, most: max(1, min(32, 4096 / max(1, token.count))))
    return true
  }

  /// Keeps a token, instead of the oldest one if there are already `most`.
  mutating func keep(_ token: Secret, most: Int) {
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
