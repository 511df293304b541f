internal import CGuard
internal import UsherCore

/// Gives each playback that has a record a slot. A slot has room for two copies of the record, and for two updates of
/// it; this type says which of these the next write changes.
struct RecordSlots {
  /// One write of one copy.
  struct Write {
    let slot: Int
    /// The number of the write: each write to a slot, of a record or of an update, has a higher number than the write
    /// before it.
    let sequence: UInt64
    /// Which of the two copies of the slot the write changes: 0 or 1.
    var which: Int { Int(sequence & 1) }
    /// The number of the copy among the copies of all slots.
    var copy: Int { slot &* 2 &+ which }
    /// The next write of the slot; it changes the other copy.
    var next: Write { Write(slot: slot, sequence: sequence &+ 1) }
  }

  /// Where a record has its session token.
  struct TokenPlace {
    var start: UInt32 = 0
    /// The length of the token in bytes. 0: the place of the token is not known, so an update cannot replace the token.
    var count: UInt32 = 0
  }

  private struct State {
    var last: Write
    /// The sequence of the newest record; 0: there is none.
    var record: UInt64 = 0
    var token = TokenPlace()

    /// The next write of a record. This write never changes the copy with the newest record.
    var nextRecord: Write {
      let next = last.next
      return record != 0 && (next.sequence ^ record) & 1 == 0 ? next.next : next
    }
  }

  private var states = IDTable<State>()
  /// The newest write of each slot that was used before, and that no playback uses now. The next playback gets the slot
  /// at the end of this list.
  private var free: [Write] = []
  /// How many slots were ever used.
  private var usedCount = 0
  private let slotCount: Int

  init(count: Int) { slotCount = count }

  /// How many playbacks have a slot.
  var count: Int { states.count }
  /// The playbacks that have a slot.
  var sortedIDs: [PlaybackID] { states.sortedIDs }

  /// Returns the next write of a record for a playback; nil if the playback has no slot and none is free.
  mutating func nextRecord(of playback: PlaybackID) -> Write? {
    guard var state = states[playback] ?? take().map({ State(last: $0) }) else { return nil }
    state.last = state.nextRecord
    state.token = TokenPlace()
    states[playback] = state
    return state.last
  }

  /// Called when the last write that `nextRecord` has returned is complete. (If a write fails, the record before stays
  /// the newest one.)
  mutating func didWriteRecord(of playback: PlaybackID, token: TokenPlace) {
    guard var state = states[playback] else { return }
    state.record = state.last.sequence
    state.token = token
    states[playback] = state
  }

  /// Returns the next write of an update, and the update, which makes the record valid for `lifetime` from now. Returns
  /// nil if there is no record, or if the length of its token is not `count`.
  mutating func nextUpdate(
    of playback: PlaybackID, tokenCount count: Int, lifetime: Milliseconds
  ) -> (write: Write, update: usher_record_update)? {
    guard var state = states[playback], count > 0, Int(state.token.count) == count else { return nil }
    state.last = state.last.next
    states[playback] = state
    let end = RecoveryRecord.end(of: lifetime)
    let update = usher_record_update(
      record: state.record, expires_boot_ms: end.boot, expires_wall_ms: end.wall, token_at: state.token.start,
      token_size: state.token.count)
    return (state.last, update)
  }

  /// Called when the write of an update has failed, and may have damaged its copy. The next update is written to this
  /// copy again, because only the other copy may be whole.
  mutating func didFailUpdate(of playback: PlaybackID) {
    guard var state = states[playback] else { return }
    state.last = state.last.next
    states[playback] = state
  }

  /// Frees the slot of a playback.
  /// - Returns: the two writes that clear the slot: the first makes an empty record the newest one, the second clears
  ///   the copy that has the record now. nil if the playback has no slot.
  mutating func clear(_ playback: PlaybackID) -> (first: Write, second: Write)? {
    guard let state = states.remove(playback) else { return nil }
    let first = state.nextRecord
    let second = first.next
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
