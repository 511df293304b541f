internal import CUsher
internal import UsherCore

/// Runs `body` and returns the status for the host. If `body` fails, writes the reason to the host's buffer: the words
/// that `body` has set or, if it has set none, the message of the status. Otherwise the buffer gets an empty text.
func report(
  to message: UnsafeMutablePointer<CChar>?, _ size: Int, _ body: (inout [UInt8]) throws(UsherError) -> Void
) -> Int32 {
  var words: [UInt8] = []
  let status = report { () throws(UsherError) in try body(&words) }
  if status != USHER_OK && words.isEmpty { words = Array((Status(rawValue: status) ?? .protocolError).message.utf8) }
  if let message, size > 0 {
    let count = min(words.count, size - 1)
    for index in 0..<count { message[index] = CChar(truncatingIfNeeded: words[index]) }
    message[count] = 0
  }
  return status
}

/// Copies the bytes to the host's buffer and sets `size` to the needed length. Fails if the buffer is too small.
func copy(
  _ bytes: [UInt8], _ buffer: UnsafeMutablePointer<UInt8>?, _ size: UnsafeMutablePointer<Int>?
) throws(UsherError) {
  guard let size else { throw UsherError(.invalidArgument) }
  let room = size.pointee
  size.pointee = bytes.count
  guard let buffer, room >= bytes.count else { throw UsherError(.tooLarge) }
  for index in 0..<bytes.count { buffer[index] = bytes[index] }
}
