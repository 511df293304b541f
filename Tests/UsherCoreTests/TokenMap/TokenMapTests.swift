import Testing

@testable import UsherCore

extension TokenMap {
  fileprivate func set(_ key: String, _ token: String, now: Milliseconds = 0) -> SetResult {
    withBytes(key) { set($0, secret(token), now: now) }
  }
  fileprivate func get(_ key: String, now: Milliseconds = 0) -> String? {
    withBytes(key) { get($0, now: now) }.map { text($0) }
  }
  fileprivate func remove(_ key: String, now: Milliseconds = 0) -> Bool { withBytes(key) { remove($0, now: now) } }
  fileprivate func pin(_ key: String, now: Milliseconds = 0) -> Pin? { withBytes(key) { pin($0, now: now) } }
}

@Suite struct TokenMapTests {
  @Test func token_set_isFoundUntilRemoved() {
    let map = TokenMap(seed: 1)
    #expect(map.get("a") == nil)
    #expect(map.set("a", "one") == .added && map.set("b", "two") == .added)
    #expect(map.get("a") == "one" && map.get("b") == "two" && map.count(now: 0) == 2)
    #expect(map.set("a", "three") == .replaced && map.get("a") == "three" && map.count(now: 0) == 2)
    #expect(map.remove("a") && !map.remove("a") && map.get("a") == nil && map.get("b") == "two")
    map.clear()
    #expect(map.count(now: 0) == 0 && map.get("b") == nil && map.set("b", "again") == .added)
  }

