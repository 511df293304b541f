// Fuzz targets for whole replies on the wire: the input is what a server sends on a connection, headers and frames
// included. The first byte of an input selects the bytes that the server sends before the rest of the input.
import Glibc

@testable import UsherCore
@testable import UsherEngine

func readHTTP1(_ bytes: Bytes) { exchange(bytes, with: http1, starts: starts1) }
func readHTTP2(_ bytes: Bytes) { exchange(bytes, with: http2, starts: starts2) }

func readRetryAfter(_ bytes: Bytes) {
  guard let (choice, text) = choices(bytes) else { return }
  let now = Int64(choice) &* 10_000_000
  guard let pause = RetryAfter.pause(text, now: now) else { return }
  must(pause <= .never, "a pause is a time")
  guard let date = RetryAfter.date(text) else { return }
  must(pause == (date > now ? Milliseconds(date - now) * 1000 : 0), "a pause ends at its date")
}

private let limit = 2000
private let starts1: [[UInt8]] = [
  "", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n",
  "HTTP/1.1 429 Wait\r\nContent-Length: 2\r\nRetry-After: "
].map { Array($0.utf8) }
/// Three beginnings of an HTTP/2 reply: SETTINGS only; SETTINGS and the HEADERS of a reply (status 200); SETTINGS and
/// the HEADERS of an interim reply (status 103).
private let starts2: [[UInt8]] = [
  [0, 0, 0, 4, 0, 0, 0, 0, 0], [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88],
  [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 1, 4, 0, 0, 0, 1, 0x08, 3, 0x31, 0x30, 0x33]
]
private let http1 = transport(http2: false)
private let http2 = transport(http2: true)

private func transport(http2: Bool) -> CurlTransport {
  var options = TransportOptions()
  options.maxResponseBytes = limit
  options.speaksHTTP2WithoutTLS = http2
  guard let made = CurlTransport.make(options: options, keptMax: 4, connectionsMax: 16) else {
    fatalError("no transport")
  }
  return made
}

/// Opens a listening socket on loopback. Returns the socket and its port.
private let (listening, port): (Int32, UInt16) = {
  let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  var size = socklen_t(MemoryLayout<sockaddr_in>.size)
  let isReady = withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(made, $0, size) == 0 && listen(made, 8) == 0 && getsockname(made, $0, &size) == 0
    }
  }
  must(isReady, "a server can listen")
  return (made, UInt16(bigEndian: address.sin_port))
}()
private var lastID: TransferID = 0

/// Sends a request, replies with the input, and closes the connection.
private func exchange(_ bytes: Bytes, with transport: CurlTransport, starts: [[UInt8]]) {
  guard let (choice, rest) = choices(bytes) else { return }
  let reply = starts[choice % starts.count] + rest
  let url = Array("http://127.0.0.1:\(port)/".utf8) + [0]
  let endpoint = Endpoint(url: url, origin: Array("p127.0.0.1".utf8), isLoopback: true)
  let request = HTTPRequest(
    method: .post, endpoint: endpoint, headers: [], body: Secret(Array("{}".utf8)), isUrgent: false, tokens: [])
  lastID += 1 << 32
  transport.start(lastID, request, isFresh: true)
  var server: Int32 = -1
  for _ in 0..<5000 {
    _ = transport.wait(until: bootTime() + 1_000_000)
    if server < 0 {
      server = accept(listening, nil, nil)
      if server >= 0 {
        _ = reply.withUnsafeBytes { send(server, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        shutdown(server, Int32(SHUT_WR))
      }
    }
    let finished = transport.takeFinished()
    guard let one = finished.first else { continue }
    must(finished.count == 1 && one.id == lastID, "one request has one outcome")
    check(one.outcome, sent: reply.count)
    if server >= 0 { close(server) }
    return
  }
  must(false, "the request does not end")
}

private func check(_ outcome: HTTPOutcome, sent: Int) {
  guard case .response(let response) = outcome else { return }
  must(response.body.count <= limit, "a body is not longer than the limit")
  must(response.body.count <= sent, "a body is not longer than what the server sent")
  must(response.retryAfter == nil || response.status >= 300, "a success has no Retry-After")
}

private func bootTime() -> Int64 {
  var now = timespec()
  clock_gettime(CLOCK_BOOTTIME, &now)
  return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
}
