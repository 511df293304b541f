internal import CGuard
internal import UsherCore

/// A session that no playback holds, but that the head-end may still hold, and its teardown.
package final class LeftSession {
  enum Source {
    /// A dead process has left the session in the journal: the number of the page, and the number of the copy of the
    /// record in this page.
    case journal(page: Int, copy: Int)
    /// A playback of this context has ended without an answer to its teardown.
    case playback(PlaybackID)
  }

  let source: Source
  /// After this instant the head-end no longer holds the session.
  let until: Milliseconds
  /// For a session of the journal: the record, in the format of `record.h`, which another process wrote. Otherwise: the
  /// token.
  let record: Secret
  private let policy: Shared<SSPPolicy>
  private(set) var session: SSMSession
  /// The teardown; nil: the context may not send the recorded request.
  var request: HTTPRequest?
  var timer: UInt64 = 0
  /// Why the teardown failed.
  var error: UsherError?
  /// The last teardown of a session of this context; nil for a session of the journal.
  private var earlier: SSMSession.Unanswered?
  /// The server asked not to send the teardown before this instant.
  private var notBefore: Milliseconds = 0

  init(page: Int, copy: Int, record: Secret, retries: UInt32, setupDelayMax: Milliseconds) {
    source = .journal(page: page, copy: copy)
    until = .max
    self.record = record
    policy = Self.policy(retries: min(retries, 10), timeout: setupDelayMax)
    // `SSMSession` needs a token, but never sends it here: the request in the record has the token already. So pass the
    // bytes of the record as the token.
    session = SSMSession(leftWith: record, policy: policy, isOfDeadProcess: true)
  }

  /// - Parameters:
  ///   - teardown: the last teardown of the playback's session.
  ///   - request: sends it again.
  ///   - retries: how many times it is repeated then.
  init(
    _ playback: PlaybackID, _ teardown: SSMSession.Unanswered, _ request: HTTPRequest, retries: UInt32,
    until: Milliseconds
  ) {
    source = .playback(playback)
    self.until = until
    record = teardown.token
    policy = Self.policy(retries: retries, timeout: 0)
    earlier = teardown
    session = SSMSession(leftWith: teardown.token, policy: policy, isOfDeadProcess: false)
    self.request = request
  }

  @inline(never)
  private static func policy(retries: UInt32, timeout: Milliseconds) -> Shared<SSPPolicy> {
    var policy = SSPPolicy()
    policy.teardownTimeout = timeout
    policy.teardownRetries = retries
    return Shared(policy)
  }

  /// The number of this session in `Engine.slots`. No playback has the same number.
  var slotID: PlaybackID {
    switch source {
    case .journal(let page, let copy): return .max &- PlaybackID(page &* JournalFile.slotCount &+ copy / 2)
    case .playback(let id): return id | 1 << 63
    }
  }

  /// nil: there is no request.
  var headEnd: SlotLedger.HeadEnd? {
    request.map { SlotLedger.HeadEnd(delegate: ObjectIdentifier(self), teardownOrigin: $0.endpoint.origin) }
  }

  /// Whether a teardown of the session is under way.
  var isGivingBack: Bool { session.isGivingBack }
  /// Whether the teardown may be sent now.
  func isReady(now: Milliseconds) -> Bool { !isGivingBack && now >= notBefore }

  func tearDown(now: Milliseconds) -> [SSMSession.Action] {
    if earlier != nil {
      error = nil
      session = SSMSession(leftWith: record, policy: policy, isOfDeadProcess: false)
    }
    return session.tearDownRecovered(after: earlier, now: now)
  }
  func timerFired(now: Milliseconds) -> [SSMSession.Action] { session.timerFired(now: now) }
  func teardownReplied(_ request: RequestID, _ outcome: SSMOutcome, now: Milliseconds) -> [SSMSession.Action] {
    session.teardownReplied(request, outcome, now: now)
  }

  func failed(_ error: UsherError, now: Milliseconds) {
    self.error = error
    notBefore = now.adding(Milliseconds(error.retryAfter))
    if earlier != nil { earlier = session.unanswered }
  }

  /// Reads the teardown request of the record. Does not read the addresses of the server: this process looks up the
  /// name itself, and uses the proxy that the options of its own context name.
  /// - Parameters:
  ///   - insecure: whether http URLs may have any host.
  ///   - sendsCookies: whether to send the cookies of the record.
  /// - Returns: nil if the record has no request that the context may send.
  static func request(_ record: Secret, insecure: Bool, sendsCookies: Bool) throws(UsherError) -> HTTPRequest? {
    guard let fixed = fixed(record), let url = field(record, USHER_FIELD_URL, 0), url.count > 1,
      let text = URLText(url.withBytes { Array($0.dropLast()) })
    else { return nil }
    var headers: [Secret] = []
    while headers.count < 64, let line = field(record, USHER_FIELD_HEADER, headers.count) { headers.append(line) }
    if sendsCookies {
      var size = 0
      let line = Secret(count: record.count) {
        size = usher_record_cookies(record.address, record.count, $0.baseAddress)
      }
      if size > 0 { headers.append(line.withBytes { Secret(UnsafeBufferPointer(rebasing: $0[..<size])) }) }
    }
    for line in headers where !line.withBytes(isHeaderLine) { return nil }
    guard let endpoint = try Endpoint.checked(text, insecure: insecure) else { return nil }
    return HTTPRequest(
      method: fixed.flags & USHER_RECORD_POST != 0 ? .post : .get, endpoint: endpoint, headers: headers,
      body: field(record, USHER_FIELD_BODY, 0), isUrgent: true, tokens: [])
  }

  /// The fixed part of a record; nil: the record is too short.
  static func fixed(_ record: Secret) -> usher_record? {
    record.count < MemoryLayout<usher_record>.size ? nil : record.address.loadUnaligned(as: usher_record.self)
  }

  private static func field(_ record: Secret, _ kind: UInt32, _ index: Int) -> Secret? {
    var size = 0
    return usher_record_find(record.address, record.count, kind, index, &size).map {
      Secret(UnsafeBufferPointer(start: $0, count: size))
    }
  }

  /// Whether the bytes are one line "Name: value" and a NUL.
  private static func isHeaderLine(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
    guard line.last == 0, let colon = line.firstIndex(of: 0x3A), colon > 0 else { return false }
    return isHeaderSafe(UnsafeBufferPointer(rebasing: line.dropLast()))
  }
}
