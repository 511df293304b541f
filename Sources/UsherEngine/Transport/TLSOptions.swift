internal import CCurl
internal import CGuard
internal import CPlatform
package import UsherCore

/// Which servers a context trusts, and the certificate with which it identifies itself.
package final class TLSOptions {
  private var texts = curl_shim_tls()

  private init() {}

  /// Copies and checks the options, each of which may be nil. This function reads the files, so that a wrong file or
  /// pass phrase fails here and not in every request; libcurl reads the files again for new connections.
  package static func checked(
    authorities: UnsafePointer<CChar>?, certificate: UnsafePointer<CChar>?, key: UnsafePointer<CChar>?,
    passphrase: UnsafePointer<CChar>?, pin: UnsafePointer<CChar>?
  ) throws(UsherError) -> TLSOptions {
    var given = curl_shim_tls(
      authorities: authorities, certificate: certificate, key: key, pin: pin, phrase: passphrase)
    let options = TLSOptions()
    guard curl_shim_copy_tls(&options.texts, &given) != 0 else { throw UsherError(.system) }
    guard CurlUsers.enter() else { throw UsherError(.system) }
    defer { CurlUsers.leave() }
    var status = Status.invalidArgument
    let text: StaticString
    switch curl_shim_check_tls(&options.texts) {
    case 0: return options
    case CURL_SHIM_TLS_SHORT: throw UsherError(.system)
    case CURL_SHIM_TLS_REFUSED:
      status = .tls
      text = "a certificate file has no certificate or key, or key and certificate do not belong together"
    case CURL_SHIM_TLS_AUTHORITIES: text = "ca_file: not a file that can be read"
    case CURL_SHIM_TLS_CERTIFICATE: text = "client_certificate_file: missing, or cannot be read"
    case CURL_SHIM_TLS_KEY: text = "client_key_file: not a file that can be read"
    default: text = "pinned_public_key: malformed, or not a file that can be read"
    }
    throw UsherError(status, message: string(text))
  }

  deinit { curl_shim_free_tls(&texts) }

  /// Sets the options of a libcurl handle.
  /// - Returns: false if libcurl refused one of them; then the handle must not be used.
  func set(_ easy: UnsafeMutableRawPointer) -> Bool { curl_shim_set_tls(easy, &texts, Self.hasAuthoritiesFile) == 0 }

  /// Writes the options to a record. Paths become absolute, because the process that reads the record may have another
  /// working directory.
  func write(to writer: inout RecordWriter) {
    let fields = [
      (USHER_FIELD_AUTHORITIES, texts.authorities), (USHER_FIELD_CERTIFICATE, texts.certificate),
      (USHER_FIELD_KEY, texts.key), (USHER_FIELD_PHRASE, texts.phrase), (USHER_FIELD_PIN, texts.pin)
    ]
    for (kind, text) in fields {
      guard let text else { continue }
      let isPath = kind != USHER_FIELD_PHRASE && (kind != USHER_FIELD_PIN || curl_shim_is_pin(text) == 0)
      let path = isPath ? curl_shim_absolute(text) : nil
      let used = path.map { UnsafePointer($0) } ?? text
      writer.add(kind, UnsafeRawBufferPointer(start: used, count: Int(platform_length(used)) + 1))
      curl_shim_free_text(path)
    }
  }

  private static let hasAuthoritiesFile = curl_shim_has_authorities_file()

  /// Sets the default TLS options of a libcurl handle, for a context to which the host gave no TLS options.
  static func setDefaults(_ easy: UnsafeMutableRawPointer) -> Bool {
    var none = curl_shim_tls()
    return curl_shim_set_tls(easy, &none, hasAuthoritiesFile) == 0
  }
}
