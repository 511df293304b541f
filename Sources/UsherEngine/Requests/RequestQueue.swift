internal import UsherCore

/// Limits the requests in flight to each origin and queues the others, urgent ones first. A request in flight holds a
/// permit. A request that stalls gives its permit up, so that a hanging server does not delay keep-alives.
///
/// The limit adapts to the time the origin takes to reply. Few connections are best for an origin that replies within a
/// few milliseconds, but would be too slow for one far away. While requests are queued, the limit grows by two with
/// each reply, so that it triples per round trip; it also grows with each request that stalls while urgent ones are
/// queued.
struct RequestQueue {
  private final class OriginQueue {
    let origin: [UInt8]
    var inFlight = 0
    var urgent = Fifo<TransferID>()
    var others = Fifo<TransferID>()
    var limit: Int
    /// The usual time to a reply, in µs: a moving average of the quickest of each eight replies.
    var typical: Int64 = 0
    var quickest = Int64.max
    var answers = 0
    var answeredAt: Milliseconds?

    init(origin: [UInt8], limit: Int) {
      self.origin = origin
      self.limit = limit
    }
    var hasQueued: Bool { !urgent.isEmpty || !others.isEmpty }
  }
  /// How long one request may keep the I/O thread busy, in µs.
  private static var share: Int64 { 200 }
  /// The queues of all origins; the one used last comes first, because one request looks it up several times.
  private var origins: [OriginQueue] = []
  private let least: Int
  private let most: Int
  private(set) var waitingCount = 0

  /// - Parameters:
  ///   - least: the limit for an origin that replies at once.
  ///   - most: the limit for any origin.
  init(least: Int, most: Int) {
    self.least = max(1, least)
    self.most = max(self.least, most)
  }

  /// - Returns: true if the request has a permit and must be sent now; false if it is queued.
  mutating func admit(_ id: TransferID, _ request: HTTPRequest) -> Bool {
    let queue = queue(request.endpoint.origin)
    if queue.inFlight < queue.limit, request.isUrgent ? queue.urgent.isEmpty : !queue.hasQueued {
      queue.inFlight += 1
      return true
    }
    if request.isUrgent { queue.urgent.append(id) } else { queue.others.append(id) }
    waitingCount += 1
    return false
  }

  /// Called when a request was answered.
  /// - Parameter microseconds: the time from sending the request to the reply; nil if the time is not typical of the
  ///   origin.
  mutating func answered(_ origin: [UInt8], after microseconds: Int64?, now: Milliseconds) {
    guard let queue = find(origin) else { return }
    queue.answeredAt = now
    guard let microseconds else { return }
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

  /// Called when a request takes so long that it loses its permit. While urgent requests are queued, the limit grows as
  /// it does with a reply, because an unsent teardown keeps its slot taken. For other requests the limit does not grow,
  /// since they do not justify a hundred connections to a hanging server.
  mutating func stalled(_ origin: [UInt8]) {
    guard let queue = find(origin), !queue.urgent.isEmpty else { return }
    queue.limit = min(queue.limit + 2, most)
  }

  /// Returns whether the origin has answered any request at or after an instant. If it has, the server is alive, and a
  /// queued request only waits for a permit.
  mutating func hasAnswered(_ origin: [UInt8], since instant: Milliseconds) -> Bool {
    find(origin)?.answeredAt.map { $0 >= instant } ?? false
  }

  /// Called when a request with a permit has ended or stalled: frees the permit.
  mutating func free(_ origin: [UInt8]) {
    guard let queue = find(origin) else { return }
    queue.inFlight = max(0, queue.inFlight - 1)
    forgetIfUnused(queue)
  }

  /// Gives the next queued request a permit and returns it; nil if none is queued or no permit is free.
  mutating func next(_ origin: [UInt8]) -> TransferID? {
    guard let queue = find(origin), queue.inFlight < queue.limit,
      let next = queue.urgent.popFirst() ?? queue.others.popFirst()
    else { return nil }
    queue.inFlight += 1
    waitingCount -= 1
    return next
  }

  /// Takes a request out of the queue. Returns false if it is not queued.
  mutating func withdraw(_ id: TransferID, _ origin: [UInt8]) -> Bool {
    guard let queue = find(origin) else { return false }
    guard queue.urgent.remove(where: { $0 == id }) || queue.others.remove(where: { $0 == id }) else { return false }
    waitingCount -= 1
    forgetIfUnused(queue)
    return true
  }

  private mutating func queue(_ origin: [UInt8]) -> OriginQueue {
    if let queue = find(origin) { return queue }
    let queue = OriginQueue(origin: origin, limit: least)
    origins.append(queue)
    origins.swapAt(0, origins.count - 1)
    return queue
  }

  /// Removes the queue if it is unused. Call only for the queue that `find` returned last, which is the first one.
  private mutating func forgetIfUnused(_ queue: OriginQueue) {
    if queue.inFlight == 0, !queue.hasQueued { origins.removeFirst() }
  }

  /// Finds an origin's queue and moves it to the front.
  private mutating func find(_ origin: [UInt8]) -> OriginQueue? {
    guard let index = origins.firstIndex(where: { $0.origin == origin }) else { return nil }
    if index > 0 { origins.swapAt(0, index) }
    return origins[0]
  }
}