  @Test func keys_areBytes_notText() {
    let map = TokenMap(seed: 1)
    for key in ["é", "e\u{301}", "a\u{0}", "a", "A", "a ", "\u{0}"] { #expect(map.set(key, key) == .added) }
    for key in ["é", "e\u{301}", "a\u{0}", "a", "A", "a ", "\u{0}"] { #expect(map.get(key) == key) }
    let notText: [[UInt8]] = [[0xFF], [0xFF, 0xFE], [0x00, 0x00]]
    for key in notText { #expect(withBytes(key) { map.set($0, secret("x"), now: 0) } == .added) }
    #expect(map.count(now: 0) == 10)
  }

  @Test func keys_emptyOrTooLong_areRefused() {
    let map = TokenMap(seed: 1)
    #expect(map.set("", "x") == .badKey && map.get("") == nil && !map.remove("") && map.pin("") == nil)
    let most = [UInt8](repeating: 0x61, count: TokenMap.mostKeyBytes)
    #expect(withBytes(most) { map.set($0, secret("x"), now: 0) } == .added)
    for count in [TokenMap.mostKeyBytes + 1, 1_000_000] {
      #expect(withBytes([UInt8](repeating: 0x61, count: count)) { map.set($0, secret("x"), now: 0) } == .badKey)
      #expect(withBytes([UInt8](repeating: 0x61, count: count)) { map.get($0, now: 0) } == nil)
    }
    #expect(map.get(UnsafeBufferPointer(start: nil, count: 0), now: 0) == nil)
  }

  @Test func keys_ofEveryLength_areToldApart() {
    let map = TokenMap(seed: 9)
    let keys = (1...200).map { [UInt8](repeating: 0x61, count: $0) }
    for key in keys { #expect(withBytes(key) { map.set($0, secret("\(key.count)"), now: 0) } == .added) }
    for key in keys {
      #expect(text(withBytes(key) { map.get($0, now: 0) }) == "\(key.count)")
      for index in key.indices {
        var other = key
        other[index] = 0x62
        #expect(withBytes(other) { map.get($0, now: 0) } == nil)
      }
    }
  }

  @Test func bound_reached_takesTheOldest() {
    let map = TokenMap(bound: 3, seed: 1)
    for key in ["a", "b", "c"] { #expect(map.set(key, key) == .added) }
    #expect(map.set("a", "newer") == .replaced)
    #expect(map.set("d", "d") == .addedByPruning)
    #expect(
      map.get("b") == nil && map.get("a") == "newer" && map.get("c") == "c" && map.get("d") == "d"
        && map.count(now: 0) == 3)
    #expect(map.set("e", "e") == .addedByPruning && map.get("c") == nil)
  }

  @Test func bound_withEveryEntryPinned_refuses() {
    let map = TokenMap(bound: 2, seed: 1)
    #expect(map.set("a", "a") == .added && map.set("b", "b") == .added)
    let pins = [map.pin("a"), map.pin("b")].compactMap { $0 }
    #expect(pins.count == 2 && map.set("c", "c") == .full && map.get("c") == nil)
    #expect(map.set("a", "a2") == .replaced && map.get("a") == "a2")
    map.unpin(pins[1])
    #expect(map.set("c", "c") == .addedByPruning && map.get("b") == nil && map.get("a") == "a2")
  }

  @Test func bound_ofZero_refusesAll() {
    let map = TokenMap(bound: 0, seed: 1)
    #expect(map.set("a", "a") == .full && map.count(now: 0) == 0)
    #expect(TokenMap(bound: -1, seed: 1).set("a", "a") == .full)
  }

  @Test func pin_ofTwoPlaybacks_holdsUntilBothUnpin() {
    let map = TokenMap(bound: 1, seed: 1)
    #expect(map.set("a", "a") == .added)
    let (first, second) = (map.pin("a"), map.pin("a"))
    first.map { map.unpin($0) }
    #expect(map.set("b", "b") == .full)
    second.map { map.unpin($0) }
    #expect(map.set("b", "b") == .addedByPruning)
  }

  @Test func unpinned_entry_isAsOldAsItWas() {
    let map = TokenMap(bound: 3, seed: 1)
    for key in ["a", "b", "c"] { #expect(map.set(key, key) == .added) }
    map.pin("a").map { map.unpin($0) }
    #expect(map.set("d", "d") == .addedByPruning && map.get("a") == nil && map.get("b") == "b")
  }

  @Test func token_replacedWhilePinned_isSeenThroughThePin() {
    let map = TokenMap(bound: 1, seed: 1)
    #expect(map.set("a", "one") == .added)
    let pin = map.pin("a")
    #expect(map.set("a", "two") == .replaced)
    #expect(pin.map { text(map.token(of: $0)) } == "two")
    #expect(map.set("b", "b") == .full)
  }

  @Test func entry_removedWhilePinned_isGoneAndItsPinStale() {
    let map = TokenMap(bound: 1, seed: 1)
    #expect(map.set("a", "one") == .added)
    guard let pin = map.pin("a") else {
      Issue.record("no pin")
      return
    }
    let held = map.token(of: pin)
    #expect(map.remove("a") && map.get("a") == nil && map.token(of: pin) == nil && text(held) == "one")
    #expect(map.set("a", "two") == .added)
    guard let newer = map.pin("a") else {
      Issue.record("no pin")
      return
    }
    map.unpin(pin)
    map.unpin(pin)
    #expect(map.token(of: pin) == nil && map.set("b", "b") == .full, "a stale pin releases nothing")
    map.unpin(newer)
    map.unpin(newer)
    #expect(map.set("b", "b") == .addedByPruning)
  }

  @Test func pin_ofAClearedMap_isStale() {
    let map = TokenMap(seed: 1)
    #expect(map.set("a", "one") == .added)
    let pin = map.pin("a")
    map.clear()
    #expect(pin.flatMap { map.token(of: $0) } == nil)
    #expect(map.set("a", "two") == .added)
    #expect(pin.flatMap { map.token(of: $0) } == nil)
    pin.map { map.unpin($0) }
    #expect(map.get("a") == "two")
  }

  @Test func timeToLive_over_endsTheEntry() {
    let map = TokenMap(timeToLive: 100, seed: 1)
    #expect(map.set("a", "a", now: 0) == .added && map.set("b", "b", now: 50) == .added)
    #expect(
      map.get("a", now: 99) == "a" && map.get("a", now: 100) == nil && map.pin("a", now: 100) == nil
        && map.count(now: 100) == 1)
    #expect(
      map.set("b", "b2", now: 149) == .replaced && map.get("b", now: 248) == "b2" && map.get("b", now: 249) == nil)
    #expect(!map.remove("b", now: 249) && map.count(now: 249) == 0)
    #expect(map.set("b", "b3", now: 249) == .added)
  }

  @Test func timeToLive_ofAPinnedEntry_runsOutOnlyAfterwards() {
    let map = TokenMap(timeToLive: 100, seed: 1)
    #expect(map.set("a", "a") == .added)
    let pin = map.pin("a", now: 99)
    #expect(map.get("a", now: 1_000_000) == "a" && map.count(now: 1_000_000) == 1)
    pin.map { map.unpin($0) }
    #expect(map.get("a", now: 1_000_000) == nil && map.count(now: 1_000_000) == 0)
  }

  @Test func timeToLive_makesRoomBeforeTheBoundDoes() {
    let map = TokenMap(bound: 2, timeToLive: 100, seed: 1)
    #expect(map.set("a", "a", now: 0) == .added && map.set("b", "b", now: 60) == .added)
    #expect(map.set("c", "c", now: 100) == .added && map.get("b", now: 100) == "b")
  }

  @Test func clock_farAndBackwards_neverTraps() {
    let map = TokenMap(timeToLive: .max, seed: 1)
    #expect(map.set("a", "a", now: .max) == .added && map.get("a", now: 0) == "a" && map.get("a", now: .max) == "a")
    #expect(TokenMap(timeToLive: 0, seed: 1).set("a", "a") == .added)
  }

  @Test func twoMillionSetsAndRemoves_doNotGrowIt() {
    let map = TokenMap(bound: 1000, seed: 3)
    var key = [UInt8](repeating: 0, count: 8)
    let token = secret("t")
    var capacity = 0
    for round in 0..<2_000_000 {
      for place in 0..<8 { key[place] = UInt8(truncatingIfNeeded: (round &* 0x9E37_79B9) >> (8 &* place)) }
      key.withUnsafeBufferPointer { key in
        _ = map.set(key, token, now: 0)
        if round % 3 == 0 { _ = map.remove(key, now: 0) }
      }
      if round == 10_000 { capacity = map.capacity }
    }
    #expect(map.capacity == capacity && map.capacity <= 1024 && map.count(now: 0) == 1000)
  }

  @Test func tokens_ofRemovedEntries_areFreed() {
    let map = TokenMap(bound: 2, seed: 1)
    var token = secret("t")
    var isLast = token.isLast()
    #expect(isLast)
    for key in ["a", "b", "c", "d"] { #expect(withBytes(key) { map.set($0, token, now: 0) } != .full) }
    isLast = token.isLast()
    #expect(!isLast)
    #expect(map.remove("c") && map.set("d", "other") == .replaced)
    isLast = token.isLast()
    #expect(isLast)
  }
}

/// A slow and simple map with the same rules as `TokenMap`. The test compares the results of both.
private struct PlainMap {
  struct Entry {
    var token: String
    var order: Int
    var setAt: Milliseconds
    var pins: [Int]
  }
  var entries: [String: Entry] = [:]
  let bound: Int?
  let timeToLive: Milliseconds?
  var turn = 0

  mutating func expire(_ now: Milliseconds) {
    guard let timeToLive else { return }
    entries = entries.filter { !$0.value.pins.isEmpty || now - $0.value.setAt < timeToLive }
  }

  mutating func set(_ key: String, _ token: String, _ now: Milliseconds) -> TokenMap.SetResult {
    expire(now)
    turn += 1
    if let old = entries[key] {
      entries[key] = Entry(token: token, order: turn, setAt: now, pins: old.pins)
      return .replaced
    }
    var result = TokenMap.SetResult.added
    if let bound, entries.count >= bound {
      guard let oldest = entries.filter({ $0.value.pins.isEmpty }).min(by: { $0.value.order < $1.value.order }) else {
        return .full
      }
      entries[oldest.key] = nil
      result = .addedByPruning
    }
    entries[key] = Entry(token: token, order: turn, setAt: now, pins: [])
    return result
  }
}

@Suite struct TokenMapPropertyTests {
  @Test(arguments: 0..<40)
  func randomUse_isAsThePlainMapSays(seed: Int) {
    var dice = Dice(UInt64(seed))
    let bound = dice.one(in: 4) ? nil : Int(1 + dice.upTo(40))
    let timeToLive: Milliseconds? = dice.one(in: 2) ? nil : 20 + dice.upTo(200)
    let map = TokenMap(bound: bound, timeToLive: timeToLive, seed: dice.next())
    var plain = PlainMap(bound: bound, timeToLive: timeToLive)
    var pins: [(pin: TokenMap.Pin, key: String, id: Int)] = []
    let keys = (0..<Int(2 + dice.upTo(70))).map { "key \($0)" + String(repeating: "x", count: Int(dice.upTo(80))) }
    var now: Milliseconds = 0
    for step in 0..<3000 {
      let key = dice.pick(keys)
      switch dice.upTo(12) {
      case 0...4: #expect(map.set(key, "\(step)", now: now) == plain.set(key, "\(step)", now))
      case 5:
        plain.expire(now)
        #expect(map.remove(key, now: now) == (plain.entries.removeValue(forKey: key) != nil))
      case 6, 7:
        let pin = map.pin(key, now: now)
        plain.expire(now)
        #expect((pin == nil) == (plain.entries[key] == nil))
        if let pin {
          pins.append((pin, key, step))
          plain.entries[key]?.pins.append(step)
        }
      case 8, 9:
        guard !pins.isEmpty else { continue }
        let gone = pins.remove(at: Int(dice.upTo(UInt64(pins.count - 1))))
        map.unpin(gone.pin)
        plain.entries[gone.key]?.pins.removeAll { $0 == gone.id }
      case 10: now += dice.upTo(30)
      case 11 where dice.one(in: 100):
        map.clear()
        plain.entries = [:]
      default:
        plain.expire(now)
        #expect(map.get(key, now: now) == plain.entries[key]?.token)
      }
      if step % 50 == 0 {
        plain.expire(now)
        #expect(map.count(now: now) == plain.entries.count)
        for key in keys { #expect(map.get(key, now: now) == plain.entries[key]?.token) }
        for pin in pins {
          let own = plain.entries[pin.key].flatMap { $0.pins.contains(pin.id) ? $0.token : nil }
          #expect(map.token(of: pin.pin).map { text($0) } == own)
        }
      }
    }
  }
}

@Suite struct ByteHashTests {
  @Test func hash_ofManyKeys_spreads() {
    let hash = ByteHash(seed: 7)
    var seen: Set<UInt64> = []
    var low = [Int](repeating: 0, count: 64)
    for number in 0..<100_000 {
      let value = withBytes("content-\(number)") { hash.value(of: $0) }
      seen.insert(value)
      low[Int(value & 63)] += 1
    }
    #expect(seen.count == 100_000)
    #expect(low.allSatisfy { $0 > 1300 && $0 < 1850 }, "1562 each if it were perfect")
  }

  @Test func hash_ofOtherSeedsAndLengths_differs() {
    var seen: Set<UInt64> = []
    for seed in 0..<20 as Range<UInt64> {
      for count in 0..<100 {
        seen.insert(withBytes([UInt8](repeating: 0, count: count)) { ByteHash(seed: seed).value(of: $0) })
      }
    }
    #expect(seen.count == 2000)
    let one = ByteHash(seed: 1)
    #expect(withBytes("abc") { one.value(of: $0) } == withBytes("abc") { ByteHash(seed: 1).value(of: $0) })
  }
}
