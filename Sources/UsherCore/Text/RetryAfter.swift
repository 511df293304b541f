/// Reads the value of a `Retry-After` header (RFC 9110, section 10.2.3): seconds, or an HTTP date in one of its three
/// forms.
package enum RetryAfter {
  /// Returns the pause that the server asks for; nil if the text is neither a number of seconds nor an HTTP date. A
  /// date in the past is a pause of 0. A number that is too large gives the longest pause.
  /// - Parameter now: the wall clock, in seconds since 1970. If the reply has a `Date` header, pass the time in that
  ///   header: then the result does not depend on the clock of this machine.
  package static func pause(_ text: UnsafeBufferPointer<UInt8>, now: Int64) -> Milliseconds? {
    var reader = Reader(text)
    reader.skipBlanks()
    if let digit = reader.peek, isDigit(digit) { return seconds(&reader) }
    guard let date = date(&reader) else { return nil }
    let since = max(now, 0)
    return date > since ? Milliseconds(date &- since) &* 1000 : 0
  }

  /// Returns the seconds since 1970 of an HTTP date; nil if the text is not an HTTP date.
  package static func date(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
    var reader = Reader(text)
    reader.skipBlanks()
    return date(&reader)
  }

  private static func seconds(_ reader: inout Reader) -> Milliseconds? {
    var seconds: Milliseconds = 0
    while let digit = reader.takeDigit() {
      let (tenfold, overflow) = seconds.multipliedReportingOverflow(by: 10)
      seconds = overflow ? .max : tenfold.adding(Milliseconds(digit))
    }
    guard reader.isAtEnd else { return nil }
    return seconds > .never / 1000 ? .never : seconds &* 1000
  }

  /// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov  6 08:49:37 1994`. Does not
  /// check the name of the day.
  private static func date(_ reader: inout Reader) -> Int64? {
    guard reader.skipLetters() >= 3 else { return nil }
    let hasComma = reader.take(0x2C)
    guard reader.skipBlanks() else { return nil }
    if !hasComma { return asctime(&reader) }
    guard let day = reader.number(1...2) else { return nil }
    let isOld = reader.take(0x2D)
    guard isOld || reader.skipBlanks(), let month = reader.month(), isOld ? reader.take(0x2D) : reader.skipBlanks(),
      let year = isOld ? reader.number(2...2).map({ $0 < 70 ? 2000 + $0 : 1900 + $0 }) : reader.number(4...4),
      reader.skipBlanks(), let time = reader.time(), reader.skipBlanks(), reader.takeGMT(), reader.isAtEnd
    else { return nil }
    return seconds(year, month, day, time)
  }

  private static func asctime(_ reader: inout Reader) -> Int64? {
    guard let month = reader.month(), reader.skipBlanks(), let day = reader.number(1...2), reader.skipBlanks(),
      let time = reader.time(), reader.skipBlanks(), let year = reader.number(4...4), reader.isAtEnd
    else { return nil }
    return seconds(year, month, day, time)
  }

  private static func seconds(_ year: Int64, _ month: Int64, _ day: Int64, _ time: Int64) -> Int64? {
    guard (1...31).contains(day), year >= 1970 else { return nil }
    // Days since 1970-01-01 in the Gregorian calendar. The years begin in March, so that the leap day is the last.
    let shifted = month > 2 ? year : year - 1
    let era = shifted / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return (era * 146_097 + dayOfEra - 719_468) * 86_400 + time
  }

  private struct Reader {
    private let text: UnsafeBufferPointer<UInt8>
    private var index = 0

    init(_ text: UnsafeBufferPointer<UInt8>) { self.text = text }

    var peek: UInt8? { index < text.count ? text[index] : nil }

    /// Whether only blanks are left.
    var isAtEnd: Bool {
      var rest = self
      rest.skipBlanks()
      return rest.index == text.count
    }

    mutating func take(_ byte: UInt8) -> Bool {
      guard peek == byte else { return false }
      index += 1
      return true
    }

    @discardableResult
    mutating func skipBlanks() -> Bool {
      let start = index
      while peek == 0x20 || peek == 0x09 { index += 1 }
      return index > start
    }

    mutating func takeLetter() -> UInt8? {
      guard let byte = peek, (0x61...0x7A).contains(byte | 0x20) else { return nil }
      index += 1
      return byte | 0x20
    }

    mutating func skipLetters() -> Int {
      let start = index
      while takeLetter() != nil {}
      return index - start
    }

    mutating func takeDigit() -> UInt8? {
      guard let byte = peek, isDigit(byte) else { return nil }
      index += 1
      return byte & 15
    }

    /// Reads a number with this many digits.
    mutating func number(_ digits: ClosedRange<Int>) -> Int64? {
      var number: Int64 = 0
      var count = 0
      while count < digits.upperBound, let digit = takeDigit() {
        number = number * 10 + Int64(digit)
        count += 1
      }
      return count >= digits.lowerBound ? number : nil
    }

    /// Reads the three letters of a month, and returns its number, 1 to 12.
    mutating func month() -> Int64? {
      guard let first = takeLetter(), let second = takeLetter(), let third = takeLetter() else { return nil }
      let names: StaticString = "janfebmaraprmayjunjulaugsepoctnovdec"
      for month in 0..<12 {
        let name = names.utf8Start + 3 * month
        if name[0] == first, name[1] == second, name[2] == third { return Int64(month) + 1 }
      }
      return nil
    }

    /// Reads `hh:mm:ss`, and returns it in seconds. A leap second is allowed.
    mutating func time() -> Int64? {
      guard let hour = number(2...2), take(0x3A), let minute = number(2...2), take(0x3A), let second = number(2...2),
        hour < 24, minute < 60, second <= 60
      else { return nil }
      return hour * 3600 + minute * 60 + second
    }

    mutating func takeGMT() -> Bool { takeLetter() == 0x67 && takeLetter() == 0x6D && takeLetter() == 0x74 }
  }
}
