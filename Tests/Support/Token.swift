import UsherCore

/// A session token as it appears in a header: "s3.2" is the second token of session 3.
package struct Token: Hashable {
  package enum Kind: UInt8 {
    /// "s<session>.<generation>", given by the head-end.
    case session = 0x73
    /// "c<playback>.<number>": a content token that the host gives for one playback.
    case playback = 0x63
    /// "m<content>.<number>": a content token that comes from the token map.
    case content = 0x6D
  }

  package let kind: Kind
  /// The number of the session, playback or content to which the token belongs.
  package let owner: UInt64
  /// The number of the token among all tokens of the same session, playback or content; the first one has the number 1.
  package let generation: UInt64

  package init(_ kind: Kind, _ owner: UInt64, _ generation: UInt64) {
    self.kind = kind
    self.owner = owner
    self.generation = generation
  }

  package init?(_ bytes: some Sequence<UInt8>) {
    var letter: UInt8?
    var numbers: (UInt64, UInt64) = (0, 0)
    var isSecond = false
    for byte in bytes {
      if letter == nil {
        letter = byte
      } else if byte == 0x2E, !isSecond {
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
    guard isSecond, let kind = letter.flatMap({ Kind(rawValue: $0) }) else { return nil }
    self.init(kind, numbers.0, numbers.1)
  }

  package init?(_ secret: Secret) {
    guard let token = secret.withBytes({ Token($0) }) else { return nil }
    self = token
  }

  package var bytes: [UInt8] { [kind.rawValue] + decimal(owner) + [0x2E] + decimal(generation) }
  package var text: String { String(decoding: bytes, as: UTF8.self) }
  package var secret: Secret { Secret(bytes) }

  /// The tokens in the authorisation header of a request, in order. Other texts in the header are left out.
  package static func all(in headers: [Secret]) -> [Token] {
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

/// The digits of a number.
package func decimal(_ number: UInt64) -> [UInt8] {
  var digits: [UInt8] = []
  var rest = number
  repeat {
    digits.append(0x30 + UInt8(rest % 10))
    rest /= 10
  } while rest > 0
  digits.reverse()
  return digits
}
