/// Searches one text for parts of secrets. A search compares only some of the bytes; see `Compared`. First it puts each
/// run of 8 compared bytes of the text into a hash table. Then it reads each secret once, byte by byte, and looks up
/// the last 8 compared bytes that it has read.
struct SecretSearch {
  /// The bytes that a search compares, in the text and in the secrets. It skips all other bytes and ignores letter
  /// case.
  enum Compared {
    case lettersAndDigits
    /// Hex digits except 0. So `51`, `0x51`, `U+0051` and `5100` count as equal: each has the digits 5 and 1.
    case nonZeroDigits
    /// All bytes except blanks. This finds secrets that have few letters and digits, or letters that are not ASCII.
    case allButBlanks
  }

  private let compared: Compared
  /// The compared bytes of the text, in lower case. These bytes may contain secrets.
  private var letters: [UInt8] = []
  /// For each of `letters`: its index in the text.
  private var positions: [UInt16] = []
  private var isFound: [Bool]
  /// The hash table. The element for a hash has the number of the last run with this hash, plus 1; 0: no run has this
  /// hash. For each run, `next` has the number of the previous run with the same hash, also plus 1.
  private var heads = [UInt16](repeating: 0, count: 1024)
  private var next: [UInt16] = []
  /// `last`: the last 8 compared bytes that the search has read of the current secret. `count`: how many compared bytes
  /// it has read of this secret.
  private var last: UInt64 = 0
  private var count = 0

  /// - Parameter text: at most 65,535 bytes.
  init(_ text: UnsafeBufferPointer<UInt8>, _ compared: Compared) {
    self.compared = compared
    // An array that grows does not wipe its old memory, so reserve all memory first.
    letters.reserveCapacity(text.count)
    for at in 0..<text.count {
      guard let letter = Self.folded(text[at], compared) else { continue }
      letters.append(letter)
      positions.append(UInt16(truncatingIfNeeded: at))
    }
    isFound = [Bool](repeating: false, count: letters.count)
    var first = 0
    while letters.count - first >= HiddenSecrets.part {
      let slot = Self.slot(run(first, HiddenSecrets.part))
      next.append(heads[slot])
      first += 1
      heads[slot] = UInt16(truncatingIfNeeded: first)
    }
  }

  private static func slot(_ run: UInt64) -> Int { Int(truncatingIfNeeded: (run &* 0x9E37_79B9_7F4A_7C15) >> 54) }

  private func run(_ first: Int, _ length: Int) -> UInt64 {
    var run: UInt64 = 0
    for at in first..<(first + length) { run = run << 8 | UInt64(letters[at]) }
    return run
  }

  private static func folded(_ byte: UInt8, _ compared: Compared) -> UInt8? {
    let lower = lowercased(byte)
    switch compared {
    case .lettersAndDigits: return isDigit(lower) || (lower >= 0x61 && lower <= 0x7A) ? lower : nil
    case .nonZeroDigits: return lower != 0x30 && hexValue(lower) != nil ? lower : nil
    case .allButBlanks: return lower > 0x20 ? lower : nil
    }
  }

  /// Ends the search: marks the bytes of the text at which it found a secret, and the skipped bytes between them.
  mutating func end(_ marks: inout [Bool]) {
    var end = 0
    for at in 0..<letters.count {
      guard isFound[at] else {
        end = 0
        continue
      }
      let position = Int(positions[at])
      for index in (end > 0 ? end : position)...position where index < marks.count { marks[index] = true }
      end = position + 1
    }
    wipe(&letters)
  }

  /// Searches the text for parts of a token or of another value. It finds every part that the text repeats.
  mutating func findWord(_ secret: UnsafeBufferPointer<UInt8>) {
    switch compared {
    case .lettersAndDigits:
      findPlain(secret)
      for form in Base64Form.all { findBase64(secret, form) }
    case .nonZeroDigits: for base in [16, 10, 8] as [UInt8] { findNumbers(secret, base: base) }
    case .allButBlanks: if Self.hasFewLetters(secret) { findPlain(secret) }
    }
  }

