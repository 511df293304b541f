/// The data of a Widevine `pssh` box, which is a protobuf message. If the message is broken at some point, the library
/// uses the fields before that point.
package struct WidevineData: Equatable, Sendable {
  package private(set) var keyIDs: [UUIDBytes] = []
  package private(set) var provider: [UInt8] = []
  package private(set) var contentID: [UInt8] = []
  package private(set) var policy: [UInt8] = []
  /// The encryption scheme (`cenc`, `cbcs` …) as a number; nil if the data does not name a scheme.
  package private(set) var protectionScheme: UInt32?

  package init(_ bytes: UnsafeBufferPointer<UInt8>) {
    var reader = ByteReader(bytes)
    while let key = reader.varint(), read(field: key >> 3, kind: key & 7, &reader) {}
  }

  /// Reads one field of the protobuf message. Returns false if the message is broken at this point.
  private mutating func read(field: UInt64, kind: UInt64, _ reader: inout ByteReader) -> Bool {
    switch kind {
    case 0:
      guard let value = reader.varint() else { return false }
      if field == 9 { protectionScheme = UInt32(truncatingIfNeeded: value) }
      return true
    case 1: return reader.take(8) != nil
    case 2:
      guard let count = reader.varint(), count <= UInt64(reader.left), let value = reader.take(Int(count)) else {
        return false
      }
      switch field {
      case 2:
        if let id = UUIDBytes(value) ?? UUIDBytes(text: value) { keyIDs.appendOnce(id) }
      case 3: provider = Array(value)
      case 4: contentID = Array(value)
      case 6: policy = Array(value)
      default: break
      }
      return true
    case 5: return reader.take(4) != nil
    default: return false
    }
  }
}
