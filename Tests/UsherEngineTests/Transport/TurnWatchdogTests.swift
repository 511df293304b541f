import Testing

@testable import UsherEngine

#if canImport(Glibc)
  import Glibc
#endif

/// Tests which connections the watchdog drops. The thread of the test plays the I/O thread: it reads sockets in a turn,
/// and computes all the time, as libcurl does on a slow machine.
@Suite(.serialized, .timeLimit(.minutes(1))) struct TurnWatchdogTests {
  /// A TCP connection over the loopback interface.
  private struct Connection {
    /// The descriptor that the I/O thread reads.
    let own: Int32
    private let server: Int32

    init() throws {
      let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(listener) }
      own = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var limit = timeval(tv_sec: 10, tv_usec: 0)
      setsockopt(own, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
      var room: Int32 = 200_000
      setsockopt(own, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let (client, isReady) = (
        own,
        withUnsafeMutablePointer(to: &address) {
          $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(listener, $0, size) == 0 && listen(listener, 1) == 0 && getsockname(listener, $0, &size) == 0
          }
        }
      )
      let isConnected = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, size) == 0 }
      }
      server = accept(listener, nil, nil)
      try #require(isReady && isConnected && server >= 0)
    }

    func send(_ count: Int) {
      _ = Glibc.send(
        server, [UInt8](repeating: 0, count: count), count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
    }

    /// Reads `count` bytes, which have arrived. Returns false if the connection has ended.
    @discardableResult
    func read(_ count: Int) -> Bool {
      var bytes = [UInt8](repeating: 0, count: count)
      return recv(own, &bytes, count, Int32(MSG_WAITALL)) > 0
    }

    func end() {
      close(own)
      close(server)
    }
  }

  /// Runs one turn, in which the thread computes and calls `step` each time the watchdog has looked. The turn ends
  /// after `looks` calls, or when the watchdog drops a connection; the test fails after 20 seconds.
  /// - Returns: how many connections the watchdog has dropped.
  private func turn(_ watchdog: TurnWatchdog, looks: Int, _ step: () -> Void) -> UInt64 {
    let end = monotonicMilliseconds() + 20_000
    let first = watchdog.turnCount
    watchdog.turn {
      for _ in 0..<looks where watchdog.droppedCount == 0 {
        let before = watchdog.lookCount
        while watchdog.lookCount == before, monotonicMilliseconds() < end {}
        step()
      }
    }
    #expect(monotonicMilliseconds() < end)
    #expect(watchdog.hasSeenLongTurn(since: first), "the watchdog has not counted")
    return watchdog.droppedCount
  }

  /// Calls `body` with a watchdog that watches the connections, while one request is in flight.
  private func watching(_ connections: [Connection], _ body: (TurnWatchdog) throws -> Void) throws {
    let watchdog = TurnWatchdog()
    try #require(watchdog.start())
    for connection in connections { watchdog.opened(connection.own) }
    watchdog.requestStarted()
    defer {
      watchdog.requestEnded()
      watchdog.stop()
      for connection in connections { connection.end() }
    }
    try body(watchdog)
  }

  /// A server sends 150 kB while the I/O thread is busy with something else. The watchdog counts only bytes that the
  /// thread reads, so it does not drop the connection.
  @Test func bytesThatTheThreadDoesNotRead_areNoFlood() throws {
    let waiting = try Connection()
    try watching([waiting]) { watchdog in
      #expect(turn(watchdog, looks: 30) { waiting.send(5000) } == 0)
    }
  }

  /// Two servers send. The watchdog drops the connection that the I/O thread reads, although more bytes arrive on the
  /// other one.
  @Test func connectionThatTheThreadReads_isDropped() throws {
    let (read, waiting) = (try Connection(), try Connection())
    try watching([waiting, read]) { watchdog in
      let dropped = turn(watchdog, looks: 500) {
        waiting.send(6000)
        read.send(4000)
        read.read(4000)
      }
      #expect(dropped == 1)
      #expect(!read.read(1))
      #expect(waiting.read(1))
    }
  }

  /// A reply of 1 MiB arrives in one turn, in which the I/O thread uses much processor time. The watchdog does not drop
  /// the connection, because libcurl passes the bytes on as parts of a body.
  @Test func longReply_onASlowProcessor_isRead() throws {
    let connection = try Connection()
    try watching([connection]) { watchdog in
      let dropped = turn(watchdog, looks: 64) {
        connection.send(16_800)
        connection.read(16_800)
        watchdog.tookBody(16_384, header: 0)
      }
      #expect(dropped == 0)
    }
  }

  /// 64 replies over HTTP/2 arrive in one turn, each with 800 bytes of header lines and a body of 100 bytes.
  /// The watchdog does not drop the connection.
  @Test func manyReplies_inOneTurn_areRead() throws {
    let connection = try Connection()
    try watching([connection]) { watchdog in
      let dropped = turn(watchdog, looks: 64) {
        connection.send(900)
        connection.read(900)
        watchdog.tookBody(100, header: 800)
      }
      #expect(dropped == 0)
    }
  }

  /// A server sends header lines of many replies without end in one turn. The watchdog drops the connection.
  @Test func headerLines_withoutEnd_areAFlood() throws {
    let connection = try Connection()
    try watching([connection]) { watchdog in
      let dropped = turn(watchdog, looks: 500) {
        connection.send(4000)
        connection.read(4000)
        watchdog.tookBody(1, header: 4000)
      }
      #expect(dropped == 1)
    }
  }

  /// A TLS handshake of 16 kB takes the I/O thread more than 100 ms. The watchdog does not drop the connection.
  @Test func handshake_onASlowProcessor_ends() throws {
    let connection = try Connection()
    try watching([connection]) { watchdog in
      let dropped = turn(watchdog, looks: 32) {
        connection.send(512)
        connection.read(512)
      }
      #expect(dropped == 0)
    }
  }

  /// The first turn is long and the next one is short; the watchdog reports only the first one as long.
  @Test func longTurn_isNotTheNextOne() throws {
    try watching([]) { watchdog in
      let first = watchdog.turnCount
      let end = monotonicMilliseconds() + 20_000
      watchdog.turn { while !watchdog.hasSeenLongTurn(since: first), monotonicMilliseconds() < end {} }
      #expect(watchdog.hasSeenLongTurn(since: first))
      let second = watchdog.turnCount
      watchdog.turn {}
      #expect(!watchdog.hasSeenLongTurn(since: second))
    }
  }
}
