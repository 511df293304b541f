internal import CPlatform

/// One lookup of a host name, on a separate thread that no other thread waits for: if the name server does not answer,
/// the system's resolver may keep this thread busy for a long time.
final class NameLookup {
  private let name: HostAndPort
  /// The value of `NameTable.generation` when the lookup began.
  private let generation: UInt32
  private let inbox: NameInbox

  init(name: HostAndPort, generation: UInt32, inbox: NameInbox) {
    self.name = name
    self.generation = generation
    self.inbox = inbox
  }

  /// - Returns: false if the system has no thread.
  func start() -> Bool {
    let me = Unmanaged.passRetained(self)
    if platform_thread_start(runLookup, me.toOpaque(), 1, nil) == 0 { return true }
    me.release()
    return false
  }

  fileprivate func run() {
    let addresses = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 512) { text -> [UInt8] in
      let count = name.host.withUnsafeBytes { platform_look_up($0.baseAddress, text.baseAddress, UInt64(text.count)) }
      return Array(text.prefix(Int(count)))
    }
    inbox.put(NameInbox.Answer(name: name, generation: generation, addresses: addresses))
  }
}

private func runLookup(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  beginThread("usher-lookup")
  if let argument { Unmanaged<NameLookup>.fromOpaque(argument).takeRetainedValue().run() }
  return nil
}

/// Passes the answers of lookups to the I/O thread.
final class NameInbox {
  final class Answer {
    let name: HostAndPort
    let generation: UInt32
    /// The addresses as text, separated by commas; empty if the lookup failed.
    let addresses: [UInt8]

    init(name: HostAndPort, generation: UInt32, addresses: [UInt8]) {
      self.name = name
      self.generation = generation
      self.addresses = addresses
    }
  }

  private let lock = Monitor()
  private var answers: [Answer] = []
  /// The eventfd of the I/O thread; nil when that thread has ended.
  private var wakeFD: Int32?

  init(wakeFD: Int32) { self.wakeFD = wakeFD }

  /// Any thread.
  func put(_ answer: Answer) {
    lock.locked {
      guard let wakeFD else { return }
      answers.append(answer)
      platform_eventfd_signal(wakeFD)
    }
  }

  func takeAll() -> [Answer] {
    lock.locked {
      defer { answers = [] }
      return answers
    }
  }

  /// Called before the eventfd is closed: drops all later answers.
  func close() { lock.locked { wakeFD = nil } }
}
