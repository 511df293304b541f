internal import UsherCore

/// Timers, soonest first. Timers for the same instant keep the order in which they were set.
struct TimerHeap<Target> {
  typealias ID = UInt64
  private struct Entry {
    let at: Milliseconds
    let id: ID
  }
  private var heap: [Entry] = []
  /// The timers that are not cancelled.
  private var live = Slots<Target>()

  var count: Int { live.count }

  mutating func set(at instant: Milliseconds, _ target: Target) -> ID {
    let id = live.insert(target)
    heap.append(Entry(at: instant, id: id))
    siftUp(heap.count - 1)
    if heap.count > 64 && heap.count > 2 &* live.count { compact() }
    return id
  }

  mutating func cancel(_ id: ID?) {
    if let id { live.remove(id) }
  }

  /// Returns the instant of the soonest timer.
  mutating func next() -> Milliseconds? {
    while let first = heap.first {
      if live.contains(first.id) { return first.at }
      removeFirst()
    }
    return nil
  }

  /// Removes and returns the soonest timer if it is due.
  mutating func popDue(now: Milliseconds) -> Target? {
    guard let at = next(), at <= now, let first = heap.first else { return nil }
    removeFirst()
    return live.remove(first.id)
  }

  /// Calls `body` for each timer that is due. The time of this call grows with the number of all timers.
  func forEachDue(now: Milliseconds, _ body: (Target) -> Void) {
    for entry in heap where entry.at <= now { if let target = live[entry.id] { body(target) } }
  }

  /// The soonest timer. Call `next` directly before: it removes the cancelled timers that would come first.
  var first: Target? { heap.first.flatMap { live[$0.id] } }

  /// Moves the soonest timer to a later instant; the timer keeps its id.
  mutating func postponeFirst(to instant: Milliseconds) {
    guard let first = heap.first else { return }
    removeFirst()
    heap.append(Entry(at: instant, id: first.id))
    siftUp(heap.count - 1)
  }

  private mutating func compact() {
    let kept = heap.filter { live.contains($0.id) }
    heap = []
    heap.reserveCapacity(kept.count)
    for entry in kept {
      heap.append(entry)
      siftUp(heap.count - 1)
    }
  }

  private static func isSooner(_ a: Entry, _ b: Entry) -> Bool { a.at != b.at ? a.at < b.at : a.id < b.id }

  private mutating func siftUp(_ start: Int) {
    heap.withUnsafeMutableBufferPointer { heap in
      let entry = heap[start]
      var child = start
      while child > 0 {
        let parent = (child - 1) / 2
        guard Self.isSooner(entry, heap[parent]) else { break }
        heap[child] = heap[parent]
        child = parent
      }
      heap[child] = entry
    }
  }

  private mutating func removeFirst() {
    guard let last = heap.popLast(), !heap.isEmpty else { return }
    heap.withUnsafeMutableBufferPointer { heap in
      var parent = 0
      while true {
        var child = 2 * parent + 1
        guard child < heap.count else { break }
        if child + 1 < heap.count, Self.isSooner(heap[child + 1], heap[child]) { child += 1 }
        guard Self.isSooner(heap[child], last) else { break }
        heap[parent] = heap[child]
        parent = child
      }
      heap[parent] = last
    }
  }
}
