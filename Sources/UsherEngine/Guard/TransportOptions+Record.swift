internal import CGuard
internal import UsherCore

extension TransportOptions {
  /// Writes the settings that hold for all records, behind the head of a copy.
  /// - Returns: the length; nil if `target` is too small.
  func write(into target: UnsafeMutableRawBufferPointer) -> Int? {
    let fixed = usher_record(
      playback: 0, expires_boot_ms: 0, expires_wall_ms: 0, timeout_ms: 0,
      connect_timeout_ms: UInt32(clamping: connectTimeout), retries: 0, flags: allowsHTTP2 ? USHER_RECORD_HTTP2 : 0)
    var writer = RecordWriter(fixed, into: target)
    tls?.write(to: &writer)
    proxy?.withBytes { writer.add(USHER_FIELD_PROXY, UnsafeRawBufferPointer($0)) }
    if !userAgent.isEmpty { userAgent.withUnsafeBytes { writer.add(USHER_FIELD_USER_AGENT, $0) } }
    return writer.isComplete ? writer.length : nil
  }
}
