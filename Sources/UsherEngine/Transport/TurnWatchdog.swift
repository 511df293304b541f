internal import CPlatform
internal import Synchronization

/// Ends turns that would never end. A turn is one call of libcurl by the I/O thread. libcurl and OpenSSL read a
/// connection until the kernel has no more bytes for it. So a server that sends control frames or TLS messages fast
/// enough would keep the I/O thread in one turn, and the requests to all other servers would wait. The watchdog's
/// thread notices a turn that takes too long, finds the connection from which the I/O thread has read the most bytes in
/// this turn, and drops that connection.
///
/// A long turn alone does not show a flood: on a slow or busy machine, a long reply or a TLS handshake takes long too.
/// So the watchdog drops a connection only if the I/O thread has read many more bytes from it than libcurl has passed
/// on as parts of bodies and as their header lines.
///
/// The watchdog's thread sleeps until a timer fires, which the I/O thread sets when it begins a turn. Then the
/// watchdog's thread looks at this turn every few milliseconds until the turn has ended. The I/O thread stops the timer
/// before it waits for long, so that a heartbeat does not wake the watchdog. For each turn the I/O thread reads the
/// clock and writes two numbers in memory, and two more for each part of a body.
final class TurnWatchdog {
  /// How long after the beginning of a turn the watchdog looks for a long turn, in milliseconds: usually `pause`. In
  /// the `alertTime` after it has dropped a connection: `alertPause`, because a server that floods usually does so on
  /// each connection.
  private static var pause: Int64 { 15 }
  private static var alertPause: Int64 { 2 }
  private static var alertTime: Int64 { 2000 }
  /// How often the watchdog looks again at a turn that it has seen already, in milliseconds.
  private static var closePause: Int64 { 5 }
  /// How many bytes that belong to no reply the I/O thread may read from one connection in one turn; see `allowed`. If
  /// the thread reads more, the server floods. All messages of a TLS handshake together usually have far fewer bytes.
  private static var bytesMost: UInt64 { 1 << 15 }
  /// The limit of header bytes that `allowed` adds. Over HTTP/2 the replies to many requests may arrive in one turn.
  private static var headerBytesMost: UInt64 { 1 << 16 }
  /// A turn counts as long if the I/O thread has used this much processor time, in microseconds, since the watchdog
  /// first saw the turn. On a busy machine a turn may last some time only because the thread does not get a processor.
  private static var leastTime: Int64 { 4000 }

  /// The timer for which the watchdog's thread waits while it has no turn to look at.
  private let ticker = platform_ticker_new()
  /// When the ticker fires, in monotonic milliseconds. If this time has passed, the ticker has fired. 0: the ticker is
  /// not set. Only the I/O thread uses this property.
  private var tickAt: Int64 = 0

  // Only the I/O thread changes these five properties.

  /// How many turns have begun, plus how many have ended. The number is odd during a turn.
  private let turns = Atomic<UInt64>(0)
  private let inFlight = Atomic<Int>(0)
  private let ioThread = Atomic<UInt64>(0)
  /// How many bytes of bodies libcurl has passed on, of all replies.
  private let bodyBytes = Atomic<UInt64>(0)
  /// How many bytes the header lines of these replies had.
  private let headerBytes = Atomic<UInt64>(0)

  // Only the watchdog's thread changes these four properties.
  private let looks = Atomic<UInt64>(0)
  /// The newest turn that counts as long: the I/O thread has used `leastTime` in it since the watchdog first saw it.
  private let longTurn = Atomic<UInt64>(0)
  /// `pause` or, after a drop, `alertPause`.
  private let pauseNow = Atomic<Int64>(pause)
  private let dropped = Atomic<UInt64>(0)

  private let monitor = Monitor()
  private struct Socket {
    let number: Int32
    let cookie: UInt64
    /// How many bytes had been read from the socket when the watchdog began to count.
    var read: UInt64 = 0
  }
  /// The sockets that libcurl has opened; the monitor guards this list.
  private var sockets: [Socket] = []
  private let isStopping = Atomic<Bool>(false)
  private var threadID: UInt64 = 0

