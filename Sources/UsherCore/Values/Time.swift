/// Milliseconds, as a duration or as an instant on the context's clock, which starts at 0.
package typealias Milliseconds = UInt64

extension Milliseconds {
  package static var never: Milliseconds { .max }

  /// Returns the instant `duration` later; `never` if the sum would overflow.
  package func adding(_ duration: Milliseconds) -> Milliseconds {
    let (sum, overflow) = addingReportingOverflow(duration)
    return overflow ? .max : sum
  }

  /// Returns the time from `other` to this instant; 0 if `other` is later.
  package func since(_ other: Milliseconds) -> Milliseconds { self > other ? self &- other : 0 }

  /// `share` thousandths of this duration.
  package func permille(_ share: UInt32) -> Milliseconds {
    let (product, overflow) = multipliedReportingOverflow(by: UInt64(share))
    return overflow ? (self / 1000) &* UInt64(share) : product / 1000
  }
}
