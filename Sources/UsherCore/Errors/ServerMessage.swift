/// Makes a server's message safe to show: one line of at most 512 bytes, without the tokens that were sent and without
/// any other text that looks like a token.
package func sanitised(_ bytes: UnsafeBufferPointer<UInt8>, hiding secrets: [Secret] = []) -> String {
  var out: [UInt8] = []
  var index = 0
  while index < bytes.count && out.count < 512 {
    if let length = secretLength(bytes, at: index, secrets) {
      "[redacted]".utf8.forEach { out.append($0) }
      index += length
      continue
    }
    var end = index
    while end < bytes.count && isTokenByte(bytes[end]) { end += 1 }
    if end - index > 40 {
      "[redacted]".utf8.forEach { out.append($0) }
      index = end
    } else if end > index {
      // Copy one byte only: a shorter secret may begin at one of the next bytes of this run.
      out.append(bytes[index])
      index += 1
    } else {
      out.append(bytes[index] < 0x20 || bytes[index] == 0x7F ? 0x20 : bytes[index])
      index += 1
    }
  }
  return String(decoding: cutAtCharacter(out), as: UTF8.self)
}

/// Cuts the message before the first character that does not fit into 512 bytes. A byte that is not UTF-8 counts as the
/// three bytes of U+FFFD, which replaces it.
private func cutAtCharacter(_ bytes: [UInt8]) -> [UInt8] {
  var shown = Array(String(decoding: bytes, as: UTF8.self).utf8.prefix(513))
  if shown.count > 512 { while let last = shown.popLast(), last & 0xC0 == 0x80 {} }
  return shown
}

/// Returns the length of the secret that begins at `index`; nil if none begins there.
private func secretLength(_ bytes: UnsafeBufferPointer<UInt8>, at index: Int, _ secrets: [Secret]) -> Int? {
  for secret in secrets where secret.count > 0 && bytes.count - index >= secret.count {
    let isHere = secret.withBytes { word in
      for offset in 0..<word.count where bytes[index + offset] != word[offset] { return false }
      return true
    }
    if isHere { return secret.count }
  }
  return nil
}

/// Returns whether a byte occurs in base64, base64url and JWTs. A run of more than 40 such bytes counts as a secret.
private func isTokenByte(_ byte: UInt8) -> Bool {
  switch byte {
  case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, 0x2B, 0x2D, 0x2E, 0x2F, 0x3D, 0x5F: return true
  default: return false
  }
}
