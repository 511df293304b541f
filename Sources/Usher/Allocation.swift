#if hasFeature(Embedded)
  internal import CPlatform

  /// Swift's run-time code in libusher calls this function instead of posix_memalign, because Package.swift passes
  /// `--wrap=posix_memalign` to the linker. If the system has no memory, this function ends the process. Without it,
  /// Swift would end the process only if there is no memory for an object; `UnsafeMutablePointer.allocate` would return
  /// a null pointer, and the library would write to that address.
  @_cdecl("__wrap_posix_memalign") @inline(__always)
  public func allocateOrEnd(
    _ out: UnsafeMutablePointer<UnsafeMutableRawPointer?>, _ alignment: Int, _ size: Int
  ) -> Int32 {
    platform_allocate_or_end(out, alignment, size)
    return 0
  }
#endif
