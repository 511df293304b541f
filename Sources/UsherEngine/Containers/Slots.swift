/// A table from numbers to values. Each number is used only once, and later numbers are higher. The lower bits of a
/// number are the index of its value, so a look-up needs no hash.
struct Slots<Value> {
  typealias ID = UInt64
  private struct Slot {
    /// 0: the slot is free.
    var id: ID
    var value: Value?
  }
  static var placeBits: UInt64 { 24 }
  private var slots: [Slot] = []
  private var free: [UInt32] = []
  private var last: UInt64 = 0
  var count: Int { slots.count - free.count }

  /// Returns 1 for the first value that was inserted, 2 for the second, and so on.
  static func number(_ id: ID) -> UInt64 { id >> placeBits }

  static func place(_ id: ID) -> Int { Int(id & ((1 << placeBits) - 1)) }

  mutating func insert(_ value: Value) -> ID {
    last &+= 1
    let place = free.popLast().map { Int($0) } ?? slots.count
    precondition(place < 1 << Self.placeBits)
    let id = last << Self.placeBits | UInt64(place)
    if place == slots.count {
      slots.append(Slot(id: id, value: value))
    } else {
      slots[place] = Slot(id: id, value: value)
    }
    return id
  }

  func contains(_ id: ID) -> Bool {
    let place = Self.place(id)
    return place < slots.count && slots[place].id == id && id != 0
  }

  subscript(id: ID) -> Value? { contains(id) ? slots[Self.place(id)].value : nil }

  @discardableResult
  mutating func remove(_ id: ID) -> Value? {
    guard contains(id) else { return nil }
    let place = Self.place(id)
    let value = slots[place].value
    slots[place] = Slot(id: 0, value: nil)
    free.append(UInt32(place))
    return value
  }

  /// The number of the value with the lowest key; nil if no value has a key.
  func lowest(_ key: (Value) -> UInt64?) -> ID? {
    var lowest: (id: ID, key: UInt64)?
    for slot in slots {
      if let value = slot.value, let key = key(value), key < lowest?.key ?? .max { lowest = (slot.id, key) }
    }
    return lowest?.id
  }

  /// The numbers of all values, oldest first.
  var ids: [ID] { slots.compactMap { $0.id == 0 ? nil : $0.id }.sorted() }
}
