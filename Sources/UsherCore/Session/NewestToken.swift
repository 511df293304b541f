/// The newest session token, and what the server is known to think of it. Generations number the tokens, so that a
/// request knows whether another token replaced its own meanwhile.
struct NewestToken {
  private(set) var secret: Secret?
  private(set) var generation: UInt32 = 0
  /// The generation that the server called unknown.
  private var refused: UInt32?
  /// The generation that a reply may have replaced which never arrived.
  private var lostReplacement: UInt32?

  mutating func replace(by token: Secret) {
    secret = token
    generation &+= 1
  }

  /// Forgets the token but not its generation: nothing can be sent with it any more.
  mutating func forget() { secret = nil }

  /// The server does not know the newest token.
  var isUnknownToServer: Bool { refused == generation }
  mutating func refuseAsUnknown() { refused = generation }

  /// A reply was lost that may have brought a newer token: the server may hold the session under that one.
  var mayHaveSuccessor: Bool { lostReplacement == generation }
  mutating func loseReply() { lostReplacement = generation }
  /// The server answered a request well that carried the newest token.
  mutating func confirm() { lostReplacement = nil }

  /// A newer token than the one of `generation` is known.
  func isNewer(than generation: UInt32) -> Bool { secret != nil && self.generation != generation }
}
