internal import CGuard
internal import CPlatform
package import UsherCore

/// All that another process needs to tear one session down after the host has died.
package struct RecoveryRecord {
  /// The teardown request with the newest session token.
  package let request: HTTPRequest
  /// The session token in the request.
  package let token: Secret
  /// The server's addresses as CURLOPT_RESOLVE reads them, NUL-terminated; nil: none are known.
  package let addresses: [UInt8]?
  /// The cookies of the server, as CURLINFO_COOKIELIST writes them, each NUL-terminated.
  package let cookies: [Secret]
  /// How long the record is valid from now on. After this time the library assumes that the server has ended the
  /// session.
  package let lifetime: Milliseconds
  package let timeout: Milliseconds
  package let retries: UInt32

  package init(
    request: HTTPRequest, token: Secret, addresses: [UInt8]?, cookies: [Secret], lifetime: Milliseconds,
    timeout: Milliseconds,
    retries: UInt32
  ) {
    self.request = request
    self.token = token
    self.addresses = addresses
    self.cookies = cookies
    self.lifetime = lifetime
    self.timeout = timeout
    self.retries = retries
  }

  /// Returns the instant at which `lifetime`, counted from now, has passed: in milliseconds of CLOCK_BOOTTIME, and in
  /// milliseconds since 1970.
  static func end(of lifetime: Milliseconds) -> (boot: Int64, wall: Int64) {
    let life = Int64(clamping: lifetime)
    return ((platform_boottime_ns() / 1_000_000) &+ life, platform_wall_clock_ms() &+ life)
  }

  /// Writes the record behind the head of a copy.
  /// - Returns: the length of the record; nil if `target` is too small for it.
  func write(_ playback: PlaybackID, into target: UnsafeMutableRawBufferPointer) -> Int? {
    let end = Self.end(of: lifetime)
    let flags =
      (request.method == .post ? USHER_RECORD_POST : 0) | (request.endpoint.isLoopback ? USHER_RECORD_LOOPBACK : 0)
    let fixed = usher_record(
      playback: playback, expires_boot_ms: end.boot, expires_wall_ms: end.wall, timeout_ms: UInt32(clamping: timeout),
      connect_timeout_ms: 0,
      retries: retries, flags: flags)
    var writer = RecordWriter(fixed, into: target)
    request.endpoint.url.withUnsafeBytes { writer.add(USHER_FIELD_URL, $0) }
    for line in request.headers { line.withBytes { writer.add(USHER_FIELD_HEADER, UnsafeRawBufferPointer($0)) } }
    request.body?.withBytes { writer.add(USHER_FIELD_BODY, UnsafeRawBufferPointer($0)) }
    addresses?.withUnsafeBytes { writer.add(USHER_FIELD_ADDRESSES, $0) }
    for cookie in cookies { cookie.withBytes { writer.add(USHER_FIELD_COOKIE, UnsafeRawBufferPointer($0)) } }
    return writer.isComplete ? writer.length : nil
  }

  /// Returns where a record that `write` has written has its token; its `count` is 0 if no update can replace it there.
  func tokenPlace(in written: UnsafeRawBufferPointer) -> RecordSlots.TokenPlace {
    let start = usher_record_token_at(written.baseAddress, written.count, token.address, token.count)
    guard start > 0 else { return RecordSlots.TokenPlace() }
    return RecordSlots.TokenPlace(
      start: UInt32(truncatingIfNeeded: start), count: UInt32(truncatingIfNeeded: token.count))
  }
}
