internal import CUsher
internal import UsherCore
internal import UsherEngine

/// Calls `body` with the C form of an event.
func withEvent(_ event: EngineEvent, _ body: (UnsafePointer<usher_event>?) -> Void) {
  event.error.message.withCString { message in
    var mapped = usher_event()
    mapped.struct_size = MemoryLayout<usher_event>.size
    mapped.type = event.kind.rawValue
    mapped.left = event.isLeft ? 1 : 0
    mapped.sequence = event.sequence
    mapped.time_ms = event.time
    mapped.playback = OpaquePointer(bitPattern: event.playback.handle)
    mapped.player = OpaquePointer(bitPattern: event.playback.playerHandle)
    mapped.tag = event.playback.tag
    mapped.period_ms = event.period
    mapped.lateness_ms = event.lateness
    mapped.error = mapError(event.error, message)
    body(&mapped)
  }
}

/// Calls `body` with the C form of a notice.
func withNotice(_ notice: EngineNotice, _ body: (UnsafePointer<usher_notice>?) -> Void) {
  let error = notice.error
  withMessage(error) { message in
    let words = explanation(
      origin: error.origin, operation: error.operation, status: error.status, httpStatus: error.httpStatus,
      code: error.serviceCode, tlsFault: error.tlsFault)
    var mapped = usher_notice()
    mapped.struct_size = MemoryLayout<usher_notice>.size
    mapped.type = notice.kind.rawValue
    mapped.playback = OpaquePointer(bitPattern: notice.playback.handle)
    mapped.player = OpaquePointer(bitPattern: notice.playback.playerHandle)
    mapped.tag = notice.playback.tag
    mapped.error = mapError(error, message)
    mapped.summary = cText(words.summary)
    mapped.advice = cText(words.advice)
    body(&mapped)
  }
}

@inline(never)
func mapError(_ error: UsherError, _ message: UnsafePointer<CChar>?) -> usher_error {
  usher_error(
    status: error.status.rawValue, origin: error.origin.rawValue, operation: error.operation.rawValue,
    http_status: error.httpStatus,
    service_code: error.serviceCode, message: message, must_stop: error.mustStop ? 1 : 0,
    orphan_possible: error.orphanPossible ? 1 : 0, already_reported: error.isAlreadyReported ? 1 : 0,
    retry_after_ms: error.retryAfter, tls_fault: Int32(error.tlsFault.rawValue))
}

@inline(never)
private func withMessage(_ error: UsherError, _ body: (UnsafePointer<CChar>) -> Void) {
  error.message.withCString(body)
}

/// Calls `body` with the C form of an answer.
@inline(never)
func withResponse(_ answer: RequestResult, _ body: (UnsafePointer<usher_response_info>?) -> Void) {
  withMessage(answer.error) { message in
    if let data = answer.data {
      data.withBytes { bytes in
        var mapped = mapResponse(answer, bytes, message)
        body(&mapped)
      }
    } else {
      var mapped = mapResponse(answer, nil, message)
      body(&mapped)
    }
  }
}

@inline(never)
func mapResponse(
  _ answer: RequestResult, _ data: UnsafeBufferPointer<UInt8>?, _ message: UnsafePointer<CChar>?
) -> usher_response_info {
  var mapped = usher_response_info()
  mapped.struct_size = MemoryLayout<usher_response_info>.size
  mapped.data = data?.baseAddress
  mapped.data_size = data?.count ?? 0
  mapped.period_ms = answer.period
  mapped.renew_type = answer.renewType.rawValue
  mapped.type = answer.isRenewal ? USHER_LICENSE_RENEWAL : USHER_LICENSE_REQUEST
  mapped.error = mapError(answer.error, message)
  return mapped
}

/// Calls `body` with the bytes, or with NULL if they are empty.
func withBytes(_ bytes: [UInt8], _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
  bytes.isEmpty ? body(UnsafeBufferPointer(start: nil, count: 0)) : bytes.withUnsafeBufferPointer(body)
}

func withBytes(_ secret: Secret?, _ body: (UnsafeBufferPointer<UInt8>?) -> Void) {
  if let secret { secret.withBytes { body($0) } } else { body(nil) }
}
