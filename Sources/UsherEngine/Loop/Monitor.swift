internal import CPlatform

/// A lock with a condition. A thread that holds the lock must not lock it again.
package final class Monitor {
  private let raw: UnsafeMutablePointer<platform_monitor>

  package init() {
    raw = UnsafeMutablePointer.allocate(capacity: 1)
    platform_monitor_prepare(raw)
  }

  deinit {
    platform_monitor_end(raw)
    raw.deallocate()
  }

  package func locked<R>(_ body: () -> R) -> R {
    platform_monitor_lock(raw)
    defer { platform_monitor_unlock(raw) }
    return body()
  }

  /// Call inside `locked` only.
  package func wait() { platform_monitor_wait(raw) }

  /// Call inside `locked` only. Returns false if the instant (monotonic milliseconds) passed first.
  package func wait(until instant: Int64) -> Bool { platform_monitor_wait_until(raw, instant) != 0 }

  /// Runs `body` under the lock. If `body` returns true, wakes the waiting threads after unlocking, so that these
  /// threads do not block on the lock.
  package func change(_ body: () -> Bool) { if locked(body) { broadcast() } }

  /// Call inside `locked` or after it.
  package func signal() { platform_monitor_signal(raw) }
  package func broadcast() { platform_monitor_broadcast(raw) }
}

/// Returns real time, even if the context has a manual clock. Tests and threads that wait use it.
package func monotonicMilliseconds() -> Int64 { platform_monotonic_ms() }
