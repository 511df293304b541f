/// The newest session token, and what the library knows about its state at the server. Tokens are numbered; the number
/// is the token's generation. A request that was sent with an older generation carries a token that has been replaced.
struct NewestToken {
  private(set) var secret: Secret?
  private(set) var generation: UInt32 = 0
  /// The generation of the token that the server refused as unknown.
  private var refused: UInt32?
  /// The generation of the token that a lost reply may have replaced.
  private var lostReplacement: UInt32?

  mutating func replace(by token: Secret) {
    secret = token
    generation &+= 1
  }

  /// Forgets the token but keeps its generation. From now on no request can carry the token.
  mutating func forget() { secret = nil }

  /// Whether the server refused the newest token as unknown.
  var isUnknownToServer: Bool { refused == generation }
  mutating func refuseAsUnknown() { refused = generation }

  /// Whether a lost reply may have brought a newer token. The server may then hold the session under that token.
  var mayHaveSuccessor: Bool { lostReplacement == generation }
  mutating func loseReply() { lostReplacement = generation }
  /// Called when the server accepted a request with the newest token.
  mutating func confirm() { lostReplacement = nil }

  /// Returns whether the session has a newer token than that of `generation`.
  func isNewer(than generation: UInt32) -> Bool { secret != nil && self.generation != generation }
}
