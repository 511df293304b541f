/// The entries of a `TokenTable` that may be pruned, ordered by the time at which they were set. These entries form a
/// heap; each entry stores its position in the heap.
struct OldestFirst {
  private var heap: [Int] = []

  var first: Int? { heap.first }

  mutating func add(_ index: Int, in entries: UnsafeMutablePointer<TokenTable.Entry>) {
    heap.append(index)
    entries[index].place = heap.count - 1
    rise(heap.count - 1, entries)
  }

  mutating func remove(_ index: Int, in entries: UnsafeMutablePointer<TokenTable.Entry>) {
    let place = entries[index].place
    guard let last = heap.popLast(), place < heap.count else { return }
    put(last, at: place, entries)
    rise(place, entries)
    sink(entries[last].place, entries)
  }

  /// Restores the order after an entry was set again and so became the newest.
  mutating func moved(_ index: Int, in entries: UnsafeMutablePointer<TokenTable.Entry>) {
    sink(entries[index].place, entries)
  }

  private mutating func put(_ index: Int, at place: Int, _ entries: UnsafeMutablePointer<TokenTable.Entry>) {
    heap[place] = index
    entries[index].place = place
  }

  private mutating func rise(_ start: Int, _ entries: UnsafeMutablePointer<TokenTable.Entry>) {
    var child = start
    while child > 0 {
      let parent = (child - 1) / 2
      let (below, above) = (heap[child], heap[parent])
      guard entries[below].order < entries[above].order else { return }
      put(below, at: parent, entries)
      put(above, at: child, entries)
      child = parent
    }
  }

  private mutating func sink(_ start: Int, _ entries: UnsafeMutablePointer<TokenTable.Entry>) {
    var parent = start
    while true {
      var oldest = parent
      let (left, right) = (2 * parent + 1, 2 * parent + 2)
      if left < heap.count && entries[heap[left]].order < entries[heap[oldest]].order { oldest = left }
      if right < heap.count && entries[heap[right]].order < entries[heap[oldest]].order { oldest = right }
      if oldest == parent { return }
      let (above, below) = (heap[parent], heap[oldest])
      put(above, at: oldest, entries)
      put(below, at: parent, entries)
      parent = oldest
    }
  }
}
