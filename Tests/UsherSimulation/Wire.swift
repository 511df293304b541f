import UsherCore

@testable import UsherEngine

/// A token as it stands in a header: "S<session>.<generation>", "C<playback>.<number>", "M<content>.<number>".
struct Token: Equatable {
  let letter: UInt8
  let first: UInt64
  let second: UInt64

  static let session: UInt8 = 0x53
  static let playback: UInt8 = 0x43
  static let content: UInt8 = 0x4D

  var bytes: [UInt8] { [letter] + decimal(first) + [0x2E] + decimal(second) }
  var text: String { String(decoding: bytes, as: UTF8.self) }

  init(_ letter: UInt8, _ first: UInt64, _ second: UInt64) {
    self.letter = letter
    self.first = first
    self.second = second
  }

  init?(_ text: Slice<UnsafeBufferPointer<UInt8>>) {
    guard let letter = text.first else { return nil }
    var numbers: (UInt64, UInt64) = (0, 0)
    var isSecond = false
    for byte in text.dropFirst() {
      if byte == 0x2E {
        isSecond = true
      } else {
        guard byte >= 0x30, byte <= 0x39 else { return nil }
        if isSecond {
          numbers.1 = numbers.1 &* 10 &+ UInt64(byte & 15)
        } else {
          numbers.0 = numbers.0 &* 10 &+ UInt64(byte & 15)
        }
      }
    }
    self.init(letter, numbers.0, numbers.1)
  }

  /// Those a request carries.
  static func all(in headers: [Secret]) -> [Token] {
    let name: StaticString = "nv-authorizations: "
    for header in headers {
      let found = header.withBytes { line -> [Token]? in
        let size = name.utf8CodeUnitCount
        guard line.count > size, name.withUTF8Buffer({ line.prefix(size).elementsEqual($0) }) else { return nil }
        return line[size...].dropLast().split(separator: 0x2C).compactMap { Token($0) }
      }
      if let found { return found }
    }
    return []
  }
}

func decimal(_ number: UInt64) -> [UInt8] {
  var digits: [UInt8] = []
  var rest = number
  repeat {
    digits.append(0x30 + UInt8(rest % 10))
    rest /= 10
  } while rest > 0
  digits.reverse()
  return digits
}

func secret(_ text: StaticString) -> Secret { text.withUTF8Buffer { Secret($0) } }

/// What the head-end answers.
enum Reply {
  case refusal(status: Int32, code: UInt64)
  case session(Token, period: Milliseconds?)
  case license(KeySystem, Token?, isEnforced: Bool?)
  case done

  var isGood: Bool {
    if case .refusal = self { return false }
    return true
  }
  /// The session token in it.
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
    case .fairPlay: return Secret(Array("{\"CkcMessage\":\"Zm9v\"".utf8) + more + [0x7D])
    case .widevine: return Secret(Array("{\"license\":[\"Zm9v\"]".utf8) + more + [0x7D])
    case .clearKey: return Secret(Array("{\"keys\":[{\"kty\":\"oct\",\"kid\":\"a\",\"k\":\"b\"}]".utf8) + more + [0x7D])
    case .playReady:
      if fields.isEmpty { return secret("<soap><License>Zm9v</License></soap>") }
      return Secret(Array("<soap><CustomData>{".utf8) + fields + Array("}</CustomData></soap>".utf8))
    }
  }
}
