import TestSupport
import UsherCore

@testable import UsherEngine

/// A reply of the head-end.
enum Reply {
  case refusal(status: Int32, code: UInt64)
  case session(Token, period: Milliseconds?)
  case license(KeySystem, Token?, isEnforced: Bool?)
  case done

  init(_ answer: HeadEnd.Answer, period: Milliseconds?) {
    switch answer {
    case .opened(let token), .renewed(let token): self = .session(token, period: period)
    case .accepted: self = .done
    case .refused(let refusal): self = .refusal(status: 400, code: refusal.rawValue)
    }
  }

  var isGood: Bool {
    if case .refusal = self { return false }
    return true
  }
  /// The session token that the reply has; nil if it has none.
  var token: Token? {
    switch self {
    case .session(let token, _), .license(_, let token?, _): return token
    default: return nil
    }
  }

  var response: HTTPResponse {
    switch self {
    case .refusal(let status, let code):
      return HTTPResponse(
        status: status, body: Secret(Array("{\"errorCode\":".utf8) + decimal(code) + Array(",\"message\":\"no\"}".utf8))
      )
    case .session(let token, let period):
      var body = Array("{\"sessionToken\":\"".utf8) + token.bytes
      if let period {
        body += Array("\",\"heartbeat\":".utf8) + decimal(period / 1000) + [0x7D]
      } else {
        body += [0x22, 0x7D]
      }
      return HTTPResponse(status: 200, body: Secret(body))
    case .license(let system, let token, let enforced):
      return HTTPResponse(status: 200, body: Reply.license(system, token, enforced))
    case .done: return HTTPResponse(status: 200, body: secret("{}"))
    }
  }

  private static func license(_ system: KeySystem, _ token: Token?, _ enforced: Bool?) -> Secret {
    var fields: [UInt8] = []
    if let token { fields += Array("\"sessionToken\":\"".utf8) + token.bytes + [0x22] }
    if let enforced {
      fields += Array((fields.isEmpty ? "" : ",").utf8) + Array("\"sessionDrmEnforced\":\(enforced)".utf8)
    }
    let more = (fields.isEmpty ? [] : [0x2C]) + fields
    switch system {
    case .fairPlay: return Secret(Array("{\"CkcMessage\":\"+/v7+/v7+/v7+/v7+/v7+/v7\"".utf8) + more + [0x7D])
    case .widevine: return Secret(Array("{\"license\":[\"+/v7+/v7+/v7+/v7+/v7+/v7\"]".utf8) + more + [0x7D])
    case .clearKey: return Secret(Array("{\"keys\":[{\"kty\":\"oct\",\"kid\":\"a\",\"k\":\"b\"}]".utf8) + more + [0x7D])
    case .playReady:
      if fields.isEmpty { return secret("<soap><License>Zm9v</License></soap>") }
      return Secret(Array("<soap><CustomData>{".utf8) + fields + Array("}</CustomData></soap>".utf8))
    }
  }
}
