internal import CPlatform

/// Points in the code at which a test kills the process, to check that the server does not keep its sessions (`make
/// kills`). Only the checked build has these points. The environment variable USHER_KILL_AT is the number of the point,
/// from 1. If this variable is 0, the process kills itself at no point, and prints each point that it passes.
enum KillPoint {
  #if hasFeature(Embedded)
    @inline(__always) static func pass(_ name: StaticString) {}
  #else
    private static let chosen: Int64 = platform_kill_point()

    static func pass(_ name: StaticString) {
      guard chosen >= 0 else { return }
      platform_pass_kill_point(name.utf8Start, chosen)
    }
  #endif
}
