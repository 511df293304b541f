internal import CPlatform
package import UsherCore

/// A process that tears down the sessions of a context if the host dies: usher-guardian. It shares memory with this
/// process: the recovery records. The guardian acts only when this process has ended; until then the guardian waits.
///
/// `start` runs on the thread that makes the context; later only the I/O thread uses the object.
package final class Guardian {
  /// How many bytes one copy of a record may take. A copy has room for the longest header lines that the library
  /// accepts (64 kB), and for URL, addresses and cookies. The system gives memory only to the pages that a record uses.
  /// The size is no power of two: otherwise the first pages of all copies would share few entries of the processor's
  /// translation table (TLB).
  private static var copySize: Int { 33 * 4096 }
  private static var slotCount: Int { 4096 }
  private static var areaSize: Int { RecordArea.size(copySize: copySize, slotCount: slotCount) }
  private static var nanosecondsPerSecond: Int64 { 1_000_000_000 }
  /// The time after which `tend` looks again whether the first process of a new guardian has ended, in nanoseconds.
  private static var checkPeriod: Int64 { 50_000_000 }
  /// How many times at most the library starts a new guardian because a guardian has ended before the context. Before
  /// each start, the library waits one second.
  private static var restartsMax: Int { 5 }

  package let records: RecordArea
  private let memory: UnsafeMutableRawPointer
  private let descriptor: Int32
  private let path: [UInt8]
  /// This process's end of the channel to the guardian that was started last; negative: there is no guardian.
  private(set) var channel: Int32 = -1
  /// This process's end of the channel to the guardian before it, which ends when the last one runs; negative: there is
  /// none.
  private var before: Int32 = -1
  /// Whether the loop notices when the guardian ends, and then starts a new one.
  var isSupervised = false
  /// Whether the transport does not watch `channel` yet.
  private var isUnwatched = false
  /// The id of the guardian's first process, which ends as soon as the guardian runs; 0: this process has ended.
  private var process: Int32 = 0
  /// When this process was started, in nanoseconds of the boot time.
  private var startedAt: Int64 = 0
  /// Whether the I/O thread moved to another network namespace while the last guardian was starting, so that another
  /// guardian must start.
  private var mustRestart = false
  private var restarts = 0
  /// When `tend` has something to do, in nanoseconds of the boot time; nil: nothing.
  private(set) var tendAt: Int64?

  /// - Parameter path: NUL-terminated.
  private init(_ memory: UnsafeMutableRawPointer, _ descriptor: Int32, _ path: [UInt8]) {
    self.memory = memory
    self.descriptor = descriptor
    self.path = path
    records = RecordArea(
      memory: UnsafeMutableRawBufferPointer(start: memory, count: Self.areaSize), copySize: Self.copySize,
      slotCount: Self.slotCount)
  }

  deinit {
    end()
    platform_shared_memory_end(descriptor, memory, Self.areaSize)
  }

  /// Starts the guardian of a context.
  /// - Parameters:
  ///   - path: the program, NUL-terminated; nil: the program that was installed with the library.
  ///   - settings: the options of all requests of the context.
  package static func start(_ path: [UInt8]?, _ settings: TransportOptions) throws(UsherError) -> Guardian {
    let program = path ?? installedProgram()
    var memory: UnsafeMutableRawPointer?
    let descriptor = platform_shared_memory_new(areaSize, &memory)
    guard descriptor >= 0, let memory else { throw failure("memory for its records", platform_last_error()) }
    let guardian = Guardian(memory, descriptor, program)
    guard guardian.records.keepSettings({ settings.write(into: $0) }) else {
      throw UsherError(.invalidArgument, message: "guardian: the options are too long for its records")
    }
    if let failure = guardian.launch(waits: true) { throw failure }
    return guardian
  }

  private static func installedProgram() -> [UInt8] {
    var path = [UInt8](repeating: 0, count: Int(PATH_MAX))
    path.withUnsafeMutableBytes { text in
      "usher-guardian".withCString {
        _ = platform_find_beside_library($0, text.baseAddress?.assumingMemoryBound(to: CChar.self))
      }
    }
    return Array(path.prefix { $0 != 0 }) + [0]
  }

  // MARK: The process

  /// Starts the guardian.
  /// - Parameter waits: whether to wait until the guardian runs. Otherwise `tend` looks later whether the guardian
  ///   runs.
  /// - Returns: why the guardian does not run; nil if the guardian runs, or if this object does not know this yet.
  private func launch(waits: Bool) -> UsherError? {
    var newChannel: Int32 = -1
    let error = path.withUnsafeBytes {
      platform_guardian_start($0.baseAddress?.assumingMemoryBound(to: CChar.self), descriptor, &process, &newChannel)
    }
    guard error == 0 else { return Self.failure(programName, error) }
    channel = newChannel
    isUnwatched = true
    mustRestart = false
    startedAt = platform_boottime_ns()
    let failure = waits ? whyNotStarted(limit: PLATFORM_GUARDIAN_START_MS) : nil
    if process != 0 { tendAt = startedAt &+ Self.checkPeriod }
    return failure
  }

  /// Returns why the guardian has failed to start; nil if the guardian runs, or if its first process has not ended yet.
  /// The first process ends when the guardian runs. If the guardian has failed, the other end of the channel is closed.
  /// - Parameter limit: how long the function waits for the end of the first process, in milliseconds; then it kills
  ///   the process. Negative: the function does not wait, and kills nothing.
  private func whyNotStarted(limit: Int32) -> UsherError? {
    let result = platform_guardian_started(process, channel, limit)
    guard result != PLATFORM_GUARDIAN_STARTS else { return nil }
    process = 0
    guard result != PLATFORM_GUARDIAN_RUNS else { return nil }
    var line = LogLine("guardian: ")
    line.add(programName)
    switch result {
    case PLATFORM_GUARDIAN_ENDED: line.add(" has ended: it is not usher-guardian, or has failed")
    case 128 + SIGKILL: line.add(" was killed: it did not start within ten seconds, or the system killed it")
    default:
      line.add(
        result == 127 ? " cannot run: a library that it needs is missing; exit code " : " has failed; exit code ")
      line.add(UInt64(clamping: result))
    }
    return UsherError(.system, message: line.text())
  }

  private var programName: String { String(decoding: path.dropLast(), as: UTF8.self) }

  private static func failure(_ what: String, _ error: Int32) -> UsherError {
    var text = [UInt8](repeating: 0, count: 128)
    text.withUnsafeMutableBytes {
      platform_write_error_text(error, $0.baseAddress?.assumingMemoryBound(to: CChar.self))
    }
    var line = LogLine("guardian: ")
    line.add(what)
    line.add(": ")
    line.add(String(decoding: text.prefix { $0 != 0 }, as: UTF8.self))
    return UsherError(.system, message: line.text())
  }

  /// Returns the channel to a new guardian, which the caller must watch from now on; nil if there is no new guardian.
  func takeUnwatched() -> Int32? {
    guard isUnwatched else { return nil }
    isUnwatched = false
    return channel
  }

  /// Called when the other end of the channel was closed: the guardian has ended.
  /// - Returns: the warning for the log.
  func hasEnded() -> LogLine {
    platform_fd_close(channel)
    channel = before
    before = -1
    guard channel < 0 else {
      isUnwatched = true
      if mustRestart { tendAt = 0 }
      return LogLine("the new guardian has ended; the one before it stays")
    }
    return planRestart(LogLine("the guardian has ended"))
  }

  /// Starts another guardian, because this thread has moved to another network namespace; if a guardian is starting,
  /// `tend` calls this function again when that one runs or has failed. The present guardian ends as soon as the new
  /// one runs; if the new one does not start, the present one stays.
  /// - Returns: a warning for the log; nil if there is nothing to warn of.
  func restart() -> LogLine? {
    mustRestart = process != 0 || before >= 0
    // If there is no guardian, the next one starts in the new namespace.
    guard !mustRestart, channel >= 0 else { return nil }
    let present = channel
    if let failure = launch(waits: false) { return LogLine(failure) }
    before = present
    return nil
  }

  /// Ends the guardian before the last one, because the last one runs.
  private func endBefore() {
    if before >= 0 { platform_guardian_replaced(before) }
    before = -1
  }

  private func planRestart(_ why: LogLine) -> LogLine {
    var line = why
    if restarts < Self.restartsMax {
      tendAt = platform_boottime_ns() &+ Self.nanosecondsPerSecond
      line.add("; a new one starts in a second")
    } else {
      // Until the first process has ended, `tend` must look at it.
      tendAt = process == 0 ? nil : platform_boottime_ns() &+ Self.checkPeriod
      line.add("; no new one is started: if this process dies, the slots of its sessions stay taken")
    }
    return line
  }

  /// Does nothing before `tendAt`. Then, if no guardian is there, starts one; otherwise looks whether the guardian that
  /// was started last runs.
  /// - Returns: a warning for the log; nil if there is nothing to warn of.
  func tend() -> LogLine? {
    guard let at = tendAt, at <= platform_boottime_ns() else { return nil }
    tendAt = nil
    // Call `whyNotStarted` even if the guardian has ended: the call also removes the guardian's first process, which
    // would otherwise stay a zombie.
    let now = platform_boottime_ns()
    let isLate = now &- startedAt >= Int64(PLATFORM_GUARDIAN_START_MS) &* 1_000_000
    let failure = process == 0 ? nil : whyNotStarted(limit: isLate ? 0 : -1)
    if process != 0 {
      tendAt = now &+ Self.checkPeriod
      return nil
    }
    let warning = failure.map { LogLine($0) }
    if channel < 0 {
      guard restarts < Self.restartsMax else { return warning }
      restarts += 1
      return launch(waits: false).map { planRestart(LogLine($0)) } ?? warning
    }
    if failure == nil { endBefore() }
    // If there still is a guardian before the last one, the last one has failed, and `hasEnded` will be called.
    return mustRestart && before < 0 ? restart() ?? warning : warning
  }

  /// Marks the records as invalid, removes them, and ends the guardian.
  func end() {
    records.end()
    platform_guardian_end(channel)
    platform_guardian_end(before)
    channel = -1
    before = -1
    if process != 0 { _ = platform_guardian_started(process, -1, 0) }
    process = 0
    tendAt = nil
  }
}
