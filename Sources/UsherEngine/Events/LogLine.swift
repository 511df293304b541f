internal import UsherCore

/// A log line or a message, built from its parts. (One string interpolation would add 10 kB of code.)
struct LogLine {
  private var bytes: [UInt8] = []

  init(_ text: StaticString) { add(text) }

  /// "playback 7: set-up"
  init(playback: PlaybackID, _ word: StaticString) {
    add("playback ")
    add(playback)
    add(": ")
    add(word)
  }

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

  @inline(never)
  func text() -> String { String(decoding: bytes, as: UTF8.self) }
}
