internal import CPlatform
internal import UsherCore

/// The addresses of the servers, and the requests that wait for an address.
///
/// Without this table libcurl would look up the name for each new connection in a separate thread, and could not end
/// these threads while the name server does not answer. The table looks up a name in one thread at a time (two after
/// the network changed), however many requests wait for it. The table keeps the addresses. If they are older than
/// `maxAge`, the next request still uses them while the table looks the name up again. So a request waits for the name
/// server only while no address is known.
struct NameTable {
  /// A request that waits for the addresses of its host.
  final class Waiting {
    let id: TransferID
    let request: HTTPRequest
    let isFresh: Bool
    /// When the request has waited too long, in monotonic milliseconds.
    let deadline: Int64
    /// The addresses that the lookup found; nil: it failed, or has not ended.
    fileprivate(set) var addresses: [UInt8]?

    init(id: TransferID, request: HTTPRequest, isFresh: Bool, deadline: Int64) {
      self.id = id
      self.request = request
      self.isFresh = isFresh
      self.deadline = deadline
    }
  }

  private final class Entry {
    let name: HostAndPort
    /// The addresses as CURLOPT_RESOLVE reads them: "host:port:address,address", NUL-terminated; nil: none is known.
    var line: [UInt8]?
    /// When the lookup that found `line` began, in monotonic milliseconds. If the network has changed since then, this
    /// is an instant longer ago than `maxAge`, so that the next request begins another lookup.
    var lineAskedAt: Int64 = 0
    /// Whether a lookup has ever found addresses of the name.
    var wasFound = false
    /// Until this instant a new lookup of the name counts as slow, because the lookup before it failed or took long. 0:
    /// the name does not count as slow.
    var slowUntil: Int64 = 0
    /// The requests that wait for the addresses, oldest first.
    var waiting: [Waiting] = []

    init(name: HostAndPort) { self.name = name }
  }

  enum Answer {
    /// The addresses, as CURLOPT_RESOLVE reads them.
    case ready([UInt8])
    /// No address is known yet: the caller passes the request to `wait`.
    case unknown
    /// No address is known, and the system has no thread for the lookup.
    case noThread
  }

  private static var maxAge: Int64 { 60_000 }
  /// `lookupsMax`: how many threads of a context look names up at the same time. `newMost`: how many threads may be in
  /// use when the table begins the lookup of a name that no lookup has ever found. So if many such names get no answer,
  /// threads stay free for the server of a running session, whose name was found before. `slowMost`: how many threads
  /// look up names that count as slow. `quickMost`: how many threads look up other names. A name for which no thread is
  /// free waits. So names whose last lookup failed or was slow do not delay the lookups of other names.
  private static var lookupsMax: Int { 32 }
  private static var newMost: Int { 24 }
  private static var slowMost: Int { 8 }
  private static var quickMost: Int { 8 }
  /// A time in milliseconds: a lookup that takes longer than this counts as slow.
  private static var slowTime: Int64 { 1000 }
  /// How many milliseconds a name counts as slow after one of its lookups was slow or failed.
  private static var slowPenalty: Int64 { 5000 }
  /// The largest number of names that the table remembers although no request waits for them.
  private static var unusedMost: Int { 64 }

  private var entries: [Entry] = []
  /// The lookups that have a thread.
  private var running: [NameLookup] = []
  private var generation: UInt32 = 0
  /// A number that changes when two handles may have given libcurl different addresses of a host. libcurl has only one
  /// list of addresses for a host, so each handle then gives its addresses again.
  var version: UInt32 = 0
  /// Starts the thread of a lookup; false if the system has none.
  private let start: (NameLookup) -> Bool
  private let inbox: NameInbox

  init(wakeFD: Int32, start: @escaping (NameLookup) -> Bool = { $0.start() }) {
    inbox = NameInbox(wakeFD: wakeFD)
    self.start = start
  }

  /// Finds the addresses of a host, and begins a lookup if the addresses are unknown or old.
  mutating func find(_ name: HostAndPort, now: Int64) -> Answer {
    let entry = entry(name)
    let isCurrent = entry.line != nil && now &- entry.lineAskedAt <= Self.maxAge
    if !isCurrent, !isAsked(entry), !ask(entry, now: now), entry.line == nil { return .noThread }
    return entry.line.map { .ready($0) } ?? .unknown
  }

  /// The addresses of a host, even old ones; nil: the table knows none.
  func known(_ name: HostAndPort) -> [UInt8]? { entries.first { $0.name == name }?.line }

  func wait(_ name: HostAndPort, _ waiting: Waiting) {
    entries.first { $0.name == name }?.waiting.append(waiting)
  }

  /// Forgets a request that was cancelled.
  func withdraw(_ id: TransferID) {
    for entry in entries {
      if let index = entry.waiting.firstIndex(where: { $0.id == id }) { entry.waiting.remove(at: index) }
    }
  }

