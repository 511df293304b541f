/// The storage of a `TokenMap`: entries in a slab, and a hash table with open addressing and linear probing. When the
/// table removes an entry, it does not mark the slot as deleted (a tombstone), but moves later entries into the gap.
struct TokenTable {
  struct Value {
    var token: Secret
    var serial: UInt64
    var setAt: Milliseconds
  }

  /// The part of an entry that a look-up reads: one cache line, with the key or the address of a long key.
  private struct Line {
    /// nil: the entry is free.
    var token: Secret?
    let keyCount: UInt32
    let tag: UInt32
    /// The bytes of the key. If the key is too long for this field, the first word contains its address.
    var key: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)

    var longKey: UnsafeMutablePointer<UInt8>? {
      keyCount > TokenTable.shortKey ? UnsafeMutablePointer(bitPattern: UInt(key.0)) : nil
    }
  }

  struct Entry {
    let serial: UInt64
    /// A number that the map gives at each call that sets the token: an entry that was set later has a higher number.
    var order: UInt64
    var setAt: Milliseconds
    var pins: UInt32 = 0
    /// The position of the entry in the heap of `OldestFirst`. If the entry is free: the index of the next free entry.
    var place: Int
  }

  private static var shortKey: UInt32 { 48 }

  private var lines: UnsafeMutablePointer<Line>
  private(set) var entries: UnsafeMutablePointer<Entry>
  private(set) var capacity = 16
  private(set) var count = 0
  /// How many entries from the first one on are initialised. The entries after them are not.
  private(set) var used = 0
  private var firstFree = -1
  /// The hash table; it has twice as many slots as the capacity. An empty slot is 0. Any other slot has the low half of
  /// a key's hash in its upper half, and the entry's index + 1 in its lower half. The low bits of the hash select the
  /// slot.
  private var slots: UnsafeMutablePointer<UInt64>
  private var mask = 31

  init() {
    lines = TokenTable.emptyLines(16)
    entries = UnsafeMutablePointer.allocate(capacity: 16)
    slots = TokenTable.emptySlots(32)
  }

  /// Frees the memory.
  func free() {
    for index in 0..<used where lines[index].token != nil { lines[index].longKey?.deallocate() }
    lines.deinitialize(count: used)
    UnsafeMutableRawPointer(lines).deallocate()
    entries.deallocate()
    slots.deallocate()
  }

  /// nil: the entry is free.
  func token(_ index: Int) -> Secret? { lines[index].token }

  mutating func setToken(_ index: Int, _ token: Secret) { lines[index].token = token }

  func find(_ key: UnsafeBufferPointer<UInt8>, _ hash: UInt64) -> Int? {
    guard let base = key.baseAddress, let keyCount = UInt32(exactly: key.count) else { return nil }
    let tag = UInt32(truncatingIfNeeded: hash)
    let (slots, lines, mask) = (slots, lines, mask)
    var at = Int(tag) & mask
    while true {
      let slot = slots[at]
      if slot == 0 { return nil }
      if UInt32(truncatingIfNeeded: slot >> 32) == tag {
        let index = TokenTable.index(slot)
        if lines[index].keyCount == keyCount && TokenTable.holds(&lines[index], base) { return index }
      }
      at = (at + 1) & mask
    }
  }

  /// Returns whether the entry's key equals the key at `base`, which has the same length.
  private static func holds(_ line: inout Line, _ base: UnsafePointer<UInt8>) -> Bool {
    let count = Int(line.keyCount)
    if let key = line.longKey { return sameBytes(UnsafeRawPointer(key), UnsafeRawPointer(base), count: count) }
    return withUnsafeBytes(of: &line.key) { bytes in
      bytes.baseAddress.map { sameBytes($0, UnsafeRawPointer(base), count: count) } ?? false
    }
  }

  /// Inserts a key that is not in the table. Returns nil if the table is full or the key too long.
  mutating func add(_ key: UnsafeBufferPointer<UInt8>, _ hash: UInt64, _ value: Value) -> Int? {
    guard let keyCount = UInt32(exactly: key.count) else { return nil }
    if firstFree < 0 && used == capacity {
      guard capacity < 1 << 29 else { return nil }
      grow()
    }
    var line = Line(token: value.token, keyCount: keyCount, tag: UInt32(truncatingIfNeeded: hash))
    if keyCount > TokenTable.shortKey {
      let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: key.count)
      for index in 0..<key.count { copy[index] = key[index] }
      line.key.0 = UInt64(UInt(bitPattern: copy))
    } else {
      withUnsafeMutableBytes(of: &line.key) { for index in 0..<key.count { $0[index] = key[index] } }
    }
    let entry = Entry(serial: value.serial, order: value.serial, setAt: value.setAt, place: -1)
    let index: Int
    if firstFree >= 0 {
      index = firstFree
      firstFree = entries[index].place
      lines[index] = line
      entries[index] = entry
    } else {
      index = used
      used += 1
      (lines + index).initialize(to: line)
      (entries + index).initialize(to: entry)
    }
    count += 1
    link(index)
    return index
  }

  mutating func remove(_ index: Int) {
    unlink(index)
    lines[index].longKey?.deallocate()
    lines[index].token = nil
    entries[index].place = firstFree
    firstFree = index
    count -= 1
  }

  private static func index(_ slot: UInt64) -> Int { Int(slot & 0xFFFF_FFFF) - 1 }

  private static func emptyLines(_ count: Int) -> UnsafeMutablePointer<Line> {
    UnsafeMutableRawPointer.allocate(byteCount: count * MemoryLayout<Line>.stride, alignment: 64).bindMemory(
      to: Line.self, capacity: count)
  }

  private static func emptySlots(_ count: Int) -> UnsafeMutablePointer<UInt64> {
    let slots = UnsafeMutablePointer<UInt64>.allocate(capacity: count)
    slots.initialize(repeating: 0, count: count)
    return slots
  }

  private func link(_ index: Int) {
    let tag = lines[index].tag
    var at = Int(tag) & mask
    while slots[at] != 0 { at = (at + 1) & mask }
    slots[at] = UInt64(tag) << 32 | UInt64(index + 1)
  }

  /// Empties the slot of an entry. Moves those later entries into the gap that a look-up would no longer reach.
  private func unlink(_ index: Int) {
    var gap = Int(lines[index].tag) & mask
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
    let moreLines = TokenTable.emptyLines(2 * capacity)
    moreLines.moveInitialize(from: lines, count: used)
    UnsafeMutableRawPointer(lines).deallocate()
    lines = moreLines
    let moreEntries = UnsafeMutablePointer<Entry>.allocate(capacity: 2 * capacity)
    moreEntries.moveInitialize(from: entries, count: used)
    entries.deallocate()
    entries = moreEntries
    capacity *= 2
    slots.deallocate()
    slots = TokenTable.emptySlots(2 * capacity)
    mask = 2 * capacity - 1
    for index in 0..<used { link(index) }
  }
}
