/// A server's message made safe to show: one line, at most 512 bytes, and nothing in it that looks like a token.
package func sanitised(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
  var out: [UInt8] = []
  var index = 0
  while index < bytes.count && out.count < 512 {
    var end = index
    while end < bytes.count && isTokenByte(bytes[end]) { end += 1 }
    if end - index > 40 {
      "[redacted]".utf8.forEach { out.append($0) }
      index = end
    } else if end > index {
      while index < end { out.append(bytes[index]); index += 1 }
    } else {
      out.append(bytes[index] < 0x20 || bytes[index] == 0x7F ? 0x20 : bytes[index])
      index += 1
    }
  }
  return String(decoding: out, as: UTF8.self)
}

/// Letters of base64, base64url and JWTs: a run of more than 40 of them is taken for a secret.
private func isTokenByte(_ byte: UInt8) -> Bool {
  switch byte {
  case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, 0x2B, 0x2D, 0x2E, 0x2F, 0x3D, 0x5F: return true
  default: return false
  }
}
