internal import UsherCore

/// Limits the requests in flight, for each origin and in total, and queues the others, urgent ones first. A request in
/// flight holds a permit of its origin. A request that stalls keeps its connection, but loses its permit, so that
/// another request can start. So requests that stall do not make keep-alives wait for a permit.
///
/// All requests in flight, with and without a permit, have at most `connectionsMax` connections. One origin cannot take
/// all these connections: an origin gets another connection only while it has few connections in comparison with the
/// free ones. For a non-urgent request the limit is twice the number of free connections, for an urgent request four
/// times this number. So a server that hangs blocks neither other servers nor its own keep-alives.
///
/// The number of permits of an origin adapts to the time in which it replies. Few connections are best for an origin
/// that replies within a few milliseconds, but too few for one that is far away. While requests are queued, each reply
/// adds two permits, so the number of permits triples per round trip. If urgent requests are queued, a request that
/// stalls adds two permits, too.
struct RequestQueue {
  private final class OriginQueue {
    /// The origin, in the array that the endpoint of the last request has. All requests to an endpoint share this
    /// array, and Swift compares an array with itself without reading its bytes. So `find` is quick.
    var origin: [UInt8]
    /// Requests with a permit.
    var inFlight = 0
    /// Requests with a connection: those with a permit, those that lost their permit, and those that were sent without
    /// one.
    var connected = 0
    /// Keep-alives that may be sent without a permit as soon as there is a connection for them.
    var overdue = Fifo<TransferID>()
    var urgent = Fifo<TransferID>()
    var others = Fifo<TransferID>()
    var limit: Int
    /// The usual time to a reply, in µs. This time is a moving average: of every eight replies, only the quickest
    /// counts.
    var typical: Int64 = 0
    var quickest = Int64.max
    var answers = 0
    var answeredAt: Milliseconds?
    /// Whether requests to the origin must use new connections, because its kept connections may be dead: a request has
    /// failed, or the I/O thread did not run for some time, and the origin has not answered any request since.
    var isDistrusted = false
    /// Whether the origin has replied twice over the same connection, and no request has failed since. Some servers
    /// close each connection after one reply, and do not announce this in the reply.
    var keepsConnections = false
    /// How many seconds the origin keeps an idle connection, as the newest reply with this number says; nil: no reply
    /// has had it.
    var idleSeconds: Int?

    init(origin: [UInt8], limit: Int) {
      self.origin = origin
      self.limit = limit
    }
    var isUnused: Bool { connected == 0 && !hasQueued }
    /// Sets the limit of the origin to the lowest value again, and forgets its usual time to a reply.
    func forgetPace(limit least: Int) {
      limit = least
      typical = 0
      quickest = .max
      answers = 0
    }
    var hasUrgent: Bool { !overdue.isEmpty || !urgent.isEmpty }
    var hasQueued: Bool { hasUrgent || !others.isEmpty }
    var hasPermit: Bool { inFlight < limit }
  }
  /// The time that one request keeps the I/O thread busy, in µs. An origin gets no more permits than its requests need
  /// to keep the thread busy all the time.
  private static var share: Int64 { 200 }
  /// How many origins without any request the queue remembers.
  private static var unusedMost: Int { 64 }
  /// The queues of all origins. The queue that was used last comes first, because each request looks its queue up
  /// several times.
  private var origins: [OriginQueue] = []
  private let least: Int
  private let most: Int
  private(set) var waitingCount = 0
  private var connectedCount = 0
  /// How many requests may have a connection.
  var connectionsMax: Int

  /// - Parameters:
  ///   - least: how many requests may be in flight to an origin that replies at once.
  ///   - most: how many requests may be in flight to any origin.
  init(least: Int, most: Int, connectionsMax: Int = 1 << 20) {
    self.least = max(1, least)
    self.most = max(self.least, most)
    self.connectionsMax = max(1, connectionsMax)
  }

  /// Gives the request a permit, or queues it.
  /// - Returns: true if the request has a permit and must be sent now; false if it is queued.
  mutating func admit(_ id: TransferID, _ request: HTTPRequest) -> Bool {
    let queue = queue(request.endpoint.origin)
    queue.origin = request.endpoint.origin
    if queue.hasPermit, request.isUrgent ? !queue.hasUrgent : !queue.hasQueued,
      hasConnection(queue, isUrgent: request.isUrgent)
    {
      queue.inFlight += 1
      connect(queue)
      return true
    }
    append(id, request.isUrgent, queue)
    return false
  }

  /// Queues a request that could not be sent.
  mutating func putBack(_ id: TransferID, _ request: HTTPRequest) {
    append(id, request.isUrgent, queue(request.endpoint.origin))
  }

  private mutating func append(_ id: TransferID, _ isUrgent: Bool, _ queue: OriginQueue) {
    if isUrgent { queue.urgent.append(id) } else { queue.others.append(id) }
    waitingCount += 1
  }

