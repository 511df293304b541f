import UsherCore

package func secret(_ text: String) -> Secret { Secret(Array(text.utf8)) }

package func text(_ secret: Secret?) -> String {
  secret.map { $0.withBytes { String(decoding: $0, as: UTF8.self) } } ?? "-"
}

package func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

package func withBytes<R>(_ bytes: [UInt8], _ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
  bytes.withUnsafeBufferPointer(body)
}

package func withBytes<R>(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
  withBytes(Array(text.utf8), body)
}

extension Secret {
  package func isEqual(to other: Secret) -> Bool {
    withBytes { mine in other.withBytes { theirs in mine.elementsEqual(theirs) } }
  }
}
