internal import CPlatform
internal import UsherCore

/// The addresses of the servers, and the requests that wait for an address.
///
/// Without this table libcurl would look up the name for each new connection in a separate thread, and could not end
/// these threads while the name server does not answer. The table uses one thread at a time for a name, for all
/// requests to it. It keeps the addresses. If they are older than `maxAge`, the next request still uses them while the
/// table looks the name up again. So a request waits for the name server only while no address is known.
struct NameTable {
  /// A request that waits for the addresses of its host.
  final class Waiting {
    let id: TransferID
    let request: HTTPRequest
    let isFresh: Bool
    /// In monotonic milliseconds.
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
    /// When the last lookup began, in monotonic milliseconds.
    var askedAt: Int64 = 0
    var isAsked = false
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
  /// How many threads of a context look names up at the same time. Further names wait until one of these threads is
  /// free.
  private static var lookupsMax: Int { 8 }

  private var entries: [Entry] = []
  private var lookups = 0
  private var generation: UInt32 = 0
  private let inbox: NameInbox

  init(wakeFD: Int32) { inbox = NameInbox(wakeFD: wakeFD) }

  /// Finds the addresses of a host, and begins a lookup if they are unknown or old.
  mutating func find(_ name: HostAndPort, now: Int64) -> Answer {
    let entry = entry(name)
    let isCurrent = entry.line != nil && now &- entry.askedAt <= Self.maxAge
    if !isCurrent, !entry.isAsked, !ask(entry, now: now), entry.line == nil { return .noThread }
    return entry.line.map { .ready($0) } ?? .unknown
  }

  func wait(_ name: HostAndPort, _ waiting: Waiting) {
    entries.first { $0.name == name }?.waiting.append(waiting)
  }

  /// Forgets a request that was cancelled.
  func withdraw(_ id: TransferID) {
    for entry in entries {
      if let index = entry.waiting.firstIndex(where: { $0.id == id }) { entry.waiting.remove(at: index) }
    }
  }

  /// When the first waiting request reaches its time limit; nil: no request waits.
  var nextDeadline: Int64? {
    var next: Int64?
    for entry in entries { if let first = entry.waiting.first { next = min(next ?? first.deadline, first.deadline) } }
    return next
  }

  /// The requests that have waited too long.
  func takeOverdue(now: Int64) -> [Waiting] {
    var overdue: [Waiting] = []
    for entry in entries {
      while let first = entry.waiting.first, first.deadline <= now { overdue.append(entry.waiting.removeFirst()) }
    }
    return overdue
  }

  /// Takes the lookups that have ended, and returns the requests that waited for them. A request has no addresses if
  /// its lookup failed.
  mutating func takeAnswered(now: Int64) -> [Waiting] {
    var ended: [Waiting] = []
    for answer in inbox.takeAll() {
      lookups -= 1
      // If the network has changed since the lookup began, the answer does not count. Another lookup of this name may
      // be running.
      guard answer.generation == generation, let entry = entries.first(where: { $0.name == answer.name }) else {
        continue
      }
      entry.isAsked = false
      if !answer.addresses.isEmpty { entry.line = answer.name.text + [0x3A] + answer.addresses + [0] }
      for waiting in entry.waiting { waiting.addresses = entry.line }
      ended += entry.waiting
      entry.waiting = []
    }
    // A thread is free now: begin the lookups that waited for a thread.
    for entry in entries where !entry.isAsked && !entry.waiting.isEmpty && !ask(entry, now: now) {
      ended += entry.waiting
      entry.waiting = []
    }
    return ended
  }

  /// Called when the network changed: forgets all addresses, and begins the needed lookups again.
  mutating func forgetAll(now: Int64) {
    generation &+= 1
    for entry in entries {
      entry.line = nil
      entry.isAsked = false
      if !entry.waiting.isEmpty { _ = ask(entry, now: now) }
    }
  }

  /// Called when the I/O thread ends: drops all later answers.
  func close() { inbox.close() }

  /// - Returns: false if the system has no thread. If too many lookups are under way, the name is looked up later.
  private mutating func ask(_ entry: Entry, now: Int64) -> Bool {
    guard lookups < Self.lookupsMax else { return true }
    let lookup = NameLookup(name: entry.name, generation: generation, inbox: inbox)
    guard lookup.start() else { return false }
    lookups += 1
    entry.isAsked = true
    entry.askedAt = now
    return true
  }

  private mutating func entry(_ name: HostAndPort) -> Entry {
    if let entry = entries.first(where: { $0.name == name }) { return entry }
    let entry = Entry(name: name)
    entries.append(entry)
    return entry
  }
}
