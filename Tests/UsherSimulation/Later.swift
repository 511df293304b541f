import UsherCore

/// A queue of events by time; events of the same instant keep the order in which they were added.
struct Later<Value> {
  private var heap: [(at: Milliseconds, order: UInt64, value: Value)] = []
  private var order: UInt64 = 0

  var next: Milliseconds? { heap.first?.at }
  var isEmpty: Bool { heap.isEmpty }

  mutating func add(_ at: Milliseconds, _ value: Value) {
    order += 1
    heap.append((at, order, value))
    var child = heap.count - 1
    while child > 0, isSooner(child, (child - 1) / 2) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func take() -> Value? {
    guard let first = heap.first, let last = heap.popLast() else { return nil }
    guard !heap.isEmpty else { return first.value }
    heap[0] = last
    var parent = 0
    while true {
      var soonest = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && isSooner(child, soonest) {
        soonest = child
      }
      if soonest == parent { return first.value }
      heap.swapAt(parent, soonest)
      parent = soonest
    }
  }

  private func isSooner(_ a: Int, _ b: Int) -> Bool {
    heap[a].at != heap[b].at ? heap[a].at < heap[b].at : heap[a].order < heap[b].order
  }
}
