internal import CCurl
internal import CPlatform
internal import UsherCore

/// Additional sockets that connect to the server of a request, while libcurl's socket connects too. If the network
/// loses the first packet of a connection, TCP repeats the packet only after a second; a new socket sends its first
/// packet at once. The request uses the socket that connects first.
struct Contenders {
  /// How many additional sockets there may be at most. A further socket replaces the oldest one.
  private static var most: Int { 64 }

  private struct Contender {
    let socket: Int32
    let request: TransferID
  }
  /// The additional sockets, oldest first.
  private var all: [Contender] = []
  private let poller: Poller

  init(poller: Poller) { self.poller = poller }

  var count: Int { all.count }

  var hasRoom: Bool { all.count < Self.most }

  /// Connects one more socket. Does nothing if the socket would take the last free file descriptor of the process,
  /// because a request may need this descriptor.
  /// - Parameter hasRoom: whether one more connection is allowed; if not, this function first closes the oldest socket.
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

  /// Called when a socket is ready. If the socket is in this list, removes it from the list and from epoll, and returns
  /// the request of the socket. Otherwise returns nil.
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

  /// Removes the socket from epoll, then closes it. If this function only closed the socket, epoll would still report
  /// it while a forked child has the socket open.
  private func close(_ socket: Int32) {
    _ = poller.watch(socket, was: PLATFORM_WRITABLE, 0)
    platform_fd_close(socket)
  }
}
