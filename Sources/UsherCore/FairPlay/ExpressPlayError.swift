/// An error from an ExpressPlay server. ExpressPlay's codes are negative, and have other meanings than the codes of the
/// SSM.
package struct ExpressPlayError: Equatable, Sendable {
  /// The server's number for the error; 0 if the reply has no readable number.
  package let code: Int64
  /// The server's message, made safe to show. If the reply has no message, this is the published meaning of the code.
  /// If no meaning is published either, the text is empty.
  package let message: String

  package init(code: Int64, message: String) {
    self.code = code
    self.message = message.isEmpty ? ExpressPlayError.meaning(of: code).map { string($0) } ?? "" : message
  }

  /// Returns the published meaning of a code; nil if none is published.
  package static func meaning(of code: Int64) -> StaticString? {
    switch code {
    case -2002: return "the token has expired"
    case -2003: return "the token is not valid for this address"
    case -2005, -2027: return "the content key is missing or invalid"
    case -2008, -2034, -2040: return "the output control is invalid"
    case -2017: return "the customer authenticator is missing"
    case -2018: return "the customer authenticator is invalid"
    case -2019: return "the account has no tokens left"
    case -2025 ... -2020: return "the rights or the rental period are invalid"
    case -2030, -2031: return "the account may not do this"
    case -2033: return "the cookie is invalid"
    case -2037 ... -2035: return "the extension is invalid"
    case -3004: return "the error format is invalid"
    case -4001: return "the device could not be authenticated"
    case -4010: return "the token is invalid"
    case -4022 ... -4018: return "the key id is missing or invalid"
    case -4024: return "the key encryption key is invalid"
    case -5003: return "the flags are invalid"
    case -6001: return "the FairPlay extension is invalid"
    case -6002: return "the token is of another type"
    case -6003: return "the initialisation vector is missing or invalid"
    case -6004: return "the CKC could not be made"
    case -6005: return "the key data is invalid"
    case -6006: return "the account is not authorised for FairPlay"
    case -6007: return "the rental period is invalid"
    case -6008: return "FairPlay tokens cannot be bound to a device"
    case -6009: return "FairPlay is disabled"
    default: return nil
    }
  }
}
