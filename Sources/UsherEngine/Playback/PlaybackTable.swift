internal import CPlatform
internal import UsherCore

/// Finds the playbacks of a context by their numbers, and the playbacks that use a token map also by their content.
/// Only the I/O thread uses this table.
struct PlaybackTable {
  private var entries = IDTable<PlaybackEntry>()
  /// The number of the newest playback of each content, by the hash of the content. Each playback's entry has the
  /// number of the next older playback.
  private var newest = IDTable<PlaybackID>()
  private let hash: ByteHash

  init() {
    var seed: UInt64 = 0
    platform_random_bytes(&seed, MemoryLayout<UInt64>.size)
    hash = ByteHash(seed: seed)
  }

  var count: Int { entries.count }
  /// The numbers of the playbacks, oldest first.
  var sortedIDs: [PlaybackID] { entries.sortedIDs }

  subscript(id: PlaybackID) -> PlaybackEntry? { entries[id] }

  mutating func insert(_ entry: PlaybackEntry) {
    entries[entry.id] = entry
    link(entry)
  }

  /// Removes a playback.
  /// - Returns: false if the table does not have this playback.
  mutating func remove(_ entry: PlaybackEntry) -> Bool {
    guard entries.remove(entry.id) != nil else { return false }
    unlink(entry)
    return true
  }

  mutating func removeAll() {
    entries = IDTable()
    newest = IDTable()
  }

  /// Sets the content of a playback; does nothing if the playback has a content already.
  mutating func setContent(_ id: [UInt8], of entry: PlaybackEntry) {
    guard entry.contentID.isEmpty else { return }
    entry.contentID = id
    if entries[entry.id] != nil { link(entry) }
  }

  /// The playbacks of this content that use the delegate's token map, oldest first.
  func playing(_ id: [UInt8], _ delegate: LicenseDelegate) -> [PlaybackID] {
    var found: [PlaybackID] = []
    var next = newest[key(id)] ?? 0
    while let entry = entries[next] {
      if entry.delegate === delegate, entry.contentID == id { found.append(next) }
      next = entry.older
    }
    return found.sorted()
  }

  private func key(_ id: [UInt8]) -> UInt64 { id.withUnsafeBufferPointer { hash.value(of: $0) } | 1 }

  private mutating func link(_ entry: PlaybackEntry) {
    guard entry.delegate.tokenMap != nil, !entry.contentID.isEmpty else { return }
    let key = key(entry.contentID)
    entry.older = newest[key] ?? 0
    entries[entry.older]?.newer = entry.id
    newest[key] = entry.id
  }

  private mutating func unlink(_ entry: PlaybackEntry) {
    guard entry.delegate.tokenMap != nil, !entry.contentID.isEmpty else { return }
    entries[entry.older]?.newer = entry.newer
    if entry.newer != 0 {
      entries[entry.newer]?.older = entry.older
    } else {
      newest[key(entry.contentID)] = entry.older == 0 ? nil : entry.older
    }
    (entry.older, entry.newer) = (0, 0)
  }
}
