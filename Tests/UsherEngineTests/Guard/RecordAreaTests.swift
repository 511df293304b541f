import CGuard
import Testing

@testable import UsherCore
@testable import UsherEngine

@Suite struct RecordAreaTests {
  private func record(
    _ token: String, addresses: String? = nil, body: String = "{}", header: String = "t"
  ) -> RecoveryRecord {
    RecoveryRecord(
      request: HTTPRequest(
        method: .post, endpoint: endpoint("teardown"), headers: [Secret(Array("\(header): \(token)\0".utf8))],
        body: Secret(Array(body.utf8)), isUrgent: true, tokens: []),
      token: secret(token), addresses: addresses.map { Array($0.utf8) + [0] }, cookies: [], lifetime: 40_000,
      timeout: 1000, retries: 3)
  }

  private func secret(_ text: String) -> Secret { Secret(Array(text.utf8)) }

  @Test func record_thatWasKept_isReadAsAWhole() {
    let memory = RecordMemory()
    #expect(memory.read(0) == nil)
    #expect(memory.area.keep(record("s1", addresses: "h:443:192.0.2.1"), of: 7))
    #expect(
      memory.read(0)
        == RecordMemory.Found(
          playback: 7, retries: 3,
          fields: ["1 https://head-end/teardown", "2 t: s1", "3 {}", "4 h:443:192.0.2.1"]))
    #expect(memory.read(1) == nil)
  }

  @Test func record_updated_hasTheNewTokenAndAllElse() {
    let memory = RecordMemory()
    #expect(memory.area.keep(record("s1", addresses: "h:443:192.0.2.1"), of: 7))
    let before = memory.read(0)?.fields
    for next in ["s2", "s3", "s4"] {
      #expect(memory.area.update(7, token: secret(next), lifetime: 50_000))
      #expect(memory.read(0)?.fields == before.map { $0.map { $0 == "2 t: s1" ? "2 t: \(next)" : $0 } })
    }
  }

  /// The area calculates the checksum of an update from the new token, and does not read the bytes that it has written.
  /// For a token of any length, the result must be the checksum of all written bytes; otherwise the reader ignores the
  /// update.
  @Test func update_ofATokenOfAnyLength_hasTheChecksumOfAllBytes() throws {
    for size in 1...25 {
      for header in 1...8 {
        let memory = RecordMemory()
        let name = String(repeating: "h", count: header)
        #expect(memory.area.keep(record(String(repeating: "a", count: size), header: name), of: 7))
        for letter in ["b", "c", "d", "e"] {
          let next = String(repeating: letter, count: size)
          #expect(memory.area.update(7, token: secret(next), lifetime: 50_000))
          #expect(memory.read(0)?.fields.contains("2 \(name): \(next)") == true, "\(size) bytes, \(name)")
        }
      }
    }
  }

  @Test func record_updated_hasTheNewEndOfTheLease() throws {
    let memory = RecordMemory()
    #expect(memory.area.keep(record("s1"), of: 7))
    for (next, lifetime) in [("s2", 50_000), ("s3", 60_000), ("s4", 30_000)] {
      let soonest = RecoveryRecord.end(of: Milliseconds(lifetime)).boot
      #expect(memory.area.update(7, token: secret(next), lifetime: Milliseconds(lifetime)))
      let latest = RecoveryRecord.end(of: Milliseconds(lifetime)).boot
      #expect((soonest...latest).contains(try #require(memory.leaseEnd(0))))
    }
  }

  /// An update is not possible if the new token has another length than the old one, if the token is too long for an
  /// update, or if the record does not have the token at the end of the first header line.
  @Test func record_thatAUpdateCannotDescribe_isNotUpdated() {
    let memory = RecordMemory(copySize: 8192)
    #expect(!memory.area.update(7, token: secret("s2"), lifetime: 50_000))
    #expect(memory.area.keep(record("s1"), of: 7))
    for token in ["", "s", "s22"] { #expect(!memory.area.update(7, token: secret(token), lifetime: 50_000)) }
    #expect(memory.read(0)?.fields.contains("2 t: s1") == true)
    let room = Int(USHER_RECORD_UPDATE_SIZE) - MemoryLayout<usher_record_copy>.size
    for (size, fits) in [(room - 32, true), (room - 31, false)] {
      #expect(memory.area.keep(record(String(repeating: "a", count: size)), of: 7))
      let next = String(repeating: "b", count: size)
      #expect(memory.area.update(7, token: secret(next), lifetime: 50_000) == fits)
      #expect(memory.read(0)?.fields.contains("2 t: \(next)") == fits)
    }
    let elsewhere = RecoveryRecord(
      request: HTTPRequest(
        method: .post, endpoint: endpoint("teardown"), headers: [secret("s1: t\0")], body: secret("{}"), isUrgent: true,
        tokens: []), token: secret("s1"), addresses: nil, cookies: [], lifetime: 40_000, timeout: 1000, retries: 3)
    #expect(memory.area.keep(elsewhere, of: 7))
    #expect(!memory.area.update(7, token: secret("s2"), lifetime: 50_000))
    #expect(memory.read(0)?.fields.contains("2 s1: t") == true)
  }

  @Test func update_writtenOnlyInPart_leavesTheOneBefore() {
    let memory = RecordMemory()
    let updates = memory.updates(0)
    #expect(memory.area.keep(record("s1"), of: 7))
    for (last, next) in [("s1", "s2"), ("s2", "s3"), ("s3", "s4")] {
      let before = updates.map { Array($0) }
      #expect(memory.area.update(7, token: secret(next), lifetime: 60_000))
      let changed = updates.indices.filter { Array(updates[$0]) != before[$0] }
      #expect(changed.count == 1)
      for which in changed {
        let after = Array(updates[which])
        for cut in after.indices.filter({ before[which][$0] != after[$0] }).dropFirst() {
          updates[which].copyBytes(from: after[..<cut] + before[which][cut...])
          #expect(memory.read(0)?.fields.contains("2 t: \(last)") == true, "\(next) cut at byte \(cut)")
        }
        updates[which].copyBytes(from: after)
      }
      #expect(memory.read(0)?.fields.contains("2 t: \(next)") == true)
    }
  }

  /// The host dies while it writes a record, after any number of updates of the earlier record. The reader finds the
  /// earlier record with the newest token of these updates.
  @Test(arguments: 0...4) func record_writtenOnlyInPartAfterUpdates_leavesTheOneBefore(count: Int) {
    let memory = RecordMemory()
    let slot = memory.slot(0)
    for round in 0..<3 {
      #expect(memory.area.keep(record("\(round)0"), of: 7))
      for number in 0..<count {
        #expect(memory.area.update(7, token: secret("\(round)\(number + 1)"), lifetime: 60_000))
      }
      let before = Array(slot)
      #expect(memory.area.keep(record("new", addresses: "h:443:192.0.2.1"), of: 7))
      let after = Array(slot)
      for cut in before.indices.filter({ before[$0] != after[$0] }).dropFirst() {
        slot.copyBytes(from: after[..<cut] + before[cut...])
        #expect(memory.read(0)?.fields.contains("2 t: \(round)\(count)") == true, "cut at byte \(cut)")
      }
      slot.copyBytes(from: after)
      #expect(memory.read(0)?.fields.contains("2 t: new") == true)
    }
  }

  /// A hostile process writes an update that does not belong to the record or does not fit, with a right checksum.
  @Test func update_withAnyNumbers_changesNothingBeyondTheRecord() {
    let memory = RecordMemory()
    #expect(memory.area.keep(record("s1"), of: 7))
    #expect(memory.area.update(7, token: secret("s2"), lifetime: 50_000))
    let copy = memory.updates(0)[0]
    let head = copy.load(as: usher_record_copy.self)
    let good = copy.load(fromByteOffset: 24, as: usher_record_update.self)
    let fixed = UInt32(MemoryLayout<usher_record>.size)
    var wrong = [good, good, good, good, good, good, good]
    wrong[0].record += 1
    wrong[1].token_at = fixed - 1
    wrong[2].token_at = 1000
    wrong[3].token_at = .max
    wrong[4].token_size = 9
    wrong[5].token_size = .max
    wrong[6].record = 0
    for update in wrong {
      copy.storeBytes(of: update, toByteOffset: 24, as: usher_record_update.self)
      usher_record_seal(copy.baseAddress, head.sequence, head.length)
      #expect(memory.read(0)?.fields.contains("2 t: s1") == true)
    }
    for length: UInt64 in [0, 8, 32, 1 << 32, .max] {
      copy.storeBytes(of: length, toByteOffset: 16, as: UInt64.self)
      if length <= 32 { usher_record_seal(copy.baseAddress, head.sequence, length) }
      #expect(memory.read(0)?.fields.contains("2 t: s1") == true)
    }
  }

  /// The host dies while it writes a record: wherever the write stops, the reader finds the earlier record.
  @Test func record_writtenOnlyInPart_leavesTheOneBefore() {
    let memory = RecordMemory()
    let slot = memory.slot(0)
    for token in ["s1", "s2"] { #expect(memory.area.keep(record(token), of: 7)) }
    let before = Array(slot)
    #expect(memory.area.keep(record("s3"), of: 7))
    let after = Array(slot)
    let changed = before.indices.filter { before[$0] != after[$0] }
    #expect(changed.count > 8)
    for cut in changed.dropFirst() {
      slot.copyBytes(from: after[..<cut] + before[cut...])
      #expect(memory.read(0)?.fields.contains("2 t: s2") == true, "cut at byte \(cut)")
    }
    slot.copyBytes(from: after)
    #expect(memory.read(0)?.fields.contains("2 t: s3") == true)
  }

  @Test func update_withAnyByteChanged_isNotRead() {
    let memory = RecordMemory()
    #expect(memory.area.keep(record("s1"), of: 7))
    #expect(memory.area.update(7, token: secret("s2"), lifetime: 50_000))
    for update in memory.updates(0) {
      for index in update.indices where update[index] != 0 {
        update[index] ^= 0x40
        #expect(memory.read(0)?.fields.contains("2 t: s1") == true, "byte \(index)")
        update[index] ^= 0x40
      }
    }
    #expect(memory.read(0)?.fields.contains("2 t: s2") == true)
  }

  @Test func copy_withAnyByteChanged_isNotRead() {
    let memory = RecordMemory()
    #expect(memory.area.keep(record("s1"), of: 7))
    let slot = memory.slot(0)
    let used = slot.indices.filter { slot[$0] != 0 }
    for index in used {
      slot[index] ^= 0x40
      #expect(memory.read(0) == nil, "byte \(index)")
      slot[index] ^= 0x40
    }
    #expect(memory.read(0) != nil)
  }

  /// A hostile process writes a length into a copy. If the length fits, the process also writes a right checksum.
  @Test(arguments: [0, 1, 39, 48, 400, 500, 512, 1 << 32, UInt64.max]) func copy_withAnyLength_isReadSafely(
    length: UInt64
  ) {
    let memory = RecordMemory()
    #expect(memory.area.keep(record("s1"), of: 7))
    let copy = UnsafeMutableRawBufferPointer(rebasing: memory.slot(0)[memory.copySize...])
    copy.storeBytes(of: length, toByteOffset: 16, as: UInt64.self)
    if length <= UInt64(memory.copySize - 24), length % 8 == 0 { usher_record_seal(copy.baseAddress, 9, length) }
    #expect((memory.read(0)?.fields.count ?? 0) <= 4)
  }

  @Test func field_thatClaimsTooMuch_endsTheRecord() {
    for claim: UInt32 in [0, 200, 1000, .max] {
      let memory = RecordMemory()
      #expect(memory.area.keep(record("s1"), of: 7))
      let copy = UnsafeMutableRawBufferPointer(rebasing: memory.slot(0)[memory.copySize...])
      let length = copy.load(fromByteOffset: 16, as: UInt64.self)
      copy.storeBytes(of: claim, toByteOffset: 24 + MemoryLayout<usher_record>.size + 4, as: UInt32.self)
      usher_record_seal(copy.baseAddress, 9, length)
      #expect(memory.read(0)?.fields == [], "\(claim)")
    }
  }

  @Test func clear_removesTheRecordAndItsBytes_andTheSlotIsUsedAgain() {
    let memory = RecordMemory()
    for token in ["s1", "s2"] { #expect(memory.area.keep(record(token), of: 7)) }
    for token in ["s3", "s4"] { #expect(memory.area.update(7, token: secret(token), lifetime: 50_000)) }
    memory.area.clear(7)
    memory.area.clear(7)
    #expect(memory.read(0) == nil)
    #expect(isEmpty(memory))
    #expect(memory.area.keep(record("s9"), of: 8))
    #expect(memory.read(0)?.playback == 8)
    #expect(memory.area.count == 1)
  }

  /// Whether the copies and updates of the first slot have only zeros behind their heads. A head has 24 bytes.
  private func isEmpty(_ memory: RecordMemory) -> Bool {
    let slot = memory.slot(0)
    let records = [slot[..<memory.copySize], slot[memory.copySize...]].map(
      UnsafeMutableRawBufferPointer.init(rebasing:))
    return (records + memory.updates(0)).allSatisfy { $0[24...].allSatisfy { $0 == 0 } }
  }

  /// `clear` also removes the end of an earlier, longer record from a copy. If a record does not fit, `keep` leaves no
  /// bytes of it.
  @Test func clear_afterRecordsOfOtherLengths_removesAllBytes() {
    let memory = RecordMemory()
    for token in ["s1", "s2"] {
      #expect(memory.area.keep(record(token, body: String(repeating: "x", count: 99)), of: 7))
    }
    #expect(memory.area.keep(record(String(repeating: "s", count: 40)), of: 7))
    #expect(memory.area.update(7, token: secret(String(repeating: "t", count: 40)), lifetime: 50_000))
    #expect(memory.area.keep(record("s3"), of: 7))
    for token in ["s4", "s5"] { #expect(memory.area.update(7, token: secret(token), lifetime: 50_000)) }
    memory.area.clear(7)
    #expect(isEmpty(memory))
    #expect(!memory.area.keep(record("s5", body: String(repeating: "x", count: 512)), of: 7))
    #expect(isEmpty(memory))
  }

  @Test func record_withOtherAddressesAmongUpdates_isKeptAsAWhole() {
    let memory = RecordMemory()
    for (number, addresses) in [nil, "h:443:192.0.2.1", "h:443:192.0.2.22"].enumerated() {
      #expect(memory.area.keep(record("s\(number)", addresses: addresses), of: 7))
      for round in 0..<4 {
        let next = "\(number)\(round)"
        #expect(memory.area.update(7, token: secret(next), lifetime: 50_000))
        let fields = ["1 https://head-end/teardown", "2 t: \(next)", "3 {}"] + (addresses.map { ["4 \($0)"] } ?? [])
        #expect(memory.read(0)?.fields == fields)
      }
    }
  }

  @Test func record_withoutRoom_isRefused_andNoOldTokenStays() {
    let memory = RecordMemory(slotCount: 2)
    #expect(memory.area.keep(record("s1"), of: 1))
    #expect(memory.area.keep(record("s1"), of: 2))
    #expect(!memory.area.keep(record("s1"), of: 3))
    #expect(!memory.area.keep(record("s2", body: String(repeating: "x", count: 512)), of: 1))
    #expect(memory.read(0) == nil)
    #expect(memory.read(1)?.playback == 2)
    #expect(memory.area.keep(record("s1"), of: 3))
  }

  @Test func end_marksTheArea() {
    let memory = RecordMemory()
    #expect(memory.bytes.load(as: usher_record_header.self).state == USHER_AREA_IN_USE)
    memory.area.end()
    let header = memory.bytes.load(as: usher_record_header.self)
    #expect(header.state == USHER_AREA_ENDED && header.magic == USHER_RECORD_MAGIC)
  }
}
