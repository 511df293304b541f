/// Searches one text for parts of secrets. It reads each secret once, byte by byte: a table has all runs of 8 compared
/// bytes of the text.
struct SecretSearch {
  /// Which bytes of the text and of the secrets a search compares, without regard to case. It skips all others.
  enum Compared {
    case lettersAndDigits
    /// Hex digits except 0, so that `51`, `0x51`, `U+0051` and `5100` are equal.
    case nonZeroDigits
    /// For secrets that have few letters, or letters that are not ASCII.
    case allButBlanks
  }

  private let compared: Compared
  /// The compared bytes of the text, in lower case. They may contain secrets.
  private var letters: [UInt8] = []
  /// For each of `letters`, where in the text it stands.
  private var positions: [UInt16] = []
  private var isFound: [Bool]
  /// By the hash of a run: the number of the last run with this hash, plus 1. `next` continues the chain.
  private var heads = [UInt16](repeating: 0, count: 1024)
  private var next: [UInt16] = []
  /// The last letters of the secret, and how many letters it had so far.
  private var last: UInt64 = 0
  private var count = 0

  /// - Parameter text: at most 65,535 bytes.
  init(_ text: UnsafeBufferPointer<UInt8>, _ compared: Compared) {
    self.compared = compared
    // An array that grows leaves its old memory unwiped, so reserve the memory.
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

  /// Ends the search: marks the found bytes of the text, and the bytes between them.
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

  /// Searches for a secret of which every part counts.
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

  /// Searches for the long words of a secret, and for the codings of the whole.
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

  /// Searches for the numbers of the bytes of a secret, each with up to three digits.
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

  /// Searches for the base64 of a secret. In base64 the letters depend on how many bytes stand before the secret, so
  /// there are three of each form.
  @inline(never)
  private mutating func findBase64(_ secret: UnsafeBufferPointer<UInt8>, _ form: Base64Form) {
    for skipped in 0..<min(3, secret.count) {
      begin()
      var (bits, held): (UInt32, UInt32) = (0, 0)
      // By index: a slice costs an allocation for each byte in the checked build.
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

  /// The next byte of the secret. (Not inlined: it has many callers.)
  @inline(never)
  private mutating func add(_ byte: UInt8) {
    guard let letter = Self.folded(byte, compared) else { return }
    last = last << 8 | UInt64(letter)
    count += 1
    guard count >= HiddenSecrets.part else { return }
    var number = Int(heads[Self.slot(last)])
    while number > 0 {
      if run(number - 1, HiddenSecrets.part) == last { find(number - 1, HiddenSecrets.part) }
      number = Int(next[number - 1])
    }
  }

  /// The secret has less letters than a part: searches for all of it.
  private mutating func findShort() {
    guard count > 0, letters.count >= count else { return }
    for at in 0...(letters.count - count) where run(at, count) == last { find(at, count) }
  }

  private mutating func find(_ first: Int, _ length: Int) {
    for at in first..<(first + length) { isFound[at] = true }
  }
}
