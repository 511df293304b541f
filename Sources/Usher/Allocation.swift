#if hasFeature(Embedded)
  internal import CPlatform

  /// Swift's run-time code in libusher allocates by this function, in place of posix_memalign: Package.swift gives the
  /// linker `--wrap=posix_memalign`. It ends the process if the system has no memory. Swift itself does so for objects
  /// only; `UnsafeMutablePointer.allocate` would return a null pointer, and the library would write to it.
  @_cdecl("__wrap_posix_memalign")
  public func allocateOrEnd(
    _ out: UnsafeMutablePointer<UnsafeMutableRawPointer?>, _ alignment: Int, _ size: Int
  ) -> Int32 {
    platform_allocate_or_end(out, alignment, size)
    return 0
  }
#endif
