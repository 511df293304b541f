internal import UsherCore

/// The last tokens of one playback, or of all playbacks of a context. A server's text may repeat a token of an earlier
/// request or of another playback, so the library keeps these tokens in order to find them in the text.
struct SentTokens {
  private var tokens: [Secret] = []
  private var oldest = 0

  /// Keeps a token that a request carried. A playback keeps its last 32 tokens; if they are long, only about 4 kB of
  /// them.
  /// - Returns: false if the playback has the token already.
  mutating func note(_ token: Secret) -> Bool {
    if tokens.contains(where: { $0.address == token.address }) { return false }
    keep(token, most: max(1, min(32, 4096 / max(1, token.count))))
    return true
  }

  /// Keeps a token. If there are already `most` tokens, it replaces the oldest one.
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
