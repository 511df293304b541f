internal import CCurl
internal import CGuard
internal import UsherCore

/// Whether libcurl uses OpenSSL, which encrypts the journals.
package func canEncryptJournals() -> Bool { curl_shim_can_encrypt() != 0 }

/// Protects one page of a journal. With a key, encrypts the records, and computes tags that show whether somebody has
/// changed the header or a record. Without a key, the records are in clear, with checksums. Only one thread at a time
/// may use an object of this type.
final class JournalCipher {
  private let salt: [UInt8]
  /// The key of the page; nil: the records are in clear.
  private let key: Secret?
  /// OpenSSL's cipher with this key.
  private let context: UnsafeMutableRawPointer?

  /// - Parameter key: the host's key; nil: the records are in clear.
  /// - Returns: nil if OpenSSL is missing or the system is short of memory.
  static func make(hostKey: Secret?, salt: [UInt8]) -> JournalCipher? {
    guard let hostKey else { return JournalCipher(salt: salt, key: nil, context: nil) }
    guard CurlUsers.enter() else { return nil }
    defer { CurlUsers.leave() }
    let text = Array(USHER_JOURNAL_PURPOSE.utf8) + salt
    var isDerived = false
    let key = Secret(count: Int(CURL_SHIM_KEY_SIZE)) { target in
      isDerived = hostKey.withBytes { curl_shim_hmac($0.baseAddress, text, text.count, target.baseAddress) == 0 }
    }
    guard isDerived, let context = key.withBytes({ curl_shim_cipher_new($0.baseAddress) }) else { return nil }
    return JournalCipher(salt: salt, key: key, context: context)
  }

  private init(salt: [UInt8], key: Secret?, context: UnsafeMutableRawPointer?) {
    self.salt = salt
    self.key = key
    self.context = context
  }

  deinit {
    // If OpenSSL has ended, OpenSSL has freed the cipher.
    guard context != nil, CurlUsers.enter() else { return }
    curl_shim_cipher_free(context)
    CurlUsers.leave()
  }

  var isClear: Bool { key == nil }

  /// Returns the tag of a header: zeros if the records are in clear; nil if OpenSSL has ended or fails.
  func tag(_ header: usher_journal_header) -> [UInt8]? {
    var tag = [UInt8](repeating: 0, count: 32)
    guard let key else { return tag }
    guard CurlUsers.enter() else { return nil }
    defer { CurlUsers.leave() }
    let result = withUnsafeBytes(of: header) { bytes in
      key.withBytes { key in
        tag.withUnsafeMutableBufferPointer {
          curl_shim_hmac(key.baseAddress, bytes.baseAddress, usher_journal_tagged_size(), $0.baseAddress)
        }
      }
    }
    return result == 0 ? tag : nil
  }

  /// If there is a key, encrypts the record or update in a copy. Then writes the copy's head with the tag or checksum.
  /// - Parameters:
  ///   - number: the number of the copy in its page (see journal.h).
  ///   - length: how many bytes follow the head.
  func seal(_ copy: UnsafeMutableRawBufferPointer, number: Int, sequence: UInt64, length: Int) -> Bool {
    var head = usher_journal_copy()
    head.sequence = sequence
    head.length = UInt64(length)
    guard crypt(&head, copy, number, encrypts: true) else { return false }
    copy.storeBytes(of: head, as: usher_journal_copy.self)
    return true
  }

  /// Checks a copy and decrypts the record or update in it.
  /// - Returns: its sequence and its length; nil if the copy is not valid.
  func open(_ copy: UnsafeMutableRawBufferPointer, number: Int) -> (sequence: UInt64, length: Int)? {
    guard copy.count >= MemoryLayout<usher_journal_copy>.size else { return nil }
    var head = copy.loadUnaligned(as: usher_journal_copy.self)
    guard head.sequence > 0, head.length <= UInt64(copy.count &- MemoryLayout<usher_journal_copy>.size),
      head.length % 8 == 0, crypt(&head, copy, number, encrypts: false)
    else { return nil }
    return (head.sequence, Int(head.length))
  }

  /// With a key, encrypts or decrypts the bytes of a copy. Without a key, calculates or checks their checksum.
  /// - Returns: false if the tag or the checksum is wrong, or if OpenSSL fails.
  private func crypt(
    _ head: inout usher_journal_copy, _ copy: UnsafeMutableRawBufferPointer, _ number: Int, encrypts: Bool
  ) -> Bool {
    let body = copy.baseAddress.map { $0 + MemoryLayout<usher_journal_copy>.size }
    let pair = UInt32(truncatingIfNeeded: number / 2)
    guard context != nil else {
      let sum = usher_journal_checksum(salt, pair, head.sequence, body, head.length)
      return withUnsafeMutableBytes(of: &head.tag) { tag in
        if encrypts { tag.storeBytes(of: sum, as: UInt64.self) }
        return tag.loadUnaligned(as: UInt64.self) == sum
      }
    }
    guard CurlUsers.enter() else { return false }
    defer { CurlUsers.leave() }
    let size = Int32(truncatingIfNeeded: head.length)
    var nonce: (UInt32, UInt32, UInt32) = (
      pair, UInt32(truncatingIfNeeded: head.sequence), UInt32(truncatingIfNeeded: head.sequence >> 32)
    )
    return withUnsafeBytes(of: &nonce) { nonce in
      withUnsafeMutableBytes(of: &head.tag) { tag in
        curl_shim_crypt(
          context, nonce.bindMemory(to: UInt8.self).baseAddress, body, size,
          tag.bindMemory(to: UInt8.self).baseAddress, encrypts ? 1 : 0) == 0
      }
    }
  }
}
