internal import UsherCore

/// Limits the requests in flight to each origin and queues the others, urgent ones first. A request in flight holds a
/// permit. One that stalls gives its permit up, so that a server that hangs does not hold up a keep-alive.
///
/// The limit adapts to the time the origin takes to reply. Few connections are best for an origin that replies within a
/// few milliseconds, but would be too slow for one far away. While requests are queued, the limit grows by two with
/// each reply, so that it triples per round trip; it also grows with each request that stalls while urgent ones are
/// queued.
struct RequestQueue {
  private final class Lane {
    let origin: [UInt8]
    var underWay = 0
    var urgent = Fifo<TransferID>()
    var others = Fifo<TransferID>()
    var bound: Int
    /// How long replies take, in µs: the quickest of each eight, and a moving average of those.
    var typical: Int64 = 0
    var quickest = Int64.max
    var answers = 0
    var answeredAt: Milliseconds?

    init(origin: [UInt8], bound: Int) {
      self.origin = origin
      self.bound = bound
    }
    var isWaitedFor: Bool { !urgent.isEmpty || !others.isEmpty }
  }
  /// How long one request may keep the I/O thread busy, in µs.
  private static var share: Int64 { 200 }
  /// The lane used last comes first: there are few lanes, and one request looks its own up several times.
  private var lanes: [Lane] = []
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

  /// - Returns: true: the request has a permit, send it now. False: it is queued.
  mutating func admit(_ id: TransferID, _ request: HTTPRequest) -> Bool {
    let lane = lane(request.endpoint.origin)
    if lane.underWay < lane.bound, request.isUrgent ? lane.urgent.isEmpty : !lane.isWaitedFor {
      lane.underWay += 1
      return true
    }
    if request.isUrgent { lane.urgent.append(id) } else { lane.others.append(id) }
    waitingCount += 1
    return false
  }

  /// A reply came.
  /// - Parameter microseconds: how long after its request was sent; nil: not typical of the origin.
  mutating func answered(_ origin: [UInt8], after microseconds: Int64?, now: Milliseconds) {
    guard let lane = find(origin) else { return }
    lane.answeredAt = now
    guard let microseconds else { return }
    lane.quickest = min(lane.quickest, microseconds)
    lane.answers += 1
    if lane.answers % 8 == 0 {
      lane.typical = lane.answers == 8 ? lane.quickest : (3 * lane.typical + lane.quickest) / 4
      lane.quickest = .max
    }
    guard lane.isWaitedFor else { return }
    let pace = lane.answers < 8 ? lane.quickest : lane.typical
    lane.bound = max(lane.bound, min(lane.bound + 2, most, Int(clamping: pace / Self.share)))
  }

  /// A request takes so long that it gives its permit up. While urgent requests are queued, the limit grows as it does
  /// with a reply, because slots stay taken until they are sent. Other requests can wait, and are not worth a hundred
  /// connections to a server that hangs.
  mutating func stalled(_ origin: [UInt8]) {
    guard let lane = find(origin), !lane.urgent.isEmpty else { return }
    lane.bound = min(lane.bound + 2, most)
  }

  /// Whether the origin has replied to anything at or after an instant, so that a queued request only waits for others.
  mutating func hasAnswered(_ origin: [UInt8], since instant: Milliseconds) -> Bool {
    find(origin)?.answeredAt.map { $0 >= instant } ?? false
  }

  /// A request with a permit ended or stalled: its permit is free.
  mutating func free(_ origin: [UInt8]) {
    guard let lane = find(origin) else { return }
    lane.underWay = max(0, lane.underWay - 1)
    forgetIfUnused(lane)
  }

  /// The next queued request, with a permit, if one is free.
  mutating func next(_ origin: [UInt8]) -> TransferID? {
    guard let lane = find(origin), lane.underWay < lane.bound,
      let next = lane.urgent.popFirst() ?? lane.others.popFirst()
    else { return nil }
    lane.underWay += 1
    waitingCount -= 1
    return next
  }

  /// Takes a request out of the queue. False: it is not queued.
  mutating func withdraw(_ id: TransferID, _ origin: [UInt8]) -> Bool {
    guard let lane = find(origin) else { return false }
    guard lane.urgent.remove(where: { $0 == id }) || lane.others.remove(where: { $0 == id }) else { return false }
    waitingCount -= 1
    forgetIfUnused(lane)
    return true
  }

  private mutating func lane(_ origin: [UInt8]) -> Lane {
    if let lane = find(origin) { return lane }
    let lane = Lane(origin: origin, bound: least)
    lanes.append(lane)
    lanes.swapAt(0, lanes.count - 1)
    return lane
  }

  /// Only for the lane that `find` returned last, which is the first one.
  private mutating func forgetIfUnused(_ lane: Lane) {
    if lane.underWay == 0, !lane.isWaitedFor { lanes.removeFirst() }
  }

  /// Finds an origin's lane and moves it to the front.
  private mutating func find(_ origin: [UInt8]) -> Lane? {
    guard let index = lanes.firstIndex(where: { $0.origin == origin }) else { return nil }
    if index > 0 { lanes.swapAt(0, index) }
    return lanes[0]
  }
}