  /// Returns whether there is a connection for one more request to this origin.
  /// - Parameter freed: how many connections of other requests are about to become free.
  private func hasConnection(_ queue: OriginQueue, isUrgent: Bool, freed: Int = 0) -> Bool {
    let left = connectionsMax &- connectedCount &+ freed
    return left > 0 && queue.connected < (isUrgent ? 4 : 2) &* left
  }

  private mutating func connect(_ queue: OriginQueue) {
    queue.connected += 1
    connectedCount += 1
  }

  /// Called when a keep-alive has waited so long for a permit that it may be sent without one.
  /// - Returns: false if no connection is free. Then the keep-alive stays queued, before all other requests of its
  ///   origin.
  mutating func sendsWithoutPermit(_ id: TransferID, _ origin: [UInt8]) -> Bool {
    guard let queue = find(origin), queue.urgent.remove(where: { $0 == id }) else { return false }
    guard hasConnection(queue, isUrgent: true) else {
      queue.overdue.append(id)
      return false
    }
    waitingCount -= 1
    connect(queue)
    return true
  }

  /// Returns whether an overdue keep-alive to `origin` may take the connection of a request to `other`. If so, the
  /// dispatcher ends that request. If both have the same origin, the keep-alive may always take the connection.
  mutating func mayTakeOver(_ origin: [UInt8], from other: [UInt8]) -> Bool {
    origin == other || find(origin).map { hasConnection($0, isUrgent: true, freed: 1) } ?? false
  }

  /// Returns the origin with the most connections; nil if it does not have at least two connections more than `origin`.
  mutating func largest(besides origin: [UInt8]) -> [UInt8]? {
    var most = (find(origin)?.connected ?? 0) + 1
    var found: [UInt8]?
    for queue in origins where queue.connected > most { (most, found) = (queue.connected, queue.origin) }
    return found
  }

  /// Returns the origin that has the fewest connections among the origins with overdue keep-alives; nil if there is
  /// none.
  var overdueOrigin: [UInt8]? {
    var found: OriginQueue?
    for queue in origins where !queue.overdue.isEmpty && queue.connected < found?.connected ?? .max { found = queue }
    return found?.origin
  }

  /// Takes the oldest overdue keep-alive of an origin out of the queue, to send it over a connection that another
  /// request has just released.
  mutating func takeOverdue(_ origin: [UInt8]) -> TransferID? {
    guard let queue = find(origin), let next = queue.overdue.popFirst() else { return nil }
    waitingCount -= 1
    connect(queue)
    return next
  }

  /// Called when a request was answered.
  /// - Parameters:
  ///   - microseconds: the time from sending to the reply; nil if that time says nothing about the origin.
  ///   - isKept: whether an earlier request had received a reply over the same connection.
  ///   - idleSeconds: how long the origin keeps an idle connection; nil: the reply does not say it.
  /// - Returns: whether this is the first reply of the origin after a request to it failed.
  @discardableResult
  mutating func answered(
    _ origin: [UInt8], after microseconds: Int64?, onKeptConnection isKept: Bool = false, idleSeconds: Int? = nil,
    now: Milliseconds
  ) -> Bool {
    guard let queue = find(origin) else { return false }
    if let idleSeconds { queue.idleSeconds = idleSeconds }
    let wasDistrusted = queue.isDistrusted
    queue.answeredAt = now
    queue.isDistrusted = false
    if isKept { queue.keepsConnections = true }
    if let microseconds { adapt(queue, to: microseconds) }
    return wasDistrusted
  }

  /// Adapts the limit of the origin to the time that a reply took.
  private func adapt(_ queue: OriginQueue, to microseconds: Int64) {
    queue.quickest = min(queue.quickest, microseconds)
    queue.answers += 1
    if queue.answers % 8 == 0 {
      queue.typical = queue.answers == 8 ? queue.quickest : (3 * queue.typical + queue.quickest) / 4
      queue.quickest = .max
    }
    guard queue.hasQueued else { return }
    let pace = queue.answers < 8 ? queue.quickest : queue.typical
    queue.limit = max(queue.limit, min(queue.limit + 2, most, Int(clamping: pace / Self.share)))
  }

  /// For how many seconds a connection to the origin may have been idle before a request uses it; nil: the origin has
  /// not said how long it keeps an idle connection. The result is two seconds less than that time (at most
  /// `longestIdleSeconds`): libcurl counts whole seconds, and the origin's time began before its reply arrived.
  mutating func usableIdleSeconds(_ origin: [UInt8]) -> Int? {
    find(origin)?.idleSeconds.map { min(max($0 - 2, 0), HTTPRequest.longestIdleSeconds) }
  }

  /// When the origin last answered a request; nil: it has not answered any.
  mutating func answeredAt(_ origin: [UInt8]) -> Milliseconds? { find(origin)?.answeredAt }

