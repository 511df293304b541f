internal import CPlatform

/// Swift's `Hasher` calls a function with this C name, which glibc has only since 2.36. Because of this definition the
/// library also loads on older systems. The version script hides it from other libraries.
@_cdecl("arc4random_buf")
public func usherRandomBytes(_ target: UnsafeMutableRawPointer?, _ count: Int) {
  // Without random bytes hashes are predictable; the function cannot report that.
  if let target { _ = platform_random_bytes(target, count) }
}
