public import CUsher
internal import UsherCore
internal import UsherEngine

private let version: StaticString = "0.1.0"
var versionText: [UInt8] { version.withUTF8Buffer { Array($0) } }

/// Implements `usher_version`; contract in `include/usher/base.h`.
@_cdecl("usher_version") @implementation
public func usher_version() -> UnsafePointer<CChar>! { cText(version) }

/// Implements `usher_status_name`; contract in `include/usher/error.h`.
@_cdecl("usher_status_name") @implementation
public func usher_status_name(_ status: Int32) -> UnsafePointer<CChar>! {
  cText(Status(rawValue: status)?.name ?? "USHER_E_UNKNOWN")
}

/// Implements `usher_status_message`; contract in `include/usher/error.h`.
@_cdecl("usher_status_message") @implementation
public func usher_status_message(_ status: Int32) -> UnsafePointer<CChar>! {
  cText(Status(rawValue: status)?.text ?? "an unknown status")
}

/// Implements `usher_event_name`; contract in `include/usher/event.h`.
@_cdecl("usher_event_name") @implementation
public func usher_event_name(_ type: Int32) -> UnsafePointer<CChar>! {
  cText(EventKind(rawValue: type)?.name ?? "UNKNOWN")
}

/// Implements `usher_origin_name`; contract in `include/usher/error.h`.
@_cdecl("usher_origin_name") @implementation
public func usher_origin_name(_ origin: Int32) -> UnsafePointer<CChar>! {
  cText(Origin(rawValue: origin)?.name ?? "unknown")
}

/// Implements `usher_operation_name`; contract in `include/usher/error.h`.
@_cdecl("usher_operation_name") @implementation
public func usher_operation_name(_ operation: Int32) -> UnsafePointer<CChar>! {
  cText(Operation(rawValue: operation)?.name ?? "unknown")
}

/// Implements `usher_error_explain`; contract in `include/usher/error.h`.
@_cdecl("usher_error_explain") @implementation
public func usher_error_explain(
  _ error: UnsafePointer<usher_error>!, _ out: UnsafeMutablePointer<usher_explanation>!
) -> Int32 {
  report { () throws(UsherError) in
    guard let given = error?.pointee, let out, let origin = Origin(rawValue: given.origin) else {
      throw UsherError(.invalidArgument)
    }
    let words = explanation(
      origin: origin, operation: Operation(rawValue: given.operation), status: Status(rawValue: given.status),
      httpStatus: given.http_status, code: given.service_code,
      tlsFault: UInt8(exactly: given.tls_fault).flatMap { TLSFault(rawValue: $0) })
    out.pointee = usher_explanation(
      summary: cText(words.summary), advice: cText(words.advice), known: words.isKnown ? 1 : 0,
      source: cText(words.source))
  }
}

/// Implements `usher_error_legacy_codes`; contract in `include/usher/error.h`.
@_cdecl("usher_error_legacy_codes") @implementation
public func usher_error_legacy_codes(
  _ error: UnsafePointer<usher_error>!, _ out: UnsafeMutablePointer<usher_legacy_codes>!
) -> Int32 {
  report { () throws(UsherError) in
    guard let error, let out else { throw UsherError(.invalidArgument) }
    let given = error.pointee
    guard let status = Status(rawValue: given.status), let origin = Origin(rawValue: given.origin),
      let operation = Operation(rawValue: given.operation)
    else {
      throw UsherError(.invalidArgument)
    }
    let codes = LegacyCodes(
      status: status, origin: origin, operation: operation, httpStatus: given.http_status,
      serviceCode: given.service_code)
    out.pointee = usher_legacy_codes(
      react_native: codes.reactNative, android_what: codes.androidWhat, android_extra: codes.androidExtra,
      apple_internal: codes.appleInternal,
      apple_code: codes.appleCode)
  }
}

/// Returns a static text as a C string. The compiler ends each static text with a NUL.
func cText(_ text: StaticString) -> UnsafePointer<CChar> {
  UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}
