import UsherCore
import UsherEngine

/// The head-end as a value: accounts with a limit, sessions with leases, tokens of which only the newest is good.
struct HeadEnd {
  struct Session {
    let playback: PlaybackID
    let account: UInt64
    var isAlive = true
    var generation: UInt64 = 1
    var period: Milliseconds
    var lastSeen: Milliseconds
    /// The newest token the library has seen; 0: none.
    var delivered: UInt64 = 0
    var deliveredAt: Milliseconds = 0
    /// A teardown was sent with a token of it; none may follow but another teardown.
    var teardownSent = false
    /// It was answered: nothing may follow at all.
    var teardownAnswered: UInt64?
    var teardownsSent = 0
    var expired = false
  }

  let period: Milliseconds
  let limit: Int
  /// A lease is so many periods.
  let grace: UInt64 = 2
  private(set) var sessions: [Session] = []
  private var held: [UInt64: [Int]] = [:]

  init(period: Milliseconds, limit: Int) {
    self.period = period
    self.limit = limit
  }

  subscript(_ id: UInt64) -> Session? { id < sessions.count ? sessions[Int(id)] : nil }

  mutating func change(_ id: UInt64, _ body: (inout Session) -> Void) {
    if id < sessions.count { body(&sessions[Int(id)]) }
  }

  /// Leases that ran out.
  mutating func expire(_ account: UInt64, now: Milliseconds) {
    guard let ids = held[account] else { return }
    for id in ids where sessions[id].isAlive && now > sessions[id].lastSeen + sessions[id].period * grace {
      sessions[id].isAlive = false
      sessions[id].expired = true
    }
    held[account] = ids.filter { sessions[$0].isAlive }
  }

  mutating func kill(_ account: UInt64?) {
    for id in sessions.indices where account == nil || sessions[id].account == account { sessions[id].isAlive = false }
  }

  func alive(_ playback: PlaybackID) -> [UInt64] {
    sessions.indices.filter { sessions[$0].isAlive && sessions[$0].playback == playback }.map { UInt64($0) }
  }

  mutating func open(_ playback: PlaybackID, _ account: UInt64, now: Milliseconds) -> Token? {
    expire(account, now: now)
    guard (held[account] ?? []).count < limit else { return nil }
    sessions.append(Session(playback: playback, account: account, period: period, lastSeen: now))
    held[account, default: []].append(sessions.count - 1)
    return Token(Token.session, UInt64(sessions.count - 1), 1)
  }

  private mutating func live(_ token: Token?, now: Milliseconds) -> Int? {
    guard let token, token.letter == Token.session, token.first < sessions.count else { return nil }
    let id = Int(token.first)
    expire(sessions[id].account, now: now)
    return sessions[id].isAlive && sessions[id].generation == token.second ? id : nil
  }

  private mutating func rotate(_ id: Int, now: Milliseconds) -> Token {
    sessions[id].lastSeen = now
    sessions[id].generation += 1
    return Token(Token.session, UInt64(id), sessions[id].generation)
  }

  /// A heartbeat that is taken, but whose answer is empty: the token stays.
  mutating func touch(_ token: Token?, now: Milliseconds) -> Reply {
    guard let id = live(token, now: now) else { return .refusal(status: 400, code: 1006) }
    sessions[id].lastSeen = now
    return .done
  }

  /// - Parameter periodNow: what a heartbeat's reply says of the period; nil: nothing.
  mutating func handle(
    _ route: Route, _ tokens: [Token], _ playback: PlaybackID, account: UInt64, _ kind: Kind, periodNow: Milliseconds?,
    now: Milliseconds
  ) -> Reply {
    let session = tokens.last { $0.letter == Token.session }
    switch route {
    case .setup:
      return open(playback, account, now: now).map { .session($0, period: period) } ?? .refusal(status: 400, code: 1007)
    case .heartbeat:
      guard let id = live(session, now: now) else { return .refusal(status: 400, code: 1006) }
      if let periodNow { sessions[id].period = periodNow }
      return .session(rotate(id, now: now), period: periodNow)
    case .teardown:
      guard let id = live(session, now: now) else { return .refusal(status: 400, code: 1006) }
      sessions[id].isAlive = false
      return .done
    case .license, .renewal, .widevineRenewal: return license(route, session, playback, account, kind, now: now)
    case .certificate, .entitlement, .key: return .done
    }
  }

  private mutating func license(
    _ route: Route, _ session: Token?, _ playback: PlaybackID, _ account: UInt64, _ kind: Kind, now: Milliseconds
  ) -> Reply {
    guard kind.hasServerSession else { return .license(kind.keySystem, nil, isEnforced: nil) }
    guard session != nil else {
      guard kind.isV2, route == .license else { return .refusal(status: 400, code: 4001) }
      guard let token = open(playback, account, now: now) else { return .refusal(status: 400, code: 1007) }
      return .license(kind.keySystem, token, isEnforced: kind == .v2Renewals)
    }
    guard let id = live(session, now: now) else { return .refusal(status: 400, code: 1006) }
    if route == .widevineRenewal { return .license(.widevine, rotate(id, now: now), isEnforced: nil) }
    guard kind.isEnforced else { return .license(kind.keySystem, nil, isEnforced: kind == .widevine ? true : false) }
    return .license(kind.keySystem, rotate(id, now: now), isEnforced: true)
  }
}
