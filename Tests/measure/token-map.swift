// Measures the token map: looks up 10,000 content ids that have a token, and ids that the map does not know, in random
// order. Also sets tokens. Measures the CPU time of the thread, and not the real time, because other programs on the
// machine affect the CPU time less. Prints the medians of 15 runs.
import CPlatform

/// The random number generator SplitMix64.
struct Generator {
  var state: UInt64 = 1
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

func cpuTime() -> Int {
  var now = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
  return now.tv_sec * 1_000_000_000 + now.tv_nsec
}

func median(_ values: [Double]) -> Int { Int(values.sorted()[values.count / 2] + 0.5) }

func measure(entries: Int, keyBytes: Int) {
  var generator = Generator()
  var seed: UInt64 = 0
  withUnsafeMutableBytes(of: &seed) { platform_random_bytes($0.baseAddress, 8) }
  let map = TokenMap(bound: entries, seed: seed)
  let keys = (0..<2 * entries).map { _ in
    (0..<keyBytes).map { _ in UInt8(truncatingIfNeeded: generator.next()) % 94 + 33 }
  }
  let rounds = 100_000
  let order = (0..<rounds).map { _ in Int(generator.next() % UInt64(entries)) }
  // The keys are in memory in the order of the look-ups, so that the measurement does not include slow reads of the
  // keys.
  let known = order.flatMap { keys[$0] }
  let unknown = order.flatMap { keys[entries + $0] }
  func each(_ all: [UInt8], _ body: (UnsafeBufferPointer<UInt8>) -> Void) -> Double {
    all.withUnsafeBufferPointer { bytes in
      let start = cpuTime()
      for round in 0..<rounds {
        body(UnsafeBufferPointer(rebasing: bytes[(round * keyBytes)..<((round + 1) * keyBytes)]))
      }
      return Double(cpuTime() - start) / Double(rounds)
    }
  }
  for index in 0..<entries {
    keys[index].withUnsafeBufferPointer { _ = map.set($0, Secret([UInt8](repeating: 0x74, count: 650)), now: 0) }
  }
  var (hits, misses): ([Double], [Double]) = ([], [])
  var found = 0
  for _ in 0..<15 {
    hits.append(each(known) { if map.get($0, now: 0) != nil { found += 1 } })
    misses.append(each(unknown) { if map.get($0, now: 0) != nil { found -= 1 } })
  }
  let token = Secret([UInt8](repeating: 0x74, count: 650))
  let replacing = each(known) { _ = map.set($0, token, now: 0) }
  let pruning = each(unknown) { _ = map.set($0, token, now: 0) }
  guard found == 15 * rounds, map.count(now: 0) == entries else {
    return print("WRONG: found \(found), \(map.count(now: 0)) entries")
  }
  let best = Int((hits.min() ?? 0) + 0.5)
  print(
    "\(entries) entries, ids of \(keyBytes) bytes: look-up \(median(hits)) ns (at best \(best)), "
      + "of an unknown id \(median(misses)) ns; "
      + "set again \(Int(replacing)) ns, set at the bound \(Int(pruning)) ns")
}

for keyBytes in [12, 36, 64] { measure(entries: 10_000, keyBytes: keyBytes) }
measure(entries: 100, keyBytes: 36)
