internal import CPlatform

/// Swift's `Hasher` calls a C function with this name, which glibc has only since version 2.36. With this definition
/// the library also loads on older systems. The version script hides the function from other libraries.
@_cdecl("arc4random_buf")
public func usherRandomBytes(_ target: UnsafeMutableRawPointer?, _ count: Int) {
  // If there are no random bytes, hashes are predictable; this function cannot report an error.
  if let target { _ = platform_random_bytes(target, count) }
}
