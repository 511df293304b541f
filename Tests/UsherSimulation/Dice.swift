/// A small generator (SplitMix64): same seed, same story.
struct Dice {
  private var state: UInt64
  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return finish(state)
  }
  mutating func upTo(_ most: UInt64) -> UInt64 { next() % (most + 1) }
  mutating func between(_ least: UInt64, _ most: UInt64) -> UInt64 { least + upTo(most - least) }
  mutating func one(in count: UInt64) -> Bool { next() % count == 0 }
  mutating func pick<T>(_ choices: [T]) -> T { choices[Int(next() % UInt64(choices.count))] }

  /// Every order of magnitude is as likely.
  mutating func spread(_ least: UInt64, _ most: UInt64) -> UInt64 {
    var doublings: UInt64 = 0
    while least << (doublings + 1) <= most { doublings += 1 }
    let top = least << upTo(doublings)
    return between(top, min(2 * top, max(most, top)))
  }
}

private func finish(_ value: UInt64) -> UInt64 {
  var z = value
  z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
  z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
  return z ^ (z >> 31)
}

/// A number that depends on nothing but these, so that it stays what it is when other parts of a story are left out.
func mixed(_ a: UInt64, _ b: UInt64, _ c: UInt64 = 0, _ d: UInt64 = 0) -> UInt64 {
  finish(finish(finish(a &+ 0x9E37_79B9_7F4A_7C15) ^ b) &+ finish(c &* 0xD6E8_FEB8_6659_FD93 ^ d))
}
