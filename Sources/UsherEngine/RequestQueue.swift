internal import UsherCore

/// Bounds the requests under way to each origin; what finds no place waits, urgent ones first. A request that stalls gives its place
/// up, so that a hung server takes none from a keep-alive.
struct RequestQueue {
  struct Waiting {
    let id: TransferID
    let request: HTTPRequest
  }
  private final class Lane {
    var underWay = 0
    var urgent = Fifo<Waiting>()
    var others = Fifo<Waiting>()
  }
  private var lanes: [[UInt8]: Lane] = [:]
  private let bound: Int
  private(set) var waitingCount = 0

  init(bound: Int) { self.bound = max(1, bound) }

  /// True: send it now. False: it waits.
  mutating func admit(_ id: TransferID, _ request: HTTPRequest) -> Bool {
    let lane = lane(request.endpoint.origin)
    if lane.underWay < bound {
      lane.underWay += 1
      return true
    }
    if request.isUrgent { lane.urgent.append(Waiting(id: id, request: request)) } else { lane.others.append(Waiting(id: id, request: request)) }
    waitingCount += 1
    return false
  }

  /// A request ended or stalled: its place goes to who waits.
  mutating func free(_ origin: [UInt8]) -> Waiting? {
    guard let lane = lanes[origin] else { return nil }
    guard let next = lane.urgent.popFirst() ?? lane.others.popFirst() else {
      lane.underWay = max(0, lane.underWay - 1)
      if lane.underWay == 0 { lanes.removeValue(forKey: origin) }
      return nil
    }
    waitingCount -= 1
    return next
  }

  /// One that waits is wanted no more.
  mutating func withdraw(_ id: TransferID, _ origin: [UInt8]) -> Bool {
    guard let lane = lanes[origin] else { return false }
    guard lane.urgent.remove(where: { $0.id == id }) || lane.others.remove(where: { $0.id == id }) else { return false }
    waitingCount -= 1
    return true
  }

  private mutating func lane(_ origin: [UInt8]) -> Lane {
    if let lane = lanes[origin] { return lane }
    let lane = Lane()
    lanes[origin] = lane
    return lane
  }
}
