internal import CPlatform

/// The function that the standard library's `Hasher` calls. glibc has had it only since 2.36. This definition, which
/// the version script hides, lets the library load on older systems.
@_cdecl("arc4random_buf")
public func usherRandomBytes(_ target: UnsafeMutableRawPointer?, _ count: Int) {
  if let target { platform_random_bytes(target, count) }
}
