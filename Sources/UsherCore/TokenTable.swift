/// The storage of a `TokenMap`: entries in a slab, found by open addressing with linear probing. Who is taken out leaves no mark: those behind move up.
struct TokenTable {
  struct Value {
    var token: Secret
    var serial: UInt64
    var setAt: Milliseconds
  }

  struct Entry {
    fileprivate(set) var key: UnsafeMutablePointer<UInt8>?
    fileprivate var keyCount: Int
    fileprivate var tag: UInt32
    var pins: UInt32 = 0
    /// nil: free.
    var token: Secret?
    let serial: UInt64
    /// Of the last time it was set.
    var order: UInt64
    var setAt: Milliseconds
    /// Where it stands in `OldestFirst`; in a free entry the next free one.
    var place: Int
  }

  private(set) var entries: UnsafeMutablePointer<Entry>
  private(set) var capacity = 16
  private(set) var count = 0
  /// Entries below are initialised.
  private(set) var used = 0
  private var firstFree = -1
  /// Twice the capacity: 0, or the low half of the hash above the index and 1. Its place is the hash's low bits.
  private var slots: UnsafeMutablePointer<UInt64>
  private var mask = 31

  init() {
    entries = UnsafeMutablePointer.allocate(capacity: 16)
    slots = TokenTable.emptySlots(32)
  }

  /// Ends it.
  func free() {
    for index in 0..<used { entries[index].key?.deallocate() }
    entries.deinitialize(count: used)
    entries.deallocate()
    slots.deallocate()
  }

  func find(_ key: UnsafeBufferPointer<UInt8>, _ hash: UInt64) -> Int? {
    guard let base = key.baseAddress else { return nil }
    let tag = UInt32(truncatingIfNeeded: hash)
    let (slots, entries, mask) = (slots, entries, mask)
    var at = Int(tag) & mask
    while true {
      let slot = slots[at]
      if slot == 0 { return nil }
      if UInt32(truncatingIfNeeded: slot >> 32) == tag {
        let index = TokenTable.index(slot)
        if entries[index].keyCount == key.count, let own = entries[index].key, sameBytes(own, base, count: key.count) { return index }
      }
      at = (at + 1) & mask
    }
  }

  /// The key is not there yet. nil where there is no room for more in any table.
  mutating func add(_ key: UnsafeBufferPointer<UInt8>, _ hash: UInt64, _ value: Value) -> Int? {
    if firstFree < 0 && used == capacity {
      guard capacity < 1 << 29 else { return nil }
      grow()
    }
    let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: key.count)
    for index in 0..<key.count { copy[index] = key[index] }
    let entry = Entry(
      key: copy, keyCount: key.count, tag: UInt32(truncatingIfNeeded: hash), token: value.token, serial: value.serial, order: value.serial,
      setAt: value.setAt, place: -1)
    let index: Int
    if firstFree >= 0 {
      index = firstFree
      firstFree = entries[index].place
      entries[index] = entry
    } else {
      index = used
      used += 1
      (entries + index).initialize(to: entry)
    }
    count += 1
    link(index)
    return index
  }

  mutating func remove(_ index: Int) {
    unlink(index)
    entries[index].key?.deallocate()
    entries[index].key = nil
    entries[index].token = nil
    entries[index].place = firstFree
    firstFree = index
    count -= 1
  }

  private static func index(_ slot: UInt64) -> Int { Int(slot & 0xFFFF_FFFF) - 1 }

  private static func emptySlots(_ count: Int) -> UnsafeMutablePointer<UInt64> {
    let slots = UnsafeMutablePointer<UInt64>.allocate(capacity: count)
    slots.initialize(repeating: 0, count: count)
    return slots
  }

  private func link(_ index: Int) {
    let tag = entries[index].tag
    var at = Int(tag) & mask
    while slots[at] != 0 { at = (at + 1) & mask }
    slots[at] = UInt64(tag) << 32 | UInt64(index + 1)
  }

  /// Empties its slot; whoever behind it may not stand behind a gap moves up.
  private func unlink(_ index: Int) {
    var gap = Int(entries[index].tag) & mask
    while TokenTable.index(slots[gap]) != index { gap = (gap + 1) & mask }
    var at = (gap + 1) & mask
    while slots[at] != 0 {
      let home = Int(slots[at] >> 32) & mask
      if (at - home) & mask >= (at - gap) & mask {
        slots[gap] = slots[at]
        gap = at
      }
      at = (at + 1) & mask
    }
    slots[gap] = 0
  }

  private mutating func grow() {
    let larger = UnsafeMutablePointer<Entry>.allocate(capacity: 2 * capacity)
    larger.moveInitialize(from: entries, count: used)
    entries.deallocate()
    entries = larger
    capacity *= 2
    slots.deallocate()
    slots = TokenTable.emptySlots(2 * capacity)
    mask = 2 * capacity - 1
    for index in 0..<used { link(index) }
  }
}
