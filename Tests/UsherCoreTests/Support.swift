@_exported import TestSupport
import Testing

@testable import UsherCore

/// The replies that a test can give to a machine.
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
  /// The request failed without a reply. The request may have arrived at the server.
  static let lost = SSMOutcome.failure(WireFailure(.timeout, mayHaveTakenEffect: true))
  static let unreadable = SSMOutcome.failure(WireFailure(.protocolError, httpStatus: 200, mayHaveTakenEffect: true))
  static let done = SSMOutcome.success(SessionFields())
}

/// A policy without jitter, so that all times are round numbers.
func steady(_ change: (inout SSPPolicy) -> Void = { _ in }) -> SSPPolicy {
  var policy = SSPPolicy()
  policy.jitter = 0
  change(&policy)
  return policy
}

func name(_ status: Status) -> String { String(string(status.name).dropFirst("USHER_E_".count)) }

/// Returns up to `most` parts, one after another: each is a random choice from `pieces`, or a few random bytes.
func hostile(_ dice: inout Dice, _ pieces: [String], upTo most: UInt64 = 14) -> [UInt8] {
  var made: [UInt8] = []
  for _ in 0..<dice.upTo(most) {
    if dice.one(in: 5) {
      for _ in 0...dice.upTo(8) { made.append(UInt8(truncatingIfNeeded: dice.next())) }
    } else {
      made += bytes(dice.pick(pieces))
    }
  }
  return made
}
