import Testing

@testable import UsherCore
@testable import UsherEngine

#if canImport(Glibc)
  import Glibc
#endif

/// Tests what the transport reports to the dispatcher, with libcurl and a server on a loopback socket.
@Suite(.timeLimit(.minutes(1))) struct CurlTransportTests {
  /// A server that sends the given replies, one for each request. After a reply with "Connection: close", it closes the
  /// connection. Each wait for a connection or a request ends after ten seconds.
  private final class Server {
    let port: UInt16
    private let listener: Int32
    private let thread = ThreadedExecutor(cap: 1, onChange: { _ in })

    init(_ replies: [String]) throws {
      let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      self.listener = listener
      Self.limitWaits(listener)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let isReady = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(listener, $0, size) == 0 && listen(listener, 8) == 0 && getsockname(listener, $0, &size) == 0
        }
      }
      port = UInt16(bigEndian: address.sin_port)
      try #require(isReady)
      _ = thread.enqueue(1) { Self.serve(listener, replies) }
    }

    private static func limitWaits(_ socket: Int32) {
      var limit = timeval(tv_sec: 10, tv_usec: 0)
      setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    private static func serve(_ listener: Int32, _ replies: [String]) {
      var left = replies[...]
      while !left.isEmpty {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { return }
        limitWaits(connection)
        while let reply = left.first, readRequest(connection) {
          left = left.dropFirst()
          _ = reply.withCString { send(connection, $0, strlen($0), Int32(MSG_NOSIGNAL)) }
          if reply.contains("Connection: close") { break }
        }
        close(connection)
      }
    }

    /// Reads one request, which has no body. Returns false if the connection ends before the whole request has arrived.
    private static func readRequest(_ connection: Int32) -> Bool {
      var text = ""
      var bytes = [UInt8](repeating: 0, count: 4096)
      while !text.contains("\r\n\r\n") {
        let count = recv(connection, &bytes, bytes.count, 0)
        guard count > 0 else { return false }
        text += String(decoding: bytes.prefix(count), as: UTF8.self)
      }
      return true
    }

    func stop() {
      shutdown(listener, Int32(SHUT_RDWR))
      thread.shutDown()
      close(listener)
    }
  }

  private static let reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
  private static let lastReply = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"

  private func transport() throws -> CurlTransport {
    try ensureCurl(wiping: false)
    return try #require(CurlTransport.make(options: TransportOptions(), keptMax: 4, connectionsMax: 4))
  }

  private func start(_ id: TransferID, _ transport: CurlTransport, port: UInt16) throws {
    let url = try #require(URLText(Array("http://127.0.0.1:\(port)/".utf8)))
    let endpoint = try #require(try Endpoint.checked(url, insecure: false))
    transport.start(
      id, HTTPRequest(method: .get, endpoint: endpoint, headers: [], body: nil, isUrgent: false, tokens: []),
      isFresh: false)
  }

  /// Sends a request and waits, at most ten seconds, for its outcome.
  private func ask(_ id: TransferID, _ transport: CurlTransport, port: UInt16) throws -> FinishedTransfer {
    try start(id, transport, port: port)
    let end = monotonicMilliseconds() + 10_000
    while monotonicMilliseconds() < end {
      _ = transport.wait(until: 1)
      if let finished = transport.takeFinished().first { return finished }
    }
    throw UsherError(.timeout)
  }

  /// The server closes a connection after its only reply, and says so in this reply. The transport does not report that
  /// this reply came over a kept connection. It reports a kept connection only for the second and third reply on the
  /// next connection.
  @Test func replyOnANewConnection_thatTheServerCloses_isNotOnAKeptOne() throws {
    let server = try Server([Self.lastReply, Self.reply, Self.reply, Self.lastReply])
    let transport = try transport()
    var found: [Bool] = []
    for id in 1...4 as ClosedRange<TransferID> {
      found.append(try ask(id << 32, transport, port: server.port).wasOnKeptConnection)
    }
    #expect(found == [false, false, true, true])
    transport.shutDown()
    server.stop()
  }

  /// The dispatcher cancels a request whose reply the transport has read but not yet passed on. The transport reports
  /// that the server may have read the request.
  @Test(arguments: [2, 100_000]) func request_cancelledAfterItsReplyWasRead_mayHaveReachedTheServer(size: Int) throws {
    let body = String(repeating: "x", count: size)
    let server = try Server(["HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n\(body)"])
    let transport = try transport()
    try start(1 << 32, transport, port: server.port)
    let end = monotonicMilliseconds() + 10_000
    // `isConnecting` becomes false when the request has a connection, and true again when the request has ended.
    while transport.isConnecting(1 << 32), monotonicMilliseconds() < end { _ = transport.wait(until: 1) }
    while !transport.isConnecting(1 << 32), monotonicMilliseconds() < end { _ = transport.wait(until: 1) }
    #expect(transport.cancel(1 << 32))
    transport.shutDown()
    server.stop()
  }

  /// The server refuses the connection. When the dispatcher cancels the failed request, the transport reports that the
  /// server has not read this request.
  @Test func request_cancelledAfterItsConnectionWasRefused_hasNotReachedTheServer() throws {
    let server = try Server([])
    server.stop()
    let transport = try transport()
    try start(1 << 32, transport, port: server.port)
    let end = monotonicMilliseconds() + 10_000
    while !transport.wait(until: 1), monotonicMilliseconds() < end {}
    #expect(!transport.cancel(1 << 32))
    transport.shutDown()
  }
}
