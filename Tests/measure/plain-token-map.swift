// The token map written with Dictionary and Array, with the same interface as the library's map. `token-map` compares
// the two.

/// Content tokens by content id, for hosts that play several streams. A playback pins the entry that it uses; the map
/// never removes pinned entries. The map has no lock and no clock: the code that uses the map must have them.
package final class TokenMap {
  package enum SetResult: Equatable, Sendable {
    case added
    /// The map was full: it removed the oldest entry that is not pinned.
    case addedByPruning
    case replaced
    /// The map is full, and every entry is pinned.
    case full
    /// The key is empty, or longer than `mostKeyBytes`.
    case badKey
  }

  /// The pin of a playback on an entry. It becomes stale when the map removes the entry.
  package struct Pin: Equatable, Sendable {
    fileprivate let key: [UInt8]
    fileprivate let serial: UInt64
  }

  private struct Entry {
    /// A number that no earlier entry had. The pin of an entry has the same number, so the map recognises a pin on an
    /// entry that it has removed.
    let serial: UInt64
    var token: Secret
    var setAt: Milliseconds
    /// A number that the map gives at each call of `set`: the entry with the lowest number is the oldest.
    var order: UInt64
    var pins: UInt32 = 0
  }

  /// An entry that the map may remove. The record is out of date if the entry was set again, pinned or removed after
  /// the record was made.
  private struct Candidate {
    let order: UInt64
    let key: [UInt8]
  }

  package static var mostKeyBytes: Int { 65_536 }

  private let bound: Int?
  private let timeToLive: Milliseconds?
  private var entries: [[UInt8]: Entry] = [:]
  /// A heap, oldest first.
  private var candidates: [Candidate] = []
  private var lastOrder: UInt64 = 0

  package init(bound: Int? = nil, timeToLive: Milliseconds? = nil, seed: UInt64) {
    self.bound = bound
    self.timeToLive = timeToLive
  }

  package func count(now: Milliseconds) -> Int {
    dropExpired(now)
    return entries.count
  }

  package var capacity: Int { entries.capacity }

  package func get(_ key: UnsafeBufferPointer<UInt8>, now: Milliseconds) -> Secret? {
    guard let entry = entries[Array(key)], !isExpired(entry, now) else { return nil }
    return entry.token
  }

  package func get(_ key: [UInt8], now: Milliseconds) -> Secret? {
    guard let entry = entries[key], !isExpired(entry, now) else { return nil }
    return entry.token
  }

  package func set(_ key: UnsafeBufferPointer<UInt8>, _ token: Secret, now: Milliseconds) -> SetResult {
    guard !key.isEmpty, key.count <= TokenMap.mostKeyBytes else { return .badKey }
    dropExpired(now)
    let key = Array(key)
    lastOrder &+= 1
    if let index = entries.index(forKey: key) {
      entries.values[index].token = token
      entries.values[index].setAt = now
      entries.values[index].order = lastOrder
      if entries.values[index].pins == 0 { addCandidate(key, lastOrder) }
      return .replaced
    }
    var result = SetResult.added
    if let bound, entries.count >= bound {
      guard let oldest = oldest() else { return .full }
      entries[oldest.key] = nil
      result = .addedByPruning
    }
    entries[key] = Entry(serial: lastOrder, token: token, setAt: now, order: lastOrder)
    addCandidate(key, lastOrder)
    return result
  }

  package func remove(_ key: UnsafeBufferPointer<UInt8>, now: Milliseconds) -> Bool {
    dropExpired(now)
    return entries.removeValue(forKey: Array(key)) != nil
  }

  package func clear() {
    entries = [:]
    candidates = []
  }

  package func pin(_ key: UnsafeBufferPointer<UInt8>, now: Milliseconds) -> Pin? {
    let key = Array(key)
    guard let index = entries.index(forKey: key), !isExpired(entries.values[index], now),
      entries.values[index].pins < .max
    else { return nil }
    entries.values[index].pins += 1
    return Pin(key: key, serial: entries.values[index].serial)
  }

  package func unpin(_ pin: Pin) {
    guard let index = entries.index(forKey: pin.key), entries.values[index].serial == pin.serial,
      entries.values[index].pins > 0
    else { return }
    entries.values[index].pins -= 1
    if entries.values[index].pins == 0 { addCandidate(pin.key, entries.values[index].order) }
  }

  package func token(of pin: Pin) -> Secret? {
    guard let entry = entries[pin.key], entry.serial == pin.serial else { return nil }
    return entry.token
  }

  private func isExpired(_ entry: Entry, _ now: Milliseconds) -> Bool {
    guard let timeToLive else { return false }
    return entry.pins == 0 && now.since(entry.setAt) >= timeToLive
  }

  private func dropExpired(_ now: Milliseconds) {
    while timeToLive != nil, let oldest = oldest(), let entry = entries[oldest.key], isExpired(entry, now) {
      entries[oldest.key] = nil
    }
  }

  /// Returns the oldest entry that is not pinned; nil if there is none.
  private func oldest() -> Candidate? {
    while let first = candidates.first {
      if isValid(first) { return first }
      removeFirstCandidate()
    }
    return nil
  }

  private func isValid(_ candidate: Candidate) -> Bool {
    guard let entry = entries[candidate.key] else { return false }
    return entry.pins == 0 && entry.order == candidate.order
  }

  private func addCandidate(_ key: [UInt8], _ order: UInt64) {
    if candidates.count > 64, candidates.count > 2 * entries.count {
      candidates = candidates.filter { isValid($0) }.sorted { $0.order < $1.order }
    }
    candidates.append(Candidate(order: order, key: key))
    var child = candidates.count - 1
    while child > 0, candidates[child].order < candidates[(child - 1) / 2].order {
      candidates.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  private func removeFirstCandidate() {
    guard let last = candidates.popLast(), !candidates.isEmpty else { return }
    candidates[0] = last
    var parent = 0
    while true {
      var oldest = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < candidates.count && candidates[child].order < candidates[oldest].order { oldest = child }
      if oldest == parent { return }
      candidates.swapAt(parent, oldest)
      parent = oldest
    }
  }
}