  /// A turn that the watchdog has seen before.
  private struct Seen {
    let turn: UInt64
    let processorTime: Int64
    /// What libcurl had passed on when the watchdog began to count; nil: the watchdog has not begun to count.
    var passedOn: PassedOn?
  }

  /// The values of `bodyBytes` and `headerBytes` at one moment.
  private struct PassedOn {
    let body: UInt64
    let header: UInt64
  }

  // MARK: The I/O thread

  /// Starts the thread. Returns false if the system has no thread, or no descriptor.
  func start() -> Bool {
    guard ticker >= 0 else { return false }
    let me = Unmanaged.passRetained(self)
    if platform_thread_start(runWatchdogThread, me.toOpaque(), 0, &threadID) == 0 { return true }
    me.release()
    return false
  }

  /// If the thread was started, ends it. Closes the descriptor.
  func stop() {
    if threadID != 0 {
      isStopping.store(true, ordering: .releasing)
      while platform_ticker_set(ticker, 1) != 0 { platform_sleep_ms(10) }
      platform_thread_join(threadID)
    }
    platform_fd_close(ticker)
  }

  /// Runs one turn: `body` calls libcurl.
  func turn<Value>(_ body: () -> Value) -> Value {
    setTicker()
    let number = turns.load(ordering: .relaxed)
    turns.store(number &+ 1, ordering: .releasing)
    defer { turns.store(number &+ 2, ordering: .releasing) }
    return body()
  }

  private func setTicker() {
    let now = platform_monotonic_ms()
    guard tickAt <= now else { return }
    ioThread.store(platform_thread_self(), ordering: .relaxed)
    let pause = pauseNow.load(ordering: .relaxed)
    // If the system refuses, the next turn tries again.
    tickAt = platform_ticker_set(ticker, pause) == 0 ? now &+ pause : 0
  }

  /// Called before the I/O thread waits. Stops the timer if no request is in flight and the wait may be long.
  /// - Parameter time: how many milliseconds the wait may take.
  func rest(for time: Int64) {
    guard tickAt != 0, inFlight.load(ordering: .relaxed) <= 0 else { return }
    let left = tickAt &- platform_monotonic_ms()
    guard left <= 0 || (time > left && platform_ticker_set(ticker, 0) == 0) else { return }
    tickAt = 0
  }

  func requestStarted() { _ = inFlight.wrappingAdd(1, ordering: .relaxed) }

  /// Called when libcurl has passed on a part of a body.
  /// - Parameter header: if this is the first part, the bytes of the header lines, and 32 more for each line; otherwise
  ///   0.
  func tookBody(_ count: Int, header: Int) {
    bodyBytes.store(bodyBytes.load(ordering: .relaxed) &+ UInt64(truncatingIfNeeded: count), ordering: .relaxed)
    headerBytes.store(headerBytes.load(ordering: .relaxed) &+ UInt64(truncatingIfNeeded: header), ordering: .relaxed)
  }

  func requestEnded() { _ = inFlight.wrappingSubtract(1, ordering: .relaxed) }

  /// Called when libcurl has opened this socket.
  func opened(_ socket: Int32) {
    let cookie = platform_socket_cookie(socket)
    guard cookie != 0 else { return }
    monitor.locked {
      sockets.removeAll { $0.number == socket }
      sockets.append(Socket(number: socket, cookie: cookie))
    }
  }

  func closed(_ socket: Int32) { monitor.locked { sockets.removeAll { $0.number == socket } } }

  /// How often the watchdog has looked: an approximate clock while requests are in flight, which costs the I/O thread
  /// one read of memory.
  var lookCount: UInt64 { looks.load(ordering: .acquiring) }

  /// How many turns have begun, plus how many have ended.
  var turnCount: UInt64 { turns.load(ordering: .relaxed) }

  /// Whether the watchdog has found a long turn that began when `turnCount` was `count`, or later.
  func hasSeenLongTurn(since count: UInt64) -> Bool { longTurn.load(ordering: .relaxed) > count }

  /// How many connections the watchdog has dropped.
  var droppedCount: UInt64 { dropped.load(ordering: .relaxed) }

  // MARK: The watchdog's thread