  /// Called when a request takes so long that it loses its permit. If urgent requests are queued, the limit grows by
  /// two, as after a reply. The reason is that urgent requests may be teardowns: the account cannot use the stream of a
  /// session again before the session's teardown is sent. If only other requests are queued, the limit does not grow:
  /// such requests do not justify a hundred connections to a server that hangs.
  mutating func stalled(_ origin: [UInt8]) {
    guard let queue = find(origin), queue.hasUrgent else { return }
    queue.limit = min(queue.limit + 2, most)
  }

  /// Returns whether the origin has answered any request at or after an instant. If it has, the server is alive, and a
  /// queued request only waits for a permit.
  mutating func hasAnswered(_ origin: [UInt8], since instant: Milliseconds) -> Bool {
    find(origin)?.answeredAt.map { $0 >= instant } ?? false
  }

  /// Makes all requests to an origin use new connections, until the origin has answered one of them.
  mutating func distrust(_ origin: [UInt8]) { distrust(queue(origin)) }

  /// Does the same as `distrust` for all origins that the queue remembers.
  func distrustAll() { for queue in origins { distrust(queue) } }

  private func distrust(_ queue: OriginQueue) {
    queue.isDistrusted = true
    queue.keepsConnections = false
  }

  /// Returns whether requests to the origin must use new connections; see `isDistrusted` of the queue.
  mutating func isDistrusted(_ origin: [UInt8]) -> Bool { find(origin)?.isDistrusted ?? false }

  /// Returns whether the origin has replied on a kept connection, and no request to it has failed since.
  mutating func keepsConnections(_ origin: [UInt8]) -> Bool { find(origin)?.keepsConnections ?? false }

  /// Called when a request with a permit has stalled: frees its permit.
  mutating func free(_ origin: [UInt8]) {
    if let queue = find(origin) { queue.inFlight = max(0, queue.inFlight - 1) }
  }

  /// Called when a request in flight has ended: frees its connection, and its permit if it had one.
  mutating func ended(_ origin: [UInt8], hadPermit: Bool) {
    guard let queue = find(origin) else { return }
    if hadPermit { queue.inFlight = max(0, queue.inFlight - 1) }
    guard queue.connected > 0 else { return }
    queue.connected -= 1
    connectedCount -= 1
    if queue.isUnused { queue.forgetPace(limit: least) }
  }

  /// A queued request that may be sent now.
  struct Next: Equatable {
    let id: TransferID
    let hasPermit: Bool
  }

  /// Takes the next request out of the queue. Urgent requests come first; if several origins have such requests, the
  /// origin with the fewest connections comes first. Returns nil if no request may be sent.
  mutating func next() -> Next? {
    guard waitingCount > 0, connectedCount < connectionsMax else { return nil }
    var chosen: OriginQueue?
    var best = Rank.none
    for queue in origins {
      let rank = rank(queue)
      guard rank < best || (rank == best && queue.connected < (chosen?.connected ?? 0)) else { continue }
      chosen = queue
      best = rank
    }
    guard let queue = chosen else { return nil }
    let overdue = queue.overdue.popFirst()
    guard let id = overdue ?? (best == .urgent ? queue.urgent.popFirst() : queue.others.popFirst()) else { return nil }
    waitingCount -= 1
    if overdue == nil { queue.inFlight += 1 }
    connect(queue)
    return Next(id: id, hasPermit: overdue == nil)
  }

  private enum Rank: Int, Comparable {
    case urgent, other, none

    static func < (a: Rank, b: Rank) -> Bool { a.rawValue < b.rawValue }
  }

  /// Returns the rank of the most important request that the origin may send now.
  private func rank(_ queue: OriginQueue) -> Rank {
    if queue.hasUrgent, queue.hasPermit || !queue.overdue.isEmpty, hasConnection(queue, isUrgent: true) {
      return .urgent
    }
    return !queue.others.isEmpty && queue.hasPermit && hasConnection(queue, isUrgent: false) ? .other : .none
  }

  /// Takes a request out of the queue. Returns false if it is not queued.
  mutating func withdraw(_ id: TransferID, _ origin: [UInt8]) -> Bool {
    guard let queue = find(origin) else { return false }
    guard
      queue.urgent.remove(where: { $0 == id }) || queue.others.remove(where: { $0 == id })
        || queue.overdue.remove(where: { $0 == id })
    else { return false }
    waitingCount -= 1
    if queue.isUnused { queue.forgetPace(limit: least) }
    return true
  }

  private mutating func queue(_ origin: [UInt8]) -> OriginQueue {
    if let queue = find(origin) { return queue }
    if origins.count > Self.unusedMost, let index = origins.lastIndex(where: { $0.isUnused }) {
      origins.remove(at: index)
    }
    let queue = OriginQueue(origin: origin, limit: least)
    origins.insert(queue, at: 0)
    return queue
  }

  /// Finds an origin's queue and moves it to the front.
  private mutating func find(_ origin: [UInt8]) -> OriginQueue? {
    guard let index = origins.firstIndex(where: { $0.origin == origin }) else { return nil }
    if index > 0 { origins.insert(origins.remove(at: index), at: 0) }
    return origins[0]
  }
}
