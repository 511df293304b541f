internal import UsherCore

/// A log line or a message, built from its parts.
struct LogLine {
  private var line = TextLine()

  init(_ text: StaticString) { add(text) }
  init(_ error: UsherError) { add(error) }

  /// Makes a line such as "playback 7 (tag 42): set-up"; leaves a tag of 0 out.
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

  mutating func add(_ text: StaticString) { line.add(text) }

  mutating func add(_ text: String) { line.add(text) }

  mutating func add(_ number: UInt64) { line.add(number) }

  /// Adds an error in the form "USHER_E_LIMIT: too many sessions, HTTP 409, code 1007".
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

  func text() -> String { line.text() }
}
