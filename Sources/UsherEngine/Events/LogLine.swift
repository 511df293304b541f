internal import UsherCore

/// A log line or a message, built from its parts. (One string interpolation would add 10 kB of code.)
struct LogLine {
  private var bytes: [UInt8] = []

  init(_ text: StaticString) { add(text) }
  init(_ error: UsherError) { add(error) }

  /// "playback 7 (tag 42): set-up", without the tag if it is 0.
  @inline(never)
  init(playback: PlaybackID, tag: UInt64?, _ word: StaticString) {
    add("playback ")
    add(playback)
    if let tag, tag != 0 {
      add(" (tag ")
      add(tag)
      add(")")
    }
    add(": ")
    add(word)
  }

  init(_ entry: PlaybackEntry, _ word: StaticString) { self.init(playback: entry.id, tag: entry.host.tag, word) }

  @inline(never)
  mutating func add(_ text: StaticString) { text.withUTF8Buffer { bytes.append(contentsOf: $0) } }

  @inline(never)
  mutating func add(_ text: String) { bytes.append(contentsOf: text.utf8) }

  @inline(never)
  mutating func add(_ number: UInt64) {
    var rest = number
    let start = bytes.count
    repeat {
      bytes.insert(0x30 + UInt8(truncatingIfNeeded: rest % 10), at: start)
      rest /= 10
    } while rest > 0
  }

  /// "USHER_E_LIMIT: too many sessions, HTTP 409, code 1007"
  @inline(never)
  mutating func add(_ error: UsherError) {
    add(error.status.name)
    add(": ")
    add(error.message)
    if error.httpStatus > 0 {
      add(", HTTP ")
      add(UInt64(clamping: error.httpStatus))
    }
    guard error.serviceCode != 0 else { return }
    add(error.serviceCode < 0 ? ", code -" : ", code ")
    add(error.serviceCode.magnitude)
  }

  @inline(never)
  func text() -> String { String(decoding: bytes, as: UTF8.self) }
}
