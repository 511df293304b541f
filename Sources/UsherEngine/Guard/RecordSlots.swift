internal import UsherCore

/// Gives each playback that has a record a slot. A slot has room for two copies of the record; this type says which of
/// them the next write changes.
struct RecordSlots {
  /// One write of one copy.
  struct Write {
    let slot: Int
    /// Counts the writes of the slot. The writer changes the two copies of a slot in turn.
    let sequence: UInt64
    /// The number of the copy among all copies.
    var copy: Int { slot &* 2 &+ Int(sequence & 1) }
  }

  private var writes = IDTable<Write>()
  /// The newest write of each slot that was used before, and that no playback uses now. The next playback gets the slot
  /// at the end of this list.
  private var free: [Write] = []
  /// How many slots were ever used.
  private var usedCount = 0
  private let slotCount: Int

  init(count: Int) { slotCount = count }

  /// How many playbacks have a slot.
  var count: Int { writes.count }
  /// The playbacks that have a slot.
  var sortedIDs: [PlaybackID] { writes.sortedIDs }

  /// The last write for a playback; nil if it has no slot.
  func last(of playback: PlaybackID) -> Write? { writes[playback] }

  /// Returns the next write for a playback; nil if the playback has no slot and none is free.
  mutating func next(of playback: PlaybackID) -> Write? {
    guard let last = writes[playback] ?? take() else { return nil }
    let next = Write(slot: last.slot, sequence: last.sequence &+ 1)
    writes[playback] = next
    return next
  }

  /// Frees the slot of a playback.
  /// - Returns: the two writes that clear the slot: the first makes an empty record the newest one, the second removes
  ///   the old bytes. nil if the playback has no slot.
  mutating func clear(_ playback: PlaybackID) -> (first: Write, second: Write)? {
    guard let last = writes.remove(playback) else { return nil }
    let first = Write(slot: last.slot, sequence: last.sequence &+ 1)
    let second = Write(slot: last.slot, sequence: last.sequence &+ 2)
    free.append(second)
    return (first, second)
  }

  private mutating func take() -> Write? {
    if let last = free.popLast() { return last }
    guard usedCount < slotCount else { return nil }
    usedCount += 1
    return Write(slot: usedCount &- 1, sequence: 0)
  }
}
