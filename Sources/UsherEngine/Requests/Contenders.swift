internal import CCurl
internal import CPlatform
internal import UsherCore

/// Sockets that connect to the server of a request beside libcurl's socket. If the network loses the first packet of a
/// connection, TCP repeats it only after a second; a new socket sends its own at once. The request uses the socket that
/// is connected first.
struct Contenders {
  /// How many there may be; a further one replaces the oldest.
  private static var most: Int { 64 }

  private struct Contender {
    let socket: Int32
    let request: TransferID
  }
  /// Oldest first.
  private var all: [Contender] = []
  private let poller: Poller

  init(poller: Poller) { self.poller = poller }

  var count: Int { all.count }

  var hasRoom: Bool { all.count < Self.most }

  /// Connects one more socket, unless that takes the last file descriptor: a request may need it.
  /// - Parameter hasRoom: whether one more connection is allowed; if not, the oldest socket is closed first.
  mutating func add(_ request: TransferID, to address: curl_shim_address, hasRoom: Bool) {
    if !hasRoom {
      guard !all.isEmpty else { return }
      close(all.removeFirst().socket)
    }
    let socket = curl_shim_connect_socket(address)
    guard socket >= 0 else { return }
    guard platform_is_short_of_descriptors() == 0, poller.watch(socket, was: 0, PLATFORM_WRITABLE) else {
      return platform_fd_close(socket)
    }
    all.append(Contender(socket: socket, request: request))
  }

  /// Called when a socket is ready: takes it out if it is one of these, and epoll does not watch it any more. Returns
  /// its request.
  mutating func take(_ socket: Int32) -> TransferID? {
    guard let index = all.firstIndex(where: { $0.socket == socket }) else { return nil }
    _ = poller.watch(socket, was: PLATFORM_WRITABLE, 0)
    return all.remove(at: index).request
  }

  /// Closes the sockets of a request that has ended or has a connection.
  mutating func remove(_ request: TransferID) {
    while let index = all.firstIndex(where: { $0.request == request }) { close(all.remove(at: index).socket) }
  }

  mutating func removeAll() {
    for contender in all { close(contender.socket) }
    all = []
  }

  /// Takes the socket out of epoll first, because closing does not do so while a forked child still has it open.
  private func close(_ socket: Int32) {
    _ = poller.watch(socket, was: PLATFORM_WRITABLE, 0)
    platform_fd_close(socket)
  }
}
