import UsherCore

extension PSSH {
  /// Makes the bytes of a `pssh` box: version 1 if it lists key ids, else version 0.
  package static func make(_ system: UUIDBytes, keyIDs: [UUIDBytes] = [], data: [UInt8]) -> [UInt8] {
    func big(_ number: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) } }
    var content = [keyIDs.isEmpty ? 0 : 1, 0, 0, 0] + system.bytes
    if !keyIDs.isEmpty { content += big(keyIDs.count) + keyIDs.flatMap(\.bytes) }
    content += big(data.count) + data
    return big(8 + content.count) + [0x70, 0x73, 0x73, 0x68] + content
  }
}
