import TestSupport
import Testing

@testable import UsherCore

@Suite struct RetryAfterTests {
  private func pause(_ text: String, now: Int64 = 784_111_777) -> Milliseconds? {
    Array(text.utf8).withUnsafeBufferPointer { RetryAfter.pause($0, now: now) }
  }

  @Test(arguments: [
    ("0", 0), ("7", 7000), ("  120 ", 120_000), ("18446744073709551", 18_446_744_073_709_551_000),
    ("18446744073709552", Milliseconds.never), ("99999999999999999999999999", Milliseconds.never)
  ])
  func seconds_areRead_andNeverOverflow(text: String, expected: Milliseconds) { #expect(pause(text) == expected) }

  /// The time 90 s after `now`, in each of the three forms of a date that RFC 9110 allows.
  @Test(arguments: [
    "Sun, 06 Nov 1994 08:51:07 GMT", "Sunday, 06-Nov-94 08:51:07 GMT", "Sun Nov  6 08:51:07 1994",
    "sun, 6 nov 1994 08:51:07 gmt", " Sun, 06 Nov 1994 08:51:07 GMT "
  ])
  func date_inEachForm_isAPause(text: String) { #expect(pause(text) == 90_000) }

  @Test func date_inThePast_isNoPause() { #expect(pause("Sat, 01 Jan 1994 00:00:00 GMT") == 0) }

  @Test(arguments: [
    ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
    ("Thu, 31 Dec 2026 23:59:60 GMT", 1_798_761_600), ("Fri, 01 Mar 2199 00:00:00 GMT", 7_231_680_000)
  ])
  func date_isCountedInSecondsSince1970(text: String, expected: Int64) {
    #expect(Array(text.utf8).withUnsafeBufferPointer { RetryAfter.date($0) } == expected)
  }

  @Test(arguments: [
    "", " ", "-1", "+1", "1.5", "7s", "7, 8", "soon", "Sun,06 Nov 1994 08:51:07 GMT", "Sun, 06 Nov 1994",
    "Sun, 06 Nov 1994 08:51:07", "Sun, 06 Nov 1994 08:51:07 CET", "Sun, 06 Nov 1994 24:00:00 GMT",
    "Sun, 00 Nov 1994 08:51:07 GMT", "Sun, 32 Nov 1994 08:51:07 GMT", "Sun, 06 Nop 1994 08:51:07 GMT",
    "Sun, 06 Nov 94 08:51:07 GMT", "Sun, 06 Nov 1969 08:51:07 GMT", "Sun Nov 6 08:51:07", "Su", "Sun, 06-Nov-1994"
  ])
  func otherText_isIgnored(text: String) { #expect(pause(text) == nil) }

  /// Reads every prefix of a date, and dates with one changed byte; none may cause a trap.
  @Test func anyBytes_neverTrap() {
    let date = Array("Sunday, 06-Nov-94 08:51:07 GMT".utf8)
    for end in date.indices { _ = date[..<end].withUnsafeBufferPointer { RetryAfter.pause($0, now: 0) } }
    for index in date.indices {
      for byte in UInt8.min...UInt8.max {
        var changed = date
        changed[index] = byte
        _ = changed.withUnsafeBufferPointer { RetryAfter.pause($0, now: .max) }
      }
    }
  }
}
