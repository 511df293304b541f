// Functions on bytes, since the sources do not use Foundation.

/// Returns an ASCII letter in lower case, and any other byte unchanged.
package func lowercased(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }

package func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

/// Copies as many bytes as `target` has room for.
package func copy(
  _ bytes: UnsafeBufferPointer<UInt8>, into target: UnsafeMutableBufferPointer<UInt8>, at start: Int = 0
) {
  guard start >= 0, start < target.count else { return }
  let count = min(bytes.count, target.count - start)
  guard count > 0, let from = bytes.baseAddress, let to = target.baseAddress else { return }
  UnsafeMutableRawPointer(to + start).copyMemory(from: from, byteCount: count)
}

/// Compares bytes without regard to the case of ASCII letters.
package func equalIgnoringCase(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
  guard a.count == b.count else { return false }
  var others = b.makeIterator()
  for byte in a {
    guard let other = others.next(), lowercased(byte) == lowercased(other) else { return false }
  }
  return true
}

/// Returns the index of the first `needle` in `hay` at or after `start`.
package func firstIndex(of needle: [UInt8], in hay: UnsafeBufferPointer<UInt8>, from start: Int = 0) -> Int? {
  guard !needle.isEmpty, start >= 0, hay.count >= needle.count else { return nil }
  var at = start
  while at <= hay.count - needle.count {
    var length = 0
    while length < needle.count && hay[at + length] == needle[length] { length += 1 }
    if length == needle.count { return at }
    at += 1
  }
  return nil
}

/// Whether the bytes can be a header value: at most 64 KiB, at least one character that is not a blank, and no control
/// characters except the tab.
package func isHeaderSafe(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
  if bytes.count > 1 << 16 || !bytes.contains(where: { $0 > 0x20 }) { return false }
  return isPlain(bytes) || !hasControl(bytes[...])
}

/// Returns whether there are at least 32 bytes, and all are ASCII without control characters. Most tokens pass this
/// quick test.
private func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
  let last = bytes.count - 32
  guard last >= 0, let raw = UnsafeRawPointer(bytes.baseAddress) else { return false }
  let (one, least) = (SIMD16<Int8>(repeating: 1), SIMD16<Int8>(repeating: 0x21))
  var isOther = SIMDMask<SIMD16<Int8>>(repeating: false)
  /// Looks at 32 bytes.
  func look(at: Int) {
    // The code reads each byte as a signed number and adds 1. So DEL and all higher bytes become negative, except that
    // 255 becomes 0. One comparison then finds all these bytes and the control characters.
    isOther = isOther .| (raw.loadUnaligned(fromByteOffset: at, as: SIMD16<Int8>.self) &+ one .< least)
    isOther = isOther .| (raw.loadUnaligned(fromByteOffset: at &+ 16, as: SIMD16<Int8>.self) &+ one .< least)
  }
  var at = 0
  while at < last {
    look(at: at)
    at &+= 32
  }
  look(at: last)
  return !any(isOther)
}

/// Whether the bytes have a control character that a header value must not have. A tab is allowed.
package func hasControl(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
  bytes.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }
}
