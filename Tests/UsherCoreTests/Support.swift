import Testing

@testable import UsherCore

func secret(_ text: String) -> Secret { Secret(Array(text.utf8)) }

func text(_ secret: Secret?) -> String { secret.map { $0.withBytes { String(decoding: $0, as: UTF8.self) } } ?? "-" }

func withBytes<R>(_ bytes: [UInt8], _ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
  bytes.withUnsafeBufferPointer(body)
}

func withBytes<R>(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) -> R) -> R { withBytes(Array(text.utf8), body) }

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

/// What a scripted head-end answers.
enum Say {
  static func token(_ token: String?, period: PeriodField = .missing) -> SSMOutcome {
    var fields = SessionFields()
    fields.isObject = true
    fields.token = token.map { secret($0) }
    fields.period = period
    return .success(fields)
  }
  static func refused(_ code: Int64, http: Int32 = 400) -> SSMOutcome {
    .failure(WireFailure(.refused, httpStatus: http, serviceCode: code))
  }
  static func http(_ status: Int32, retryAfter: Milliseconds? = nil) -> SSMOutcome {
    .failure(WireFailure(.http, httpStatus: status, retryAfter: retryAfter))
  }
  static let unreachable = SSMOutcome.failure(WireFailure(.transport))
  /// The request may have arrived.
  static let lost = SSMOutcome.failure(WireFailure(.timeout, mayHaveTakenEffect: true))
  static let unreadable = SSMOutcome.failure(WireFailure(.protocolError, httpStatus: 200, mayHaveTakenEffect: true))
  static let done = SSMOutcome.success(SessionFields())
}

/// A policy without jitter, so that instants are round.
func steady(_ change: (inout SSPPolicy) -> Void = { _ in }) -> SSPPolicy {
  var policy = SSPPolicy()
  policy.jitter = 0
  change(&policy)
  return policy
}

func name(_ status: Status) -> String { String(string(status.name).dropFirst("USHER_E_".count)) }
