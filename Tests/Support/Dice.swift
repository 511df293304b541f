/// A small generator of random numbers (SplitMix64). The same seed always gives the same numbers, and so the same test.
package struct Dice: RandomNumberGenerator {
  private var state: UInt64

  package init(_ seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return mixBits(state)
  }

  package mutating func upTo(_ most: UInt64) -> UInt64 { next() % (most + 1) }
  package mutating func between(_ least: UInt64, _ most: UInt64) -> UInt64 { least + upTo(most - least) }
  package mutating func one(in count: UInt64) -> Bool { next() % count == 0 }
  package mutating func pick<T>(_ choices: [T]) -> T { choices[Int(next() % UInt64(choices.count))] }

  /// Returns a random number between `least` and `most`. All orders of magnitude have the same probability: between 1
  /// and 1000, a number from 1 to 2 is about as frequent as a number from 256 to 512.
  package mutating func spread(_ least: UInt64, _ most: UInt64) -> UInt64 {
    var doublings: UInt64 = 0
    while least << (doublings + 1) <= most { doublings += 1 }
    let top = least << upTo(doublings)
    return between(top, min(2 * top, max(most, top)))
  }
}

/// Mixes `value`, as the last step of SplitMix64 does: each bit of the result depends on every bit of `value`.
package func mixBits(_ value: UInt64) -> UInt64 {
  var mixed = value
  mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
  mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
  return mixed ^ (mixed >> 31)
}
