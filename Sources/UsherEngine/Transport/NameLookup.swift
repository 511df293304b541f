internal import CPlatform

/// One lookup of a host name, on a separate thread. If the name server does not answer, the system's resolver may keep
/// this thread busy for a long time, so no other thread waits for it.
final class NameLookup {
  let name: HostAndPort
  /// The value of `NameTable.generation` when the lookup began.
  let generation: UInt32
  /// When the lookup began, in monotonic milliseconds.
  let startedAt: Int64
  /// Whether the lookup counts as slow; only `NameTable` uses this property.
  var isSlow: Bool
  /// The addresses as text, separated by commas; empty if the lookup failed. Set before the lookup is in the inbox.
  private(set) var addresses: [UInt8] = []
  private let inbox: NameInbox

  init(name: HostAndPort, generation: UInt32, now: Int64, isSlow: Bool, inbox: NameInbox) {
    self.name = name
    self.generation = generation
    startedAt = now
    self.isSlow = isSlow
    self.inbox = inbox
  }

  /// Starts the thread of the lookup.
  /// - Returns: false if the system has no thread.
  func start() -> Bool {
    let me = Unmanaged.passRetained(self)
    if platform_thread_start(runLookup, me.toOpaque(), 1, nil) == 0 { return true }
    me.release()
    return false
  }

  fileprivate func run() {
    let found = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 512) { text -> [UInt8] in
      let count = name.host.withUnsafeBytes { platform_look_up($0.baseAddress, text.baseAddress, UInt64(text.count)) }
      return Array(text.prefix(Int(count)))
    }
    end(found)
  }

  /// Any thread: ends the lookup.
  func end(_ addresses: [UInt8]) {
    self.addresses = addresses
    inbox.put(self)
  }
}

private func runLookup(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  beginThread("usher-lookup")
  if let argument { Unmanaged<NameLookup>.fromOpaque(argument).takeRetainedValue().run() }
  return nil
}

/// Passes each lookup to the I/O thread when the lookup has ended.
final class NameInbox {
  private let lock = Monitor()
  private var ended: [NameLookup] = []
  /// The eventfd of the I/O thread; nil when that thread has ended.
  private var wakeFD: Int32?

  init(wakeFD: Int32) { self.wakeFD = wakeFD }

  /// Any thread.
  func put(_ lookup: NameLookup) {
    lock.locked {
      guard let wakeFD else { return }
      ended.append(lookup)
      platform_eventfd_signal(wakeFD)
    }
  }

  func takeAll() -> [NameLookup] {
    lock.locked {
      defer { ended = [] }
      return ended
    }
  }

  /// Called before the eventfd is closed: drops all later answers.
  func close() { lock.locked { wakeFD = nil } }
}
