// The fuzz target for the records that a dead process has left in a journal. The first byte of an input says what the
// other bytes are: a record, or a copy of a record with its head. For a copy the first byte also has its number.
@testable import UsherCore
@testable import UsherEngine

func readJournal(_ bytes: Bytes) {
  guard let (choice, rest) = choices(bytes) else { return }
  if choice & 1 == 0 { readRecord(rest) } else { openCopy(rest, number: choice >> 1) }
}

private func readRecord(_ bytes: Bytes) {
  guard let request = try? LeftSession.request(Secret(bytes), insecure: true, sendsCookies: true) else { return }
  let size = request.headers.reduce(request.endpoint.url.count) { $0 + $1.count } + (request.body?.count ?? 0)
  must(size <= bytes.count + 10, "a request is no longer than its record")
  for line in request.headers {
    line.withBytes { line in
      must(line.last == 0 && !hasControl(line.dropLast()), "a header is one line")
    }
  }
  let again = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * bytes.count + 4096, alignment: 8)
  defer { again.deallocate() }
  let record = RecoveryRecord(
    request: request, token: Secret([]), addresses: nil, cookies: [], lifetime: 1, timeout: 1, retries: 1)
  guard let length = record.write(1, into: again) else { return must(false, "the record has room") }
  let written = Secret(UnsafeRawBufferPointer(rebasing: again[..<length]).bindMemory(to: UInt8.self))
  guard let copy = try? LeftSession.request(written, insecure: true, sendsCookies: true) else {
    return must(false, "a record that was written can be read")
  }
  must(copy.endpoint.url == request.endpoint.url, "the URL stays")
  must(copy.headers.elementsEqual(request.headers) { $0.isEqual(to: $1) }, "the headers stay")
}

private func openCopy(_ bytes: Bytes, number: Int) {
  let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
  defer { copy.deallocate() }
  copy.copyBytes(from: bytes)
  let cipher = JournalCipher.make(hostKey: nil, salt: [UInt8](repeating: 7, count: 32))
  if let found = cipher?.open(copy, number: number) {
    must(found.length <= bytes.count - 32, "a record is no longer than its copy")
  }
  let length = (bytes.count - 32) & ~7
  guard length >= 0, cipher?.seal(copy, number: number, sequence: 3, length: length) == true else { return }
  must(cipher?.open(copy, number: number)?.length == length, "a sealed copy can be opened")
  must(cipher?.open(copy, number: number + 2) == nil, "a copy is valid only in its slot")
}
