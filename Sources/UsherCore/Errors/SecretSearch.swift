/// Searches the letters of one text for parts of secrets. The secrets are read once, letter by letter: a table has all
/// runs of 8 letters of the text.
struct SecretSearch {
  private var letters: [CodedText.Byte]
  /// The runs of the text, each as a number: the run that begins at letter 0, at letter 1, and so on.
  private var runs: [UInt64] = []
  /// By the hash of a run: the number of the last run with this hash, plus 1. `next` continues the chain.
  private var heads = [UInt16](repeating: 0, count: 1024)
  private var next: [UInt16] = []
  private var isFound: [Bool]
  /// The last letters of the secret, and how many letters it had so far.
  private var last: UInt64 = 0
  private var count = 0

  /// - Parameter letters: at most 1024.
  init(_ letters: [CodedText.Byte]) {
    self.letters = letters
    isFound = [Bool](repeating: false, count: letters.count)
    var run: UInt64 = 0
    for at in 0..<letters.count {
      run = run << 8 | UInt64(letters[at].value)
      guard at >= HiddenSecrets.part - 1 else { continue }
      let slot = Self.slot(run)
      next.append(heads[slot])
      runs.append(run)
      heads[slot] = UInt16(truncatingIfNeeded: runs.count)
    }
  }

  private static func slot(_ run: UInt64) -> Int { Int(truncatingIfNeeded: (run &* 0x9E37_79B9_7F4A_7C15) >> 54) }

  /// Ends the search: marks the bytes of the text from which the found letters came, and the bytes between them.
  mutating func end(_ marks: inout [Bool]) {
    var end = 0
    for at in 0..<letters.count {
      guard isFound[at] else {
        end = 0
        continue
      }
      let start = end > 0 ? end : letters[at].start
      end = letters[at].end
      for index in start..<max(start, end) where index < marks.count { marks[index] = true }
    }
    wipe(&letters)
    wipe(&runs)
  }

  /// Searches for a secret of which every part counts.
  mutating func findWord(_ secret: UnsafeBufferPointer<UInt8>) {
    findPlain(secret)
    findCoded(secret)
  }

  /// Searches for a secret of which only long words count, and its codings.
  mutating func findBody(_ body: UnsafeBufferPointer<UInt8>) {
    var start = 0
    while start < body.count {
      var end = start
      while end < body.count, isTokenByte(body[end]) || body[end] == 0x25 { end += 1 }
      if end - start >= 16 { findPlain(UnsafeBufferPointer(rebasing: body[start..<end])) }
      start = end + 1
    }
    findCoded(body)
  }

  @inline(never)
  private mutating func findPlain(_ secret: UnsafeBufferPointer<UInt8>) {
    begin()
    for byte in secret { add(byte) }
    if count < HiddenSecrets.part { findShort() }
    guard secret.contains(0x25) else { return }
    begin()
    var at = 0
    while at < secret.count {
      if secret[at] == 0x25, secret.count - at > 2, let high = hexValue(secret[at + 1]),
        let low = hexValue(secret[at + 2])
      {
        add(high << 4 | low)
        at += 3
      } else {
        add(secret[at])
        at += 1
      }
    }
  }

  /// Searches for the hex and the base64 of a secret. In base64 the letters depend on how many bytes stand before the
  /// secret, so there are three forms.
  @inline(never)
  private mutating func findCoded(_ secret: UnsafeBufferPointer<UInt8>) {
    begin()
    for byte in secret {
      add(hexDigit(byte >> 4))
      add(hexDigit(byte))
    }
    for skipped in 0..<min(3, secret.count) {
      begin()
      var (bits, held): (UInt32, UInt32) = (0, 0)
      // By index: a slice costs an allocation for each byte in the checked build.
      for at in skipped..<secret.count {
        bits = bits << 8 | UInt32(secret[at])
        held += 8
        while held >= 6 {
          held -= 6
          add(Base64.letter(UInt8(truncatingIfNeeded: bits >> held) & 63, .standard))
        }
      }
    }
  }

  private mutating func begin() { (last, count) = (0, 0) }

  /// The next byte of the secret.
  private mutating func add(_ byte: UInt8) {
    guard let letter = foldedLetter(byte) else { return }
    last = last << 8 | UInt64(letter)
    count += 1
    guard count >= HiddenSecrets.part else { return }
    var run = Int(heads[Self.slot(last)])
    while run > 0 {
      if runs[run - 1] == last { find(run - 1, HiddenSecrets.part) }
      run = Int(next[run - 1])
    }
  }

  /// The secret has less letters than a part: searches for all of it.
  private mutating func findShort() {
    guard count > 0, letters.count >= count else { return }
    for at in 0...(letters.count - count) {
      var run: UInt64 = 0
      for offset in 0..<count { run = run << 8 | UInt64(letters[at + offset].value) }
      if run == last { find(at, count) }
    }
  }

  private mutating func find(_ first: Int, _ length: Int) {
    for at in first..<(first + length) { isFound[at] = true }
  }
}