  /// When the transport must call `takeOverdue` next; nil: no request waits. At this instant the first waiting request
  /// reaches its time limit, or a waiting name may get a thread. A waiting name may get a thread when a running lookup
  /// begins to count as slow, or when the name itself no longer counts as slow.
  var nextDeadline: Int64? {
    var next: Int64?
    for entry in entries {
      guard let first = entry.waiting.first else { continue }
      next = min(next ?? first.deadline, first.deadline)
      if isAsked(entry) { continue }
      if entry.slowUntil != 0 { next = min(next ?? .max, entry.slowUntil) }
      for lookup in running where !lookup.isSlow { next = min(next ?? .max, lookup.startedAt &+ Self.slowTime) }
    }
    return next
  }

  /// The requests that have waited too long, or whose lookup gets no thread from the system.
  mutating func takeOverdue(now: Int64) -> [Waiting] {
    var overdue = askWaiting(now: now)
    for entry in entries {
      while let first = entry.waiting.first, first.deadline <= now { overdue.append(entry.waiting.removeFirst()) }
    }
    return overdue
  }

  /// Takes the lookups that have ended, and returns the requests that waited for them. A request has no addresses if
  /// its lookup failed.
  mutating func takeAnswered(now: Int64) -> [Waiting] {
    var ended: [Waiting] = []
    for lookup in inbox.takeAll() {
      running.removeAll { $0 === lookup }
      guard let entry = entries.first(where: { $0.name == lookup.name }) else { continue }
      // The network may have changed since the lookup began. Then a failure of the lookup does not count. If the lookup
      // found addresses, the table uses them only if it knows no others, and the next request begins another lookup.
      let isCurrent = lookup.generation == generation
      let hasFailed = lookup.addresses.isEmpty
      if hasFailed ? !isCurrent : !isCurrent && entry.line != nil { continue }
      if !hasFailed {
        entry.line = entry.name.text + [0x3A] + lookup.addresses + [0]
        entry.wasFound = true
        version &+= 1
        entry.lineAskedAt = isCurrent ? lookup.startedAt : now &- Self.maxAge &- 1
      }
      entry.slowUntil = hasFailed || now &- lookup.startedAt >= Self.slowTime ? now &+ Self.slowPenalty : 0
      for waiting in entry.waiting { waiting.addresses = entry.line }
      ended += entry.waiting
      entry.waiting = []
    }
    return ended + askWaiting(now: now)
  }

  /// Begins the lookups that waited for a thread.
  /// - Returns: the requests whose lookup gets no thread from the system.
  private mutating func askWaiting(now: Int64) -> [Waiting] {
    var failed: [Waiting] = []
    for entry in entries where !entry.waiting.isEmpty && !isAsked(entry) && !ask(entry, now: now) {
      failed += entry.waiting
      entry.waiting = []
    }
    return failed
  }

  /// Whether a lookup of the name is running that began after the last change of the network.
  private func isAsked(_ entry: Entry) -> Bool {
    running.contains { $0.generation == generation && $0.name == entry.name }
  }

  /// Called when the network changed: forgets all addresses, and begins the needed lookups again.
  mutating func forgetAll(now: Int64) {
    generation &+= 1
    for entry in entries {
      entry.line = nil
      if !entry.waiting.isEmpty { _ = ask(entry, now: now) }
    }
  }

  /// Called when the I/O thread ends: drops all later answers.
  func close() { inbox.close() }

  /// Begins a lookup. If too many lookups are under way, the table begins this one later.
  /// - Returns: false if the system has no thread for the lookup.
  private mutating func ask(_ entry: Entry, now: Int64) -> Bool {
    var (earlier, slow) = (0, 0)
    for lookup in running {
      if now &- lookup.startedAt >= Self.slowTime { lookup.isSlow = true }
      if lookup.isSlow { slow += 1 }
      if lookup.name == entry.name { earlier += 1 }
    }
    if entry.slowUntil <= now { entry.slowUntil = 0 }
    let isSlow = earlier > 0 || entry.slowUntil != 0
    // If two lookups of the name that began before the network changed still run, the next lookup waits until one of
    // them has ended.
    guard earlier < 2, running.count < (entry.wasFound ? Self.lookupsMax : Self.newMost),
      isSlow ? slow < Self.slowMost : running.count &- slow < Self.quickMost
    else { return true }
    let lookup = NameLookup(name: entry.name, generation: generation, now: now, isSlow: isSlow, inbox: inbox)
    guard start(lookup) else { return false }
    running.append(lookup)
    return true
  }

  private mutating func entry(_ name: HostAndPort) -> Entry {
    if let entry = entries.first(where: { $0.name == name }) { return entry }
    if entries.count > Self.unusedMost, let unused = entries.firstIndex(where: { $0.waiting.isEmpty }) {
      entries.remove(at: unused)
    }
    let entry = Entry(name: name)
    entries.append(entry)
    return entry
  }
}
