// Look-ups of 10,000 content ids in random order, hits and misses, and the cost of filling and churning. Run by Tests/measure/token-map.
import CPlatform

/// SplitMix64.
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

func nanoseconds(_ rounds: Int, _ body: () -> Void) -> Double {
  let start = up_boottime_ns()
  body()
  return Double(up_boottime_ns() - start) / Double(rounds)
}

func median(_ values: [Double]) -> Int { Int(values.sorted()[values.count / 2] + 0.5) }

func measure(entries: Int, keyBytes: Int) {
  var generator = Generator()
  var seed: UInt64 = 0
  withUnsafeMutableBytes(of: &seed) { up_random($0.baseAddress, 8) }
  let map = TokenMap(bound: entries, seed: seed)
  let keys = (0..<2 * entries).map { _ in (0..<keyBytes).map { _ in UInt8(truncatingIfNeeded: generator.next()) % 94 + 33 } }
  let token = Secret([UInt8](repeating: 0x74, count: 650))
  let filling = nanoseconds(entries) { for index in 0..<entries { keys[index].withUnsafeBufferPointer { _ = map.set($0, token, now: 0) } } }
  let rounds = 200_000
  let order = (0..<rounds).map { _ in Int(generator.next() % UInt64(entries)) }
  var (hits, misses): ([Double], [Double]) = ([], [])
  var found = 0
  for _ in 0..<9 {
    hits.append(nanoseconds(rounds) { for index in order { if keys[index].withUnsafeBufferPointer({ map.get($0, now: 0) }) != nil { found += 1 } } })
    misses.append(nanoseconds(rounds) { for index in order { if keys[entries + index].withUnsafeBufferPointer({ map.get($0,
      now: 0) }) != nil { found -= 1 } } })
  }
  let pruning = nanoseconds(rounds) { for index in order { keys[entries + index].withUnsafeBufferPointer { _ = map.set($0, token, now: 0) } } }
  guard found == 9 * rounds, map.count(now: 0) == entries else { return print("WRONG: found \(found), \(map.count(now: 0)) entries") }
  print("\(entries) entries, ids of \(keyBytes) bytes: look-up \(median(hits)) ns, of an unknown id \(median(misses)) ns; set \(Int(filling)) ns, set at the bound \(Int(pruning)) ns")
}

for keyBytes in [12, 36, 64] { measure(entries: 10_000, keyBytes: keyBytes) }
measure(entries: 100, keyBytes: 36)
