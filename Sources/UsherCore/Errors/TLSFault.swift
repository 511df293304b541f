/// Why there was no secure connection, with the numbers that the header gives (`USHER_TLS_FAULT_…`).
package enum TLSFault: UInt8, Sendable, CaseIterable {
  case none = 0
  case authority, expired, notYetValid, name, pin, clientCertificate

  /// The fault in one line; empty for `none`.
  package var text: StaticString {
    switch self {
    case .none: return ""
    case .authority: return "the server's certificate is not from a trusted authority"
    case .expired: return "the server's certificate has expired"
    case .notYetValid: return "the server's certificate is not valid yet"
    case .name: return "the server's certificate is for another host name"
    case .pin: return "the server's public key is not the pinned one"
    case .clientCertificate: return "the server refuses the client certificate, or asks for one"
    }
  }
}
