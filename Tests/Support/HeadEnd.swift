import UsherCore

/// A model of the head-end as a value: accounts with a limit, and sessions with leases and tokens. Only the newest
/// token of a session is valid; with `acceptsPrevious` the token before it is valid too. The engine's tests,
/// `usher-simulate` and `usher-model` use this model, each with its own model of the network. For each session the
/// model also records the tokens that the client has received and sent, so that tests can check every request.
package struct HeadEnd {
  package struct Session {
    package let playback: UInt64
    package let account: UInt64
    package fileprivate(set) var isAlive = true
    /// The generation of the newest token. The token of set-up has the generation 1, and each new token of the session
    /// has the next number.
    package fileprivate(set) var generation: UInt64 = 1
    package fileprivate(set) var period: Milliseconds
    /// The time at which the last request extended the lease.
    package fileprivate(set) var lastSeen: Milliseconds
    /// The generation of the newest token that the client has received; 0 if it has received no token.
    package fileprivate(set) var received: UInt64 = 0
    package fileprivate(set) var receivedAt: Milliseconds = 0
    package fileprivate(set) var teardownsSent = 0
    /// The generation of the token whose teardown got a final answer; 0 if no teardown got a final answer.
    package fileprivate(set) var teardownAnswered: UInt64 = 0

    /// The depth of each token, in the order in which the head-end issued them. The token of set-up has the depth 1;
    /// the token in a reply is one deeper than the token in the request.
    fileprivate var depths = [1]

    /// Whether two tokens have the same depth, so that the client cannot know which of them is newer.
    fileprivate func areEqual(_ token: UInt64, _ other: UInt64) -> Bool {
      guard token > 0, other > 0, token <= depths.count, other <= depths.count else { return false }
      return depths[Int(token) - 1] == depths[Int(other) - 1]
    }

    /// Whether the client has received the newest token, with which it can end the session.
    package var isNewestReceived: Bool { received == generation }
  }

  package struct Client {
    package let playback: UInt64
    package let account: UInt64

    package init(playback: UInt64 = 0, account: UInt64 = 0) {
      self.playback = playback
      self.account = account
    }
  }

  package enum Request {
    case setup
    /// - newPeriod: the period that the reply announces; nil: the period stays.
    case heartbeat(newPeriod: Milliseconds? = nil)
    case teardown
    /// - opensSession: a request without session token opens a session (SSP V2).
    /// - rotatesToken: the reply to the request has a new session token.
    case license(opensSession: Bool, rotatesToken: Bool)
  }

  package enum Answer: Equatable {
    case opened(Token)
    /// The head-end has extended the lease, and this new token replaces the token in the request.
    case renewed(Token)
    /// The request succeeded without a new token. The token in the request stays valid, unless the request was a
    /// teardown.
    case accepted
    case refused(Refusal)

    /// The session token that the reply has; nil if it has none.
    package var token: Token? {
      switch self {
      case .opened(let token), .renewed(let token): return token
      case .accepted, .refused: return nil
      }
    }
  }

  package enum Refusal: UInt64 {
    case unknownSession = 1006
    case tooManySessions = 1007
    case sessionTokenMissing = 4001
  }

  /// Whether the head-end also accepts the token before the newest one of a session.
  package var acceptsPrevious = false
  /// The largest number of sessions that an account may have at the same time; nil: no limit.
  package var limit: Int?
  package var period: Milliseconds
  /// The number of periods after which a session without keep-alives expires; nil: sessions never expire.
  package var leasePeriods: UInt64?
  package private(set) var sessions: [Session] = []
  /// The indices of each account's sessions, including sessions that have ended.
  private var held: [UInt64: [Int]] = [:]

  package init(limit: Int? = nil, period: Milliseconds = 20_000, leasePeriods: UInt64? = nil) {
    self.limit = limit
    self.period = period
    self.leasePeriods = leasePeriods
  }

  package var alive: [Session] { sessions.filter(\.isAlive) }

  /// Returns the session to which a token belongs, even if the token is no longer valid.
  package subscript(_ token: Token) -> Session? { index(of: token).map { sessions[$0] } }

  /// Returns the valid tokens of a playback's sessions.
  package func tokens(of playback: UInt64) -> [Token] {
    sessions.indices.filter { sessions[$0].isAlive && sessions[$0].playback == playback }.map { newestToken($0) }
  }

  // MARK: What the head-end does

  package mutating func handle(
    _ request: Request, _ token: Token?, of client: Client = Client(), now: Milliseconds
  ) -> Answer {
    if case .setup = request { return open(client, now: now) }
    if case .license(let opensSession, _) = request, token == nil {
      return opensSession ? open(client, now: now) : .refused(.sessionTokenMissing)
    }
    guard let index = validSession(token, now: now) else { return .refused(.unknownSession) }
    switch request {
    case .setup, .license(_, rotatesToken: false): return .accepted
    case .heartbeat(let newPeriod):
      if let newPeriod { sessions[index].period = newPeriod }
      return .renewed(rotateToken(index, token, now: now))
    case .license(_, rotatesToken: true): return .renewed(rotateToken(index, token, now: now))
    case .teardown:
      sessions[index].isAlive = false
      return .accepted
    }
  }

  /// Handles a heartbeat and sends an empty reply: extends the lease, and keeps the token valid.
  package mutating func extendLease(_ token: Token?, now: Milliseconds) -> Answer {
    guard let index = validSession(token, now: now) else { return .refused(.unknownSession) }
    sessions[index].lastSeen = now
    return .accepted
  }

  /// Ends all sessions of one account, as an operator would; nil: the sessions of all accounts.
  package mutating func kill(account: UInt64? = nil) {
    for index in sessions.indices where account == nil || sessions[index].account == account {
      sessions[index].isAlive = false
    }
  }

  /// Ends the account's sessions whose lease is over.
  package mutating func expire(account: UInt64, now: Milliseconds) {
    guard let indices = held[account] else { return }
    if let leasePeriods {
      for index in indices where now > sessions[index].lastSeen + sessions[index].period * leasePeriods {
        sessions[index].isAlive = false
      }
    }
    held[account] = indices.filter { sessions[$0].isAlive }
  }

  private mutating func open(_ client: Client, now: Milliseconds) -> Answer {
    if limit != nil || leasePeriods != nil {
      expire(account: client.account, now: now)
      if let limit, held[client.account, default: []].count >= limit { return .refused(.tooManySessions) }
      held[client.account, default: []].append(sessions.count)
    }
    sessions.append(Session(playback: client.playback, account: client.account, period: period, lastSeen: now))
    return .opened(newestToken(sessions.count - 1))
  }

  private mutating func validSession(_ token: Token?, now: Milliseconds) -> Int? {
    guard let token, let index = index(of: token) else { return nil }
    expire(account: sessions[index].account, now: now)
    guard sessions[index].isAlive, token.generation <= sessions[index].generation else { return nil }
    return sessions[index].generation - token.generation <= (acceptsPrevious ? 1 : 0) ? index : nil
  }

  private mutating func rotateToken(_ index: Int, _ token: Token?, now: Milliseconds) -> Token {
    sessions[index].lastSeen = now
    sessions[index].generation += 1
    if acceptsPrevious, let token {
      sessions[index].depths.append(sessions[index].depths[Int(token.generation) - 1] + 1)
    }
    return newestToken(index)
  }

  private func newestToken(_ index: Int) -> Token { Token(.session, UInt64(index) + 1, sessions[index].generation) }

  private func index(of token: Token) -> Int? {
    guard token.kind == .session, token.owner > 0, token.owner <= UInt64(sessions.count) else { return nil }
    return Int(token.owner) - 1
  }

  // MARK: What the client does

  /// A rule of the protocol that a request may break.
  package enum Violation: Equatable {
    /// The request has an old token, although the client had already received this newer one.
    case oldToken(newest: Token)
    case teardownAfterItsAnswer
    case requestAfterTeardown
  }

  /// Returns the rules that the client breaks by sending a request with this session token.
  /// - Parameter preparedAt: the time at which the client chose the token; nil: now.
  package mutating func clientSends(
    _ token: Token, isTeardown: Bool, preparedAt: Milliseconds? = nil
  ) -> [Violation] {
    guard let index = index(of: token) else { return [] }
    let session = sessions[index]
    var violations: [Violation] = []
    if token.generation < session.received, !session.areEqual(token.generation, session.received),
      preparedAt.map({ session.receivedAt < $0 }) ?? true
    {
      violations.append(.oldToken(newest: Token(.session, token.owner, session.received)))
    }
    if isTeardown {
      if token.generation <= session.teardownAnswered { violations.append(.teardownAfterItsAnswer) }
      sessions[index].teardownsSent += 1
    } else if session.teardownsSent > 0 {
      violations.append(.requestAfterTeardown)
    }
    return violations
  }

  /// Records that the client has received a reply that has this token.
  package mutating func clientReceives(_ token: Token, now: Milliseconds) {
    guard let index = index(of: token) else { return }
    sessions[index].received = max(sessions[index].received, token.generation)
    sessions[index].receivedAt = now
  }

  /// Records that the client got the answer (a success or a refusal) to a teardown with this token.
  package mutating func clientReceivesTeardownAnswer(_ token: Token) {
    guard let index = index(of: token) else { return }
    sessions[index].teardownAnswered = max(sessions[index].teardownAnswered, token.generation)
  }
}
