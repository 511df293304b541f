internal import CGuard
internal import CPlatform

/// The machine, its boot, its clocks and the user of the process at one instant. These values decide whether a record
/// that another process wrote may still be used.
package struct MachineMoment {
  /// Identifies the machine; 0: unknown.
  package var machine: UInt64
  /// Changes when the system boots; zeros: unknown.
  package var boot: [UInt8]
  package var user: UInt32
  /// CLOCK_BOOTTIME, in milliseconds. Two such times can be compared only within one boot.
  package var bootTime: Int64
  /// Milliseconds since 1970.
  package var wallTime: Int64

  package static func now() -> MachineMoment {
    var id = [UInt8](repeating: 0, count: 64)
    let idLength = id.withUnsafeMutableBytes { platform_read_file("/etc/machine-id", $0.baseAddress, $0.count) }
    return MachineMoment(
      machine: idLength > 0 ? id.withUnsafeBytes { usher_record_checksum(0, $0.baseAddress, UInt64($0.count)) } : 0,
      boot: bootID(), user: platform_user_id(), bootTime: platform_boottime_ns() / 1_000_000,
      wallTime: platform_wall_clock_ms())
  }

  /// The text of the file that identifies the boot, in 40 bytes; zeros if it cannot be read.
  static func bootID() -> [UInt8] {
    var text = [UInt8](repeating: 0, count: 40)
    let length = text.withUnsafeMutableBytes {
      platform_read_file("/proc/sys/kernel/random/boot_id", $0.baseAddress, $0.count)
    }
    // The file ends with a newline.
    text[max(0, min(length &- 1, text.count &- 1))] = 0
    return text
  }

  /// Whether the server no longer has the session of a record.
  /// - Parameter boot: the boot in which the record was written.
  func isOver(_ record: usher_record, writtenIn boot: [UInt8]) -> Bool {
    let isSameBoot = boot == self.boot && boot.contains { $0 != 0 }
    // Within one boot compare CLOCK_BOOTTIME, which cannot be set. If the system has booted again since, only the wall
    // clock can be compared. If the wall clock was set back, an old record counts as valid: a teardown of a session
    // that is over does no harm.
    return isSameBoot ? bootTime > record.expires_boot_ms : wallTime > record.expires_wall_ms
  }
}
