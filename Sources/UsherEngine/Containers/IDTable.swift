/// A hash table from numbers to values. The library assigns the numbers (never 0), so no attacker can choose numbers
/// that collide, and one multiplication is enough as a hash. The table uses open addressing with linear probing. It
/// grows by half and does not double, because its size adds to the memory cost of each playback.
struct IDTable<Value> {
  /// 0: the entry is free.
  private var ids: [UInt64] = []
  private var values: [Value?] = []
  private(set) var count = 0

  subscript(id: UInt64) -> Value? {
    get {
      guard count > 0 else { return nil }
      return values[place(id)]
    }
    set {
      guard let newValue else {
        remove(id)
        return
      }
      if (count + 1) * 8 > ids.count * 7 { grow() }
      let place = place(id)
      if ids[place] == 0 { count += 1 }
      ids[place] = id
      values[place] = newValue
    }
  }

  @discardableResult
  mutating func remove(_ id: UInt64) -> Value? {
    guard count > 0, id != 0 else { return nil }
    var hole = place(id)
    guard ids[hole] == id else { return nil }
    let removed = values[hole]
    // Close the hole that the removed entry leaves, so that look-ups still find the entries after it. If one of these
    // entries may also be stored in the hole, move it there; its old index is then the hole.
    var next = following(hole)
    while ids[next] != 0 {
      let home = home(ids[next])
      let isBetween = hole <= next ? (hole < home && home <= next) : (hole < home || home <= next)
      if !isBetween {
        ids[hole] = ids[next]
        values[hole] = values[next]
        hole = next
      }
      next = following(next)
    }
    ids[hole] = 0
    values[hole] = nil
    count -= 1
    return removed
  }

  /// The numbers in the table, in ascending order: the order in which the library assigned them.
  var sortedIDs: [UInt64] { ids.filter { $0 != 0 }.sorted() }

  private func home(_ id: UInt64) -> Int {
    Int((id &* 0x9E37_79B9_7F4A_7C15).multipliedFullWidth(by: UInt64(ids.count)).high)
  }
  private func following(_ place: Int) -> Int { place + 1 == ids.count ? 0 : place + 1 }

  /// Returns the index of the number. If the table does not have the number, returns the index at which it would be
  /// inserted.
  private func place(_ id: UInt64) -> Int {
    var place = home(id)
    while ids[place] != 0, ids[place] != id { place = following(place) }
    return place
  }

  private mutating func grow() {
    let (oldIDs, oldValues) = (ids, values)
    let room = max(8, ids.count + ids.count / 2)
    ids = Array(repeating: 0, count: room)
    values = Array(repeating: nil, count: room)
    for (index, id) in oldIDs.enumerated() where id != 0 {
      let place = place(id)
      ids[place] = id
      values[place] = oldValues[index]
    }
  }
}