  private static func hasFewLetters(_ secret: UnsafeBufferPointer<UInt8>) -> Bool {
    var letters = 0
    for byte in secret {
      if byte >= 0x80 { return true }
      if folded(byte, .lettersAndDigits) != nil { letters += 1 }
    }
    return letters < HiddenSecrets.part
  }

  /// Searches for the body of a request or for a payload: for each of its `BodyWords`, and for the complete body as
  /// base64 and as hex numbers.
  mutating func findBody(_ body: UnsafeBufferPointer<UInt8>) {
    switch compared {
    case .lettersAndDigits:
      var words = BodyWords(body)
      while let word = words.next() { findPlain(word) }
      findBase64(body, .asItIs)
    case .nonZeroDigits: findNumbers(body, base: 16)
    case .allButBlanks: break
    }
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

  /// Searches for a secret whose bytes are written as numbers of up to three digits in this base.
  private mutating func findNumbers(_ secret: UnsafeBufferPointer<UInt8>, base: UInt8) {
    begin()
    for byte in secret {
      add(hexDigit(byte / base / base))
      add(hexDigit(byte / base % base))
      add(hexDigit(byte % base))
    }
  }

  private enum Base64Form {
    case asItIs, lowerCase, upperCase, utf16
    static var all: [Base64Form] { [.asItIs, .lowerCase, .upperCase, .utf16] }
  }

  /// Searches for the base64 form of a secret. Base64 writes a secret in three ways, because the letters depend on the
  /// number of bytes before the secret.
  @inline(never)
  private mutating func findBase64(_ secret: UnsafeBufferPointer<UInt8>, _ form: Base64Form) {
    for skipped in 0..<min(3, secret.count) {
      begin()
      var (bits, held): (UInt32, UInt32) = (0, 0)
      // The loop uses an index, because a slice costs an allocation for each byte in the checked build.
      for at in skipped..<(form == .utf16 ? secret.count * 2 : secret.count) {
        var byte: UInt8
        switch form {
        case .asItIs: byte = secret[at]
        case .lowerCase: byte = lowercased(secret[at])
        case .upperCase:
          byte = lowercased(secret[at])
          if byte >= 0x61 && byte <= 0x7A { byte &= 0xDF }
        case .utf16: byte = at & 1 == 0 ? secret[at / 2] : 0
        }
        bits = bits << 8 | UInt32(byte)
        held += 8
        while held >= 6 {
          held -= 6
          add(Base64.letter(UInt8(truncatingIfNeeded: bits >> held) & 63, .standard))
        }
      }
    }
  }

  private mutating func begin() { (last, count) = (0, 0) }

  /// Handles the next byte of the secret. (Not inlined, because many functions call it.)
  @inline(never)
  private mutating func add(_ byte: UInt8) {
    guard let letter = Self.folded(byte, compared) else { return }
    last = last << 8 | UInt64(letter)
    count += 1
    guard count >= HiddenSecrets.part else { return }
    let slot = Self.slot(last)
    var (before, number) = (0, Int(heads[slot]))
    while number > 0 {
      let after = next[number - 1]
      if run(number - 1, HiddenSecrets.part) == last {
        find(number - 1, HiddenSecrets.part)
        // Remove the run from the table, because its bytes are marked now. A text and a secret may have very many equal
        // runs; the search would find each of these runs again and again.
        if before == 0 { heads[slot] = after } else { next[before - 1] = after }
      } else {
        before = number
      }
      number = Int(after)
    }
  }

  /// Searches for the whole secret. This is necessary if the secret has fewer compared bytes than a part.
  private mutating func findShort() {
    guard count > 0, letters.count >= count else { return }
    for at in 0...(letters.count - count) where run(at, count) == last { find(at, count) }
  }

  private mutating func find(_ first: Int, _ length: Int) {
    for at in first..<(first + length) { isFound[at] = true }
  }
}
