/// Content tokens by content id, for hosts that play several streams. A playback pins its entry while it plays, so that
/// the map does not prune the entry (remove it to make room). The owner of the map holds a lock while it calls the map,
/// and passes the present time to the map. A look-up allocates no memory; the map uses freed entries again.
///
/// This is not a Dictionary, because a Dictionary is slower. `Tests/measure/token-map` builds a variant with Dictionary
/// and Array: look-ups take 2 to 6 times as long, setting a token takes 6 to 10 times as long, and the program is 4 kB
/// larger.
package final class TokenMap {
  package enum SetResult: Equatable, Sendable {
    case added
    /// The token was set. The map was full, so it removed the oldest of the entries that have no pin.
    case addedByPruning
    case replaced
    /// The token was not set: the map has as many entries as `bound` allows, and all are pinned.
    case full
    /// The content id is empty or longer than `mostKeyBytes`.
    case badKey
  }

  /// The pin of one playback on an entry of the map. It becomes invalid when the map removes the entry.
  package struct Pin: Equatable, Sendable {
    fileprivate let index: UInt32
    fileprivate let serial: UInt64
  }

  package static var mostKeyBytes: Int { 65_536 }

  private let hash: ByteHash
  private let bound: Int?
  private let timeToLive: Milliseconds?
  private var table: TokenTable
  private var order: OldestFirst
  private var lastSerial: UInt64 = 0

  /// - Parameters:
  ///   - bound: the largest number of entries.
  ///   - timeToLive: the map removes an entry this long after it was set, unless the entry is pinned.
  ///   - seed: random, so that an attacker cannot choose content ids that collide.
  package init(bound: Int? = nil, timeToLive: Milliseconds? = nil, seed: UInt64) {
    hash = ByteHash(seed: seed)
    self.bound = bound
    self.timeToLive = timeToLive
    table = TokenTable()
    order = OldestFirst()
  }

  deinit { table.free() }

  package func count(now: Milliseconds) -> Int {
    dropExpired(now)
    return table.count
  }

  /// The number of entries for which memory is allocated. Only `clear()` makes this number smaller.
  package var capacity: Int { table.capacity }

  package func get(_ key: UnsafeBufferPointer<UInt8>, now: Milliseconds) -> Secret? {
    guard let index = table.find(key, hash.value(of: key)), !isExpired(index, now) else { return nil }
    return table.token(index)
  }

  /// Sets the token of a content identifier. If the map already has an entry for `key`, this entry gets the new token,
  /// keeps its pins, and becomes the newest entry.
  package func set(_ key: UnsafeBufferPointer<UInt8>, _ token: Secret, now: Milliseconds) -> SetResult {
    guard !key.isEmpty, key.count <= TokenMap.mostKeyBytes else { return .badKey }
    dropExpired(now)
    let hashed = hash.value(of: key)
    lastSerial &+= 1
    if let index = table.find(key, hashed) {
      table.setToken(index, token)
      table.entries[index].setAt = now
      table.entries[index].order = lastSerial
      if table.entries[index].pins == 0 { order.moved(index, in: table.entries) }
      return .replaced
    }
    var result = SetResult.added
    if let bound, table.count >= bound {
      guard bound > 0, let oldest = order.first else { return .full }
      drop(oldest)
      result = .addedByPruning
    }
    guard let index = table.add(key, hashed, TokenTable.Value(token: token, serial: lastSerial, setAt: now)) else {
      return .full
    }
    order.add(index, in: table.entries)
    return result
  }

  /// Removes an entry. A playback that pinned the entry keeps its token.
  /// - Returns: false if there was no entry.
  package func remove(_ key: UnsafeBufferPointer<UInt8>, now: Milliseconds) -> Bool {
    dropExpired(now)
    guard let index = table.find(key, hash.value(of: key)) else { return false }
    drop(index)
    return true
  }

  package func clear() {
    table.free()
    table = TokenTable()
    order = OldestFirst()
  }

  /// Pins an entry until `unpin`; returns nil if the map has no entry for this content.
  package func pin(_ key: UnsafeBufferPointer<UInt8>, now: Milliseconds) -> Pin? {
    guard let index = table.find(key, hash.value(of: key)), !isExpired(index, now), table.entries[index].pins < .max
    else { return nil }
    if table.entries[index].pins == 0 { order.remove(index, in: table.entries) }
    table.entries[index].pins += 1
    return Pin(index: UInt32(truncatingIfNeeded: index), serial: table.entries[index].serial)
  }

  /// Ends a pin. Call this method once for each pin. If the entry was removed meanwhile, the call does nothing.
  package func unpin(_ pin: Pin) {
    guard let index = entry(of: pin), table.entries[index].pins > 0 else { return }
    table.entries[index].pins -= 1
    if table.entries[index].pins == 0 { order.add(index, in: table.entries) }
  }

  /// Returns the newest token of a pinned entry; nil if the entry was removed.
  package func token(of pin: Pin) -> Secret? { entry(of: pin).flatMap { table.token($0) } }

  private func entry(of pin: Pin) -> Int? {
    let index = Int(pin.index)
    guard index < table.used, table.token(index) != nil, table.entries[index].serial == pin.serial else { return nil }
    return index
  }

  private func isExpired(_ index: Int, _ now: Milliseconds) -> Bool {
    guard let timeToLive else { return false }
    return table.entries[index].pins == 0 && now.since(table.entries[index].setAt) >= timeToLive
  }

  private func dropExpired(_ now: Milliseconds) {
    while timeToLive != nil, let oldest = order.first, isExpired(oldest, now) { drop(oldest) }
  }

  private func drop(_ index: Int) {
    if table.entries[index].pins == 0 { order.remove(index, in: table.entries) }
    table.remove(index)
  }
}
