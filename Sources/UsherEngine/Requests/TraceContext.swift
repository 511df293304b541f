internal import CPlatform
internal import UsherCore

/// Makes the header `traceparent` of requests, as W3C Trace Context defines it: all requests of a playback have the
/// same trace id, and each request has its own span id.
///
/// The library computes the ids from random numbers of the context and from the number of the playback or request, so
/// a playback need not store its trace id.
struct TraceContext {
  private let seed: (UInt64, UInt64, UInt64)

  init() {
    var bytes = (UInt64(0), UInt64(0), UInt64(0))
    platform_random_bytes(&bytes, MemoryLayout.size(ofValue: bytes))
    seed = bytes
  }

  /// Returns the header of a request. A request without a playback has a trace of its own.
  func line(of transfer: Transfer) -> TraceParent {
    let owner = EventSink.subject(transfer).0 ?? ~transfer.number
    return TraceParent(
      trace: (Self.mixed(seed.0 ^ owner), Self.mixed(seed.1 ^ owner)), span: Self.mixed(seed.2 ^ transfer.number))
  }

  /// Mixes the bits of a number (splitmix64), so that each number gives another result. Never returns 0, which the
  /// standard forbids.
  private static func mixed(_ number: UInt64) -> UInt64 {
    var value = number &+ 0x9E37_79B9_7F4A_7C15
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    value ^= value >> 31
    return value == 0 ? 1 : value
  }
}

/// The header `traceparent` of one request.
package struct TraceParent {
  /// "traceparent: 00-TRACE-SPAN-01", NUL-terminated.
  let line: Secret
  /// The value of the header.
  let text: String

  fileprivate init(trace: (UInt64, UInt64), span: UInt64) {
    var value = TextLine()
    value.add("00-")
    value.add(hex: trace.0)
    value.add(hex: trace.1)
    value.add("-")
    value.add(hex: span)
    value.add("-01")
    text = value.text()
    var line = TextLine()
    line.add("traceparent: ")
    line.add(text)
    line.add(0 as UInt8)
    self.line = Secret(line.bytes)
  }
}

extension TextLine {
  fileprivate mutating func add(hex number: UInt64) {
    for shift in stride(from: 60, through: 0, by: -4) {
      let digit = UInt8(truncatingIfNeeded: (number >> UInt64(shift)) & 15)
      add(digit < 10 ? 0x30 + digit : 0x57 + digit)
    }
  }
}
