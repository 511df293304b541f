internal import CPlatform

/// What the standard library's `Hasher` asks for. glibc has it since 2.36 only; ours, hidden by the version script, lets the library load on
/// older systems.
@_cdecl("arc4random_buf")
public func usherRandomBytes(_ target: UnsafeMutableRawPointer?, _ count: Int) {
  if let target { platform_random_bytes(target, count) }
}