  fileprivate func run() {
    var seen: Seen?
    var alertUntil: Int64 = 0
    while true {
      let isAlert = platform_monotonic_ms() < alertUntil
      pauseNow.store(isAlert ? Self.alertPause : Self.pause, ordering: .relaxed)
      if seen != nil || (isAlert && inFlight.load(ordering: .relaxed) > 0) {
        platform_sleep_ms(isAlert ? Self.alertPause : Self.closePause)
      } else {
        platform_ticker_wait(ticker)
      }
      if isStopping.load(ordering: .acquiring) { return }
      let before = droppedCount
      seen = look(seen)
      // Change `looks` only after `longTurn`: the I/O thread reads `longTurn` when it finds that `looks` has changed.
      _ = looks.wrappingAdd(1, ordering: .releasing)
      if droppedCount != before { alertUntil = platform_monotonic_ms() &+ Self.alertTime }
    }
  }

  /// Looks at the turn in progress. Returns nil if no turn is in progress.
  private func look(_ seen: Seen?) -> Seen? {
    let turn = turns.load(ordering: .acquiring)
    guard turn & 1 == 1 else { return nil }
    let now = platform_thread_cpu_us(ioThread.load(ordering: .relaxed))
    guard var seen, seen.turn == turn else { return Seen(turn: turn, processorTime: now) }
    let used = now &- seen.processorTime
    guard used >= Self.leastTime else { return seen }
    longTurn.store(turn, ordering: .relaxed)
    return monitor.locked {
      guard let before = seen.passedOn else {
        seen.passedOn = passedOn()
        // Pass 1 as the second argument: if bytes arrive during the call, `read` then becomes too high, never too low.
        // With a number that is too low, the watchdog could drop a connection that does not flood.
        for index in sockets.indices { sockets[index].read = platform_socket_read(sockets[index].number, 1) }
        return seen
      }
      guard let flood = flood(before), turns.load(ordering: .acquiring) == turn else { return seen }
      // Count the connection before dropping it. The turn may end at once, and the I/O thread then reads `dropped`.
      _ = dropped.wrappingAdd(1, ordering: .releasing)
      let server = platform_socket_peer(flood.number)
      platform_socket_drop_by_cookie(flood.number, flood.cookie)
      // libcurl may continue with other connections in the same turn. So also drop the other connections on which this
      // server floods.
      for socket in sockets where platform_socket_peer(socket.number) == server {
        if platform_socket_unread(socket.number) > Self.bytesMost {
          platform_socket_drop_by_cookie(socket.number, socket.cookie)
        }
      }
      return nil
    }
  }

  /// Returns the socket from which the I/O thread has read the most bytes since the watchdog began to count; nil if no
  /// socket has too many.
  /// - Parameter before: what libcurl had passed on when the watchdog began to count.
  private func flood(_ before: PassedOn) -> Socket? {
    var (found, most): (Socket?, UInt64) = (nil, 0)
    for socket in sockets {
      let now = platform_socket_read(socket.number, 0)
      guard now > socket.read, now &- socket.read > most else { continue }
      (found, most) = (socket, now &- socket.read)
    }
    // Call `allowed` after the loop: the bytes that the I/O thread reads during the loop may be a part of a body, and
    // then `allowed` must count that part.
    return most > allowed(since: before) ? found : nil
  }

  /// Returns how many bytes the I/O thread may have read from one connection since `before`, if the server sends only
  /// replies. The result depends on the bytes that libcurl has passed on since then. What TLS and
  /// chunks add is shorter than the body, unless the server sends the body in pieces of a few bytes.
  private func allowed(since before: PassedOn) -> UInt64 {
    let now = passedOn()
    return Self.bytesMost &+ min(now.header &- before.header, Self.headerBytesMost) &+ 2 &* (now.body &- before.body)
  }

  private func passedOn() -> PassedOn {
    PassedOn(body: bodyBytes.load(ordering: .relaxed), header: headerBytes.load(ordering: .relaxed))
  }
}

private func runWatchdogThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  beginThread("usher-watchdog")
  if let argument { Unmanaged<TurnWatchdog>.fromOpaque(argument).takeRetainedValue().run() }
  return nil
}
