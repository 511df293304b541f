/// The newest session token, and what the library knows about its state at the server.
///
/// Replies do not always arrive in the order in which the server issued their tokens. So each token has a depth: the
/// token of set-up has depth 1, and the token in a reply is one deeper than the token in its request. A deeper token is
/// always newer. This rule holds for a server that accepts only its newest token. The rule also holds for a server that
/// accepts the newest token and the token before that. No token of these servers is less deep than a token that they
/// issued earlier, and at most two tokens have the same depth. Of two tokens of the same depth the library uses the one
/// that arrived last. The library keeps the other one, in case the server refuses the token in use.
struct NewestToken {
  private(set) var secret: Secret?
  /// Identifies `secret`: a request that was sent with another generation carries another token. The lowest four bits
  /// count the changes between tokens of one depth; the bits above are the depth.
  private(set) var generation: UInt32 = 0
  /// The token before `secret`. A late reply may repeat it.
  private var previous: Secret?
  /// The other token that has the same depth as `secret`.
  private var other: Secret?
  private var hasTriedOther = false
  /// Whether a teardown carries the newest token. If so, `secret` is nil, although the server has not refused the
  /// token.
  private var isInTeardown = false
  /// The generation of the last token that the server refused as unknown; nil if the server has refused none.
  private var refused: UInt32?
  /// The id of the first request that the library sent after the newest lost reply. nil: no reply was lost, or the
  /// server has since accepted a token that the library has.
  private var sentAfterLoss: RequestID?

  private static var variantBits: UInt32 { 15 }

  /// Takes the token of a reply, unless the library already knows this token or has a newer one.
  /// - Parameter carried: the generation of the token in the request; 0 if the request had no session token.
  @inline(never)
  mutating func take(_ token: Secret, inReplyTo carried: UInt32) {
    guard !repeats(token, carried) else { return }
    let depth = (carried & ~Self.variantBits) &+ (Self.variantBits + 1)
    let ahead = Int32(bitPattern: depth &- (generation & ~Self.variantBits))
    if ahead < 0 { return }
    hasTriedOther = false
    if ahead == 0, isInTeardown {
      other = token
      return
    }
    isInTeardown = false
    if ahead > 0 {
      if let secret { previous = secret }
      other = nil
      generation = depth
    } else {
      if let secret { other = secret }
      generation = nextVariant
    }
    secret = token
  }

  /// Returns whether a reply repeats a token that the library knows, so that the reply replaces nothing.
  private func repeats(_ token: Secret, _ carried: UInt32) -> Bool {
    if let secret, secret.hasSameBytes(as: token) { return true }
    if carried == generation { return false }
    if let previous, previous.hasSameBytes(as: token) { return true }
    if let other, other.hasSameBytes(as: token) { return true }
    return false
  }

  private var nextVariant: UInt32 {
    (generation & ~Self.variantBits) | ((generation &+ 1) & Self.variantBits)
  }

  /// Called when the server refused the token as unknown. If the library keeps another token of the same depth and has
  /// not tried it, uses that token from now on. Returns whether the library now uses another token; if so, the caller
  /// may then send the refused request once more.
  @inline(never)
  mutating func useOther() -> Bool {
    guard let next = other, !hasTriedOther else { return false }
    hasTriedOther = true
    isInTeardown = false
    other = secret
    secret = next
    generation = nextVariant
    return true
  }

  /// Called before a teardown is sent with the token: from now on no other request can carry it.
  mutating func forget() {
    previous = secret
    secret = nil
    isInTeardown = true
  }

  /// Called when the session has ended: no teardown is in flight any more.
  mutating func teardownEnded() { isInTeardown = false }

  /// Called when no request will carry a token of this session any more.
  mutating func forgetAll() {
    secret = nil
    previous = nil
    other = nil
  }

  /// Whether the server refused the newest token as unknown, and no other token could replace it.
  var isUnknownToServer: Bool { refused == generation }
  mutating func refuseAsUnknown() { if !useOther() { refused = generation } }

  /// Whether a lost reply may have brought a newer token. The server may then hold the session under that token.
  var mayHaveSuccessor: Bool { sentAfterLoss != nil }
  /// Called when the reply to a request was lost.
  /// - Parameter next: the id of the next request.
  mutating func loseReply(next: RequestID) { sentAfterLoss = next }
  /// Called when the server accepted a request with a session token. If the library sent this request after it had lost
  /// a reply, the server still knows the session by a token that the library has. So the lost reply no longer matters.
  mutating func confirm(_ request: RequestID) {
    if let first = sentAfterLoss, request >= first { sentAfterLoss = nil }
  }

  /// Returns whether the session has a newer token than that of `generation`.
  func isNewer(than generation: UInt32) -> Bool { secret != nil && self.generation != generation }
}
