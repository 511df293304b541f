internal import UsherCore

/// Bounds the requests under way to each origin; what finds no place waits, urgent ones first. A request that stalls gives its place
/// up, so that a hung server takes none from a keep-alive.
///
/// The bound adapts: it is as many as one thread can keep going at the pace the origin answers. One that answers within few milliseconds is served
/// best over few connections, while one far away would be asked too slowly. It grows by two places for each answer while others
/// wait, so that it trebles with each round trip; and for each request that stalls while urgent ones wait.
struct RequestQueue {
  private final class Lane {
    let origin: [UInt8]
    var underWay = 0
    var urgent = Fifo<TransferID>()
    var others = Fifo<TransferID>()
    var bound: Int
    /// How long answers take in µs: of each eight the quickest, and of those an average that forgets.
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
  /// What a request keeps the thread busy for at most, in µs.
  private static var share: Int64 { 200 }
  /// The one asked for last is the first: there are few, and one request asks for its own several times.
  private var lanes: [Lane] = []
  private let least: Int
  private let most: Int
  private(set) var waitingCount = 0

  /// - Parameters:
  ///   - least: places at an origin that answers at once.
  ///   - most: places at any.
  init(least: Int, most: Int) {
    self.least = max(1, least)
    self.most = max(self.least, most)
  }

  /// True: send it now. False: it waits.
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

  /// An answer came.
  /// - Parameter microseconds: how long after its request was sent; nil: it says nothing of how long others take.
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

  /// A request takes so long that its place is given up. Where urgent ones wait, that says of the origin what a slow answer does: slots are held until they
  /// are sent. Others have time, and are not worth a hundred connections to a server that hangs.
  mutating func stalled(_ origin: [UInt8]) {
    guard let lane = find(origin), !lane.urgent.isEmpty else { return }
    lane.bound = min(lane.bound + 2, most)
  }

  /// Whether the origin has answered anything at or after an instant: then who waits has only others before it.
  mutating func hasAnswered(_ origin: [UInt8], since instant: Milliseconds) -> Bool {
    find(origin)?.answeredAt.map { $0 >= instant } ?? false
  }

  /// A request ended or stalled: its place is free.
  mutating func free(_ origin: [UInt8]) {
    guard let lane = find(origin) else { return }
    lane.underWay = max(0, lane.underWay - 1)
    forgetIfUnused(lane)
  }

  /// The first of those that wait, if there is a place; it has the place then.
  mutating func next(_ origin: [UInt8]) -> TransferID? {
    guard let lane = find(origin), lane.underWay < lane.bound,
      let next = lane.urgent.popFirst() ?? lane.others.popFirst()
    else { return nil }
    lane.underWay += 1
    waitingCount -= 1
    return next
  }

  /// One that waits is wanted no more.
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

  /// Of the one found last, which is the first.
  private mutating func forgetIfUnused(_ lane: Lane) {
    if lane.underWay == 0, !lane.isWaitedFor { lanes.removeFirst() }
  }

  /// The first from now on.
  private mutating func find(_ origin: [UInt8]) -> Lane? {
    guard let index = lanes.firstIndex(where: { $0.origin == origin }) else { return nil }
    if index > 0 { lanes.swapAt(0, index) }
    return lanes[0]
  }
}
