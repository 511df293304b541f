internal import CPlatform

/// Instants at which a test kills the process, to see that nothing of it stays taken at the server (`make kills`). Only
/// the checked build has them. The variable USHER_KILL_AT of the environment is the number of the point, from 1; with
/// 0, the process lives, and prints the names of all points that it passes.
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
