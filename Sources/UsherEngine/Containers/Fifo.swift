/// A first-in, first-out queue. Appending an element and removing the first one take constant time.
struct Fifo<Element> {
  private var storage: [Element?] = []
  private var head = 0

  var isEmpty: Bool { head == storage.count }
  var count: Int { storage.count - head }

  mutating func append(_ element: Element) { storage.append(element) }

  mutating func popFirst() -> Element? {
    guard head < storage.count else { return nil }
    let first = storage[head]
    storage[head] = nil
    head += 1
    if head == storage.count {
      storage.removeAll(keepingCapacity: storage.capacity <= 64)
      head = 0
    } else if head > 32, head > storage.count / 2 {
      storage.removeFirst(head)
      head = 0
    }
    return first
  }

  /// Removes the first element that satisfies `condition`; the others keep their order.
  mutating func remove(where condition: (Element) -> Bool) -> Bool {
    for index in head..<storage.count {
      guard let element = storage[index], condition(element) else { continue }
      storage.remove(at: index)
      return true
    }
    return false
  }
}
