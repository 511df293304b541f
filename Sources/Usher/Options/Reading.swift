internal import CPlatform
internal import CUsher
internal import UsherCore

// Reads and checks what the host passed.

// Reasons why an argument is refused.
var isMissing: StaticText { ": missing" }
var isUnknown: StaticText { ": unknown value" }
var isTooLarge: StaticText { ": too large" }
var isTooLateToTearDown: StaticText { ": the library no longer has the token of the session that was left" }
private var isTooLong: StaticText { ": too long" }

/// Reads a C string without its NUL; returns nil for NULL.
@inline(never)
func bytes(_ text: UnsafePointer<CChar>?, most: Int = 1 << 16, _ field: StaticText) throws(UsherError) -> [UInt8]? {
  guard let text else { return nil }
  let count = platform_strnlen(text, most + 1)
  guard count <= most else { throw refused(field, isTooLong) }
  return (0..<count).map { UInt8(bitPattern: text[$0]) }
}

/// Reads a C string with its NUL, for libcurl; returns nil for NULL.
func cString(_ text: UnsafePointer<CChar>?, _ field: StaticText) throws(UsherError) -> [UInt8]? {
  try bytes(text, field).map { $0 + [0] }
}

/// Reads a header value that may be a token; returns nil for NULL.
@inline(never)
func token(_ text: UnsafePointer<CChar>?, _ field: StaticText) throws(UsherError) -> Secret? {
  let secret = try secretText(text, field)
  if let secret, !secret.withBytes(isHeaderSafe) {
    throw refused(field, ": empty, blank, or has a character that no header can carry")
  }
  return secret
}

/// Reads a text of up to 64 KiB; returns nil for NULL.
func secretText(_ text: UnsafePointer<CChar>?, _ field: StaticText) throws(UsherError) -> Secret? {
  guard let text else { return nil }
  let count = platform_strnlen(text, (1 << 16) + 1)
  guard count <= 1 << 16 else { throw refused(field, isTooLong) }
  return UnsafeRawPointer(text).withMemoryRebound(to: UInt8.self, capacity: max(count, 1)) {
    Secret(UnsafeBufferPointer(start: $0, count: count))
  }
}

/// Reads a header value, which may be empty; returns nil for NULL.
func headerValue(_ text: UnsafePointer<CChar>?, _ field: StaticText) throws(UsherError) -> Secret? {
  guard let text else { return nil }
  return text.pointee == 0 ? Secret([]) : try token(text, field)
}

/// Reads a content or asset identifier of up to 64 KiB; returns an empty array for NULL.
@inline(never)
func identifier(_ pointer: UnsafePointer<UInt8>?, _ count: Int, _ field: StaticText) throws(UsherError) -> [UInt8] {
  guard count >= 0, count <= 1 << 16, pointer != nil || count == 0 else {
    throw refused(field, ": missing, or too long")
  }
  return Array(UnsafeBufferPointer(start: pointer, count: pointer == nil ? 0 : count))
}

/// Reads a content or asset identifier of 1 byte to 64 KiB.
func neededIdentifier(
  _ pointer: UnsafePointer<UInt8>?, _ count: Int, _ field: StaticText
) throws(UsherError) -> [UInt8] {
  let bytes = try identifier(pointer, count, field)
  guard !bytes.isEmpty else { throw refused(field, isMissing) }
  return bytes
}

/// Reads a payload of 1 byte to 1 MiB.
@inline(never)
func payload(_ pointer: UnsafePointer<UInt8>?, _ count: Int, _ field: StaticText) throws(UsherError) -> Secret {
  guard let pointer, count > 0, count <= 1 << 20 else { throw refused(field, ": missing, empty or too long") }
  return Secret(UnsafeBufferPointer(start: pointer, count: count))
}

/// Returns the value of an option: the default if the option is 0, nil if it is USHER_OFF.
func choice(_ value: UInt32, default standard: UInt32) -> UInt32? {
  value == UInt32.max ? nil : (value == 0 ? standard : value)
}

func milliseconds(_ value: UInt32, default standard: Milliseconds) -> Milliseconds {
  value == 0 ? standard : Milliseconds(value)
}

/// Reads the scheme of a URL; returns nil for NULL.
func schemeName(_ text: UnsafePointer<CChar>?, _ field: StaticText) throws(UsherError) -> [UInt8]? {
  guard let scheme = try bytes(text, most: 64, field) else { return nil }
  guard let first = scheme.first, lowercased(first) >= 0x61, lowercased(first) <= 0x7A, scheme.allSatisfy(isSchemeByte)
  else {
    throw refused(field, ": not the scheme of a URL")
  }
  return scheme
}

private func isSchemeByte(_ byte: UInt8) -> Bool {
  let small = lowercased(byte)
  return isDigit(byte) || (small >= 0x61 && small <= 0x7A) || byte == 0x2B || byte == 0x2D || byte == 0x2E
}

/// Converts a closing mode (`USHER_CLOSE_…`); nil means the default of the delegate.
func closeMode(_ mode: Int32) throws(UsherError) -> SSMSession.Ending? {
  switch mode {
  case USHER_CLOSE_DEFAULT: return nil
  case USHER_CLOSE_TEARDOWN: return .teardown
  case USHER_CLOSE_LEAVE: return .leave
  default: throw refused("mode", isUnknown)
  }
}

func contentIDRule(_ rule: Int32) throws(UsherError) -> ContentIdentifier {
  switch rule {
  case USHER_CONTENT_ID_DECODED_JSON: return .decodedJSON
  case USHER_CONTENT_ID_DECODED_BASE64: return .decodedBase64
  case USHER_CONTENT_ID_HOST: return .hostOnly
  case USHER_CONTENT_ID_AFTER_SCHEME: return .everythingAfterScheme
  case USHER_CONTENT_ID_AFTER_SEMICOLON: return .afterLastSemicolon
  case USHER_CONTENT_ID_WHOLE_URL: return .wholeURL
  default: throw refused("content_id_rule", isUnknown)
  }
}
