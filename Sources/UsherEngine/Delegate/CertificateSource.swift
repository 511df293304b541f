internal import Synchronization
package import UsherCore

/// One certificate: fetched once for all that wait for it, then kept. Only the I/O thread touches it, except where
/// said.
package final class CertificateSource {
  private let endpoint: Endpoint?
  private let headers: [Secret]
  private let isGiven: Bool
  private let hadHook = Atomic<Bool>(false)
  private(set) var certificate: Secret?
  private var waiters: [CertificateWaiter] = []
  private var isFetching = false

  /// - Parameter headers: lines of the request, each ending in NUL.
  package init(_ endpoint: Endpoint? = nil, headers: [Secret] = [], certificate: Secret? = nil) {
    self.endpoint = endpoint
    self.headers = headers
    self.certificate = certificate
    isGiven = certificate != nil
  }

  /// Any thread: whether there is a URL, a certificate or a hook to get one from.
  package var canSupply: Bool { endpoint != nil || isGiven || hadHook.load(ordering: .acquiring) }

  /// Any thread: a certificate hook takes effect with the I/O thread's next command.
  func expectHook() { hadHook.store(true, ordering: .releasing) }

  /// nil: there is no URL.
  var request: HTTPRequest? {
    guard let endpoint else { return nil }
    return HTTPRequest(method: .get, endpoint: endpoint, headers: headers, body: nil, isUrgent: false, tokens: [])
  }

  /// True for the first waiter, who has to start the fetch.
  func add(_ waiter: CertificateWaiter) -> Bool {
    waiters.append(waiter)
    defer { isFetching = true }
    return !isFetching
  }

  /// False: the waiter has its answer already.
  func remove(_ waiter: CertificateWaiter) -> Bool {
    guard let index = waiters.firstIndex(where: { $0 === waiter }) else { return false }
    waiters.remove(at: index)
    return true
  }

  /// Takes out one that waits on behalf of a playback; the fetch continues.
  func removeWaiter(of playback: PlaybackID) -> CertificateWaiter? {
    waiters.firstIndex { $0.playback == playback }.map { waiters.remove(at: $0) }
  }

  /// The fetch has ended. Returns all that waited.
  /// - Parameter certificate: nil: it failed, and the next waiter starts another.
  func end(_ certificate: Secret?) -> [CertificateWaiter] {
    if let certificate { self.certificate = certificate }
    isFetching = false
    defer { waiters = [] }
    return waiters
  }
}

final class CertificateWaiter {
  let playback: PlaybackID
  let complete: (Answer) -> Void
  var timer: UInt64?

  init(playback: PlaybackID, complete: @escaping (Answer) -> Void) {
    self.playback = playback
    self.complete = complete
  }
}
