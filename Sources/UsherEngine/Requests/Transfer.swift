internal import UsherCore

/// One request of the context, queued or in flight.
package final class Transfer {
  enum Purpose {
    case ssm(PlaybackID, RequestID, SSMSession.Call)
    case license(PlaybackID, RequestID, LicenseID)
    case certificate(CertificateSource)
    /// The library sends the request only to open a connection.
    case connection(ReadyOrigin)
    case load(PlaybackID, LoadingJob, LoadingJob.Step)
    case recovery(LeftSession, RequestID)
  }

  let purpose: Purpose
  /// The serial number of this request in its context; the first request has number 1.
  var number: UInt64 = 0
  let request: HTTPRequest
  let askedAt: Milliseconds
  /// The time limit, counted from when the request is sent.
  private(set) var timeout: Milliseconds
  /// A longer time limit. It replaces `timeout` if `timeout` passes without a reply although the server has received
  /// the request. A value below `timeout` has no effect.
  private var longestTimeout: Milliseconds
  var timer: UInt64?
  var deadline: Milliseconds
  /// Whether the request waits in the queue of its origin.
  var isQueued = false
  /// How long the request waited in the queue.
  var queueDelay: Milliseconds = 0
  /// Whether the dispatcher has moved the deadline because the I/O thread was late.
  var isExtended = false
  /// Whether the request holds a permit of its origin.
  var hasPermit = true
  /// The instant from which the request opens more connections, until one is established; `never`: it waits for its one
  /// connection.
  var connectsAgainFrom: Milliseconds
  /// The instant at which the request fails if its server has not acknowledged it; `never`: it waits for its time-out.
  var mustBeReceivedAt = Milliseconds.never
  /// Whether the request has opened more than one connection.
  var hasConnectedAgain = false
  /// Whether the dispatcher has queued the request again because the system had no file descriptor for it.
  var lacksDescriptor = false

  init(
    purpose: Purpose, request: HTTPRequest, now: Milliseconds, timeout: Milliseconds, longestTimeout: Milliseconds,
    connectsAgainFrom: Milliseconds
  ) {
    self.purpose = purpose
    self.request = request
    askedAt = now
    self.timeout = timeout
    self.longestTimeout = longestTimeout
    self.connectsAgainFrom = connectsAgainFrom
    deadline = now.adding(timeout)
  }

  /// Called when the request has reached its time limit, but the server has received it: moves the deadline, once.
  func extend() {
    deadline = deadline.adding(longestTimeout &- timeout)
    timeout = longestTimeout
  }

  /// Called when the connection is established. If the request had opened more than one connection, it gets at least
  /// the time `more` for its reply.
  func connected(now: Milliseconds, atLeast more: Milliseconds) {
    connectsAgainFrom = .never
    let before = deadline
    if hasConnectedAgain { deadline = max(deadline, now.adding(more)) }
    timeout = timeout.adding(deadline &- before)
  }

  /// Whether `extend` can make the deadline later.
  var isExtensible: Bool { !isQueued && longestTimeout > timeout }

  /// When the request was sent or, while it is queued, when it was put into the queue. If the dispatcher has moved the
  /// deadline (`isExtended`), this instant is later by the same time.
  var sentAt: Milliseconds { deadline.since(timeout) }

  var origin: [UInt8] { request.endpoint.origin }

  /// Whether the request is in flight, and has lost its permit or never had one.
  var isStalled: Bool { !isQueued && !hasPermit }

  /// Whether the session repeats the request by itself if it gets no reply.
  var isRepeatable: Bool {
    if case .ssm(_, _, .teardown) = purpose { return true }
    return isKeepAlive
  }

  /// Whether the request is a heartbeat, or a renewal that keeps the session alive.
  var isKeepAlive: Bool {
    switch purpose {
    case .ssm(_, _, let call): return call == .heartbeat
    case .license: return request.isUrgent
    case .certificate, .connection, .load, .recovery: return false
    }
  }
}
