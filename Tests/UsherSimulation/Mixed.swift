import TestSupport

/// Returns a pseudo-random number that depends only on the arguments. So when the search for a shorter story removes
/// parts of the story, the numbers of the other parts stay the same.
func mixed(_ a: UInt64, _ b: UInt64, _ c: UInt64 = 0, _ d: UInt64 = 0) -> UInt64 {
  mixBits(mixBits(mixBits(a &+ 0x9E37_79B9_7F4A_7C15) ^ b) &+ mixBits(c &* 0xD6E8_FEB8_6659_FD93 ^ d))
}
