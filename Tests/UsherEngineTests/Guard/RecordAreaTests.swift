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
      addresses: addresses.map { Array($0.utf8) + [0] }, cookies: [], lifetime: 40_000, timeout: 1000, retries: 3)
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

  @Test func record_renewed_hasTheNewTokenAndAllElse() {
    let memory = RecordMemory()
    #expect(memory.area.keep(record("s1", addresses: "h:443:192.0.2.1"), of: 7))
    let before = memory.read(0)?.fields
    for (last, next) in [("s1", "s2"), ("s2", "s3"), ("s3", "s4")] {
      #expect(memory.area.renew(7, token: secret(next), after: secret(last), lifetime: 50_000))
      #expect(memory.read(0)?.fields == before.map { $0.map { $0 == "2 t: s1" ? "2 t: \(next)" : $0 } })
    }
  }

  /// A renewal computes the checksum without reading the record: wherever the token stands and however long it is, the
  /// checksum is that of all bytes.
  @Test func renewal_ofATokenOfAnyLength_hasTheChecksumOfAllBytes() throws {
    for size in 1...25 {
      for header in 1...8 {
        let memory = RecordMemory()
        let name = String(repeating: "h", count: header)
        var last = String(repeating: "a", count: size)
        #expect(memory.area.keep(record(last, header: name), of: 7))
        for letter in ["b", "c", "d", "e"] {
          let next = String(repeating: letter, count: size)
          #expect(memory.area.renew(7, token: secret(next), after: secret(last), lifetime: 50_000))
          last = next
          #expect(memory.read(0)?.fields.contains("2 \(name): \(next)") == true, "\(size) bytes, \(name)")
          for start in [0, memory.copySize] {
            let copy = UnsafeMutableRawBufferPointer(rebasing: memory.slot(0)[start..<(start + memory.copySize)])
            let before = Array(copy)
            let head = copy.load(as: usher_record_copy.self)
            usher_record_seal(copy.baseAddress, head.sequence, head.length)
            #expect(Array(copy) == before || head.sequence == 0, "\(size) bytes, \(name)")
          }
        }
      }
    }
  }

  @Test func record_renewed_hasTheNewEndOfTheLease() throws {
    let memory = RecordMemory()
    #expect(memory.area.keep(record("s1"), of: 7))
    for (last, next, lifetime) in [("s1", "s2", 50_000), ("s2", "s3", 60_000), ("s3", "s4", 30_000)] {
      let soonest = RecoveryRecord.end(of: Milliseconds(lifetime)).boot
      #expect(memory.area.renew(7, token: secret(next), after: secret(last), lifetime: Milliseconds(lifetime)))
      let latest = RecoveryRecord.end(of: Milliseconds(lifetime)).boot
      #expect((soonest...latest).contains(try #require(memory.leaseEnd(0))))
    }
  }

  @Test func record_thatHasAnotherToken_isNotRenewed() {
    let memory = RecordMemory()
    #expect(!memory.area.renew(7, token: secret("s2"), after: secret("s1"), lifetime: 50_000))
    #expect(memory.area.keep(record("s1"), of: 7))
    for (last, next) in [("s0", "s2"), ("s1", "s22"), ("t: s1", "t: s2"), ("x: t: s1", "x: t: s2")] {
      let isSame = last == "t: s1"
      #expect(memory.area.renew(7, token: secret(next), after: secret(last), lifetime: 50_000) == isSame)
      if isSame { #expect(memory.area.keep(record("s1"), of: 7)) }
    }
    #expect(memory.read(0)?.fields.contains("2 t: s1") == true)
  }

  @Test func renewal_writtenOnlyInPart_leavesTheOneBefore() {
    let memory = RecordMemory()
    let slot = memory.slot(0)
    #expect(memory.area.keep(record("s1"), of: 7))
    #expect(memory.area.renew(7, token: secret("s2"), after: secret("s1"), lifetime: 50_000))
    let before = Array(slot)
    #expect(memory.area.renew(7, token: secret("s3"), after: secret("s2"), lifetime: 60_000))
    let after = Array(slot)
    for cut in before.indices.filter({ before[$0] != after[$0] }).dropFirst() {
      slot.copyBytes(from: after[..<cut] + before[cut...])
      #expect(memory.read(0)?.fields.contains("2 t: s2") == true, "cut at byte \(cut)")
    }
  }

  /// A hostile process writes wrong lengths into the copy that a renewal reads. The renewal does not change the next
  /// slot.
  @Test func renewal_afterAnyLengths_writesNothingBeyondTheCopy() {
    for claim: UInt64 in [0, 8, 47, 64, 200, 488, 496, 1 << 32, .max] {
      for offset in [16, 24 + 48 + 4, 24 + 48 + 8 + 32 + 4] {
        let memory = RecordMemory()
        #expect(memory.area.keep(record("s1"), of: 7))
        let copy = UnsafeMutableRawBufferPointer(rebasing: memory.slot(0)[memory.copySize...])
        withUnsafeBytes(of: claim) { copy[offset..<(offset + 4)].copyBytes(from: $0[..<4]) }
        let other = Array(memory.slot(1))
        _ = memory.area.renew(7, token: secret("s2"), after: secret("s1"), lifetime: 50_000)
        #expect(Array(memory.slot(1)) == other, "\(claim) at \(offset)")
      }
    }
  }

  /// A later renewal writes only the token, the end of the lease and the head of the older copy. If another process has
  /// changed any other byte of this copy, the reader refuses the copy and finds the earlier record.
  @Test func renewal_ofACopyThatAnotherProcessChanged_leavesTheOneBefore() throws {
    let memory = RecordMemory()
    #expect(memory.area.keep(record("s1", addresses: "h:443:192.0.2.1"), of: 7))
    #expect(memory.area.renew(7, token: secret("s2"), after: secret("s1"), lifetime: 50_000))
    let older = UnsafeMutableRawBufferPointer(rebasing: memory.slot(0)[memory.copySize...])
    let length = Int(older.load(fromByteOffset: 16, as: UInt64.self))
    let lease = 24 + MemoryLayout<usher_record>.offset(of: \.expires_boot_ms)!
    let token = try #require((24..<older.count).first { older[$0] == 0x73 && older[$0 + 1] == 0x31 })
    let written = Set(lease..<(lease + 16)).union([token, token + 1])
    for index in 24..<(24 + length) where !written.contains(index) {
      let before = Array(memory.slot(0))
      older[index] ^= 0x40
      #expect(memory.area.renew(7, token: secret("s3"), after: secret("s2"), lifetime: 60_000))
      let found = memory.read(0)?.fields.contains("2 t: s2")
      // The renewal reads the word that has the token, so its checksum agrees with the other bytes of this word.
      if index / 8 != token / 8 { #expect(found == true, "byte \(index)") }
      memory.slot(0).copyBytes(from: before)
      #expect(memory.area.renew(7, token: secret("s2"), after: secret("s3"), lifetime: 60_000))
      memory.slot(0).copyBytes(from: before)
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
    memory.area.clear(7)
    memory.area.clear(7)
    #expect(memory.read(0) == nil)
    for start in [0, memory.copySize] {
      #expect(memory.slot(0)[(start + 24)..<(start + memory.copySize)].allSatisfy { $0 == 0 })
    }
    #expect(memory.area.keep(record("s9"), of: 8))
    #expect(memory.read(0)?.playback == 8)
    #expect(memory.area.count == 1)
  }

  /// `clear` also removes the end of an earlier, longer record from a copy. If a record does not fit, `keep` leaves no
  /// bytes of it.
  @Test func clear_afterRecordsOfOtherLengths_removesAllBytes() {
    let memory = RecordMemory()
    let isEmpty = {
      [0, memory.copySize].allSatisfy { start in
        memory.slot(0)[(start + 24)..<(start + memory.copySize)].allSatisfy { $0 == 0 }
      }
    }
    for token in ["s1", "s2"] {
      #expect(memory.area.keep(record(token, body: String(repeating: "x", count: 99)), of: 7))
    }
    #expect(memory.area.keep(record("s3"), of: 7))
    #expect(memory.area.renew(7, token: secret("s4"), after: secret("s3"), lifetime: 50_000))
    memory.area.clear(7)
    #expect(isEmpty())
    #expect(!memory.area.keep(record("s5", body: String(repeating: "x", count: 512)), of: 7))
    #expect(isEmpty())
  }

  @Test func record_withOtherAddressesAmongRenewals_isKeptAsAWhole() {
    let memory = RecordMemory()
    for (number, addresses) in [nil, "h:443:192.0.2.1", "h:443:192.0.2.22"].enumerated() {
      var last = "s\(number)"
      #expect(memory.area.keep(record(last, addresses: addresses), of: 7))
      for round in 0..<4 {
        let next = "\(number)\(round)"
        #expect(memory.area.renew(7, token: secret(next), after: secret(last), lifetime: 50_000))
        last = next
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
