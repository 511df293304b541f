internal import Synchronization
package import UsherCore

/// One certificate. The engine fetches it once, for all requests that wait for it, and this object then keeps it. Only
/// the I/O thread uses this object, except where a comment says otherwise.
package final class CertificateSource {
  private let endpoint: Endpoint?
  private let headers: [Secret]
  private let isGiven: Bool
  private let hadHook = Atomic<Bool>(false)
  private(set) var certificate: Secret?
  private var waiters: [CertificateWaiter] = []
  private var isFetching = false

  /// - Parameter headers: header lines of the request, each ending in NUL.
  package init(_ endpoint: Endpoint? = nil, headers: [Secret] = [], certificate: Secret? = nil) {
    self.endpoint = endpoint
    self.headers = headers
    self.certificate = certificate
    isGiven = certificate != nil
  }

  /// Any thread: whether the delegate has a certificate or a URL for it, or the host has ever set a certificate hook.
  package var canSupply: Bool { endpoint != nil || isGiven || hadHook.load(ordering: .acquiring) }

  /// Any thread: notes that the host is about to set a certificate hook. A later command sets the hook on the I/O
  /// thread.
  func expectHook() { hadHook.store(true, ordering: .releasing) }

  /// The request for the certificate; nil if there is no URL.
  var request: HTTPRequest? {
    guard let endpoint else { return nil }
    return HTTPRequest(method: .get, endpoint: endpoint, headers: headers, body: nil, isUrgent: false, tokens: [])
  }

  /// The playbacks that wait for the certificate.
  var playbacks: [PlaybackID] { waiters.map { $0.playback } }

  /// Adds a request that waits for the certificate. Returns true for the first one: the caller must then start the
  /// fetch.
  func add(_ waiter: CertificateWaiter) -> Bool {
    waiters.append(waiter)
    defer { isFetching = true }
    return !isFetching
  }

  /// Removes a request that waits for the certificate. Returns false if the request has been answered already.
  func remove(_ waiter: CertificateWaiter) -> Bool {
    guard let index = waiters.firstIndex(where: { $0 === waiter }) else { return false }
    waiters.remove(at: index)
    return true
  }

  /// Removes and returns one waiting request of a playback; the fetch continues.
  func removeWaiter(of playback: PlaybackID) -> CertificateWaiter? {
    waiters.firstIndex { $0.playback == playback }.map { waiters.remove(at: $0) }
  }

  /// Called when the fetch has ended. Returns all requests that wait for the certificate.
  /// - Parameter certificate: nil if the fetch failed; the next request then starts another fetch.
  func end(_ certificate: Secret?) -> [CertificateWaiter] {
    if let certificate { self.certificate = certificate }
    isFetching = false
    defer { waiters = [] }
    return waiters
  }
}

final class CertificateWaiter {
  let playback: PlaybackID
  let complete: (RequestResult) -> Void
  var timer: UInt64?

  init(playback: PlaybackID, complete: @escaping (RequestResult) -> Void) {
    self.playback = playback
    self.complete = complete
  }
}
