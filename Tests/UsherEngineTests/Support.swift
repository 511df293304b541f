import Testing

@testable import UsherCore
@testable import UsherEngine

func secret(_ text: String) -> Secret { Secret(Array(text.utf8)) }

func text(_ secret: Secret?) -> String { secret.map { $0.withBytes { String(decoding: $0, as: UTF8.self) } } ?? "-" }

/// A small generator (SplitMix64): same seed, same test.
struct Dice: RandomNumberGenerator {
  private var state: UInt64
  init(_ seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
  mutating func upTo(_ most: UInt64) -> UInt64 { next() % (most + 1) }
  mutating func one(in count: UInt64) -> Bool { next() % count == 0 }
  mutating func pick<T>(_ choices: [T]) -> T { choices[Int(next() % UInt64(choices.count))] }
}

func endpoint(_ path: String, host: String = "head-end") -> Endpoint {
  Endpoint(url: Array("https://\(host)/\(path)".utf8) + [0], origin: Array(host.utf8), isLoopback: false)
}

func request(_ path: String = "x", host: String = "head-end", urgent: Bool = false) -> HTTPRequest {
  HTTPRequest(method: .post, endpoint: endpoint(path, host: host), headers: [], body: nil, isUrgent: urgent, tokens: [])
}
