internal import CGuard
internal import UsherCore

/// A session that a dead process has left in the journal, and its teardown.
package final class LeftSession {
  /// Where the journal has the record: the number of the page, and the number of the copy in this page.
  let page: Int
  let copy: Int
  /// The record, in the format of `record.h`. Another process wrote it.
  let record: Secret
  var session: SSMSession
  var request: HTTPRequest?
  var timer: UInt64 = 0
  /// Why the teardown failed.
  var error: UsherError?

  init(page: Int, copy: Int, record: Secret, retries: UInt32, setupDelayMax: Milliseconds) {
    self.page = page
    self.copy = copy
    self.record = record
    var policy = SSPPolicy()
    policy.teardownTimeout = setupDelayMax
    policy.teardownRetries = min(retries, 10)
    // `SSMSession` needs a token, but never sends it here: the request in the record has the token already. So pass the
    // bytes of the record as the token.
    session = SSMSession(leftWith: record, policy: Shared(policy))
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
