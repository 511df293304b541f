internal import CPlatform

/// Lets the I/O thread wait for ready sockets, an instant, or a signal of another thread.
final class Poller {
  private let epoll = platform_epoll_new()
  /// The eventfd that ends a wait. Any thread may signal it.
  let wakeFD = platform_eventfd_new()
  private let timerFD = platform_timerfd_new()
  /// The instant that the timerfd is set to; 0: it is not set.
  private var timerSetTo: Int64 = 0
  /// The instant that the timerfd was set to when the turn began.
  private var timerAtStart: Int64 = 0
  /// If the system did not set the timerfd: when it should have fired, on the monotonic clock. Then the time-out of the
  /// epoll call replaces the timer.
  private var unsetTimer: Int64?
  /// Whether the timer has fired since the turn began.
  private(set) var hasFired = false
  /// Whether another thread has signalled `wakeFD` since the turn began.
  private(set) var wasWoken = false
  private let ready = UnsafeMutableBufferPointer<platform_ready_fd>.allocate(capacity: Int(PLATFORM_READY_MAX))

  deinit { ready.deallocate() }

  /// Starts to watch the eventfd and the timerfd. Returns false if the system refused one of the descriptors.
  func start() -> Bool {
    epoll >= 0 && wakeFD >= 0 && timerFD >= 0 && watch(wakeFD, was: 0, PLATFORM_READABLE)
      && watch(timerFD, was: 0, PLATFORM_READABLE)
  }

  /// Changes the events of a descriptor that epoll watches. Returns false if the system refuses.
  func watch(_ descriptor: Int32, was: Int32, _ interest: Int32) -> Bool {
    platform_epoll_watch(epoll, descriptor, was, interest) == 0
  }

  /// A pair of sockets whose other end may be closed, and what happens then; negative: there is none.
  private var watched: Int32 = -1
  private var onEnd: (() -> Void)?

  func watch(_ socket: Int32, onEnd: @escaping () -> Void) {
    watched = watch(socket, was: 0, PLATFORM_READABLE) ? socket : -1
    self.onEnd = onEnd
  }

  private func watchedEnded() {
    let body = onEnd
    _ = watch(watched, was: PLATFORM_READABLE, 0)
    watched = -1
    onEnd = nil
    // So that the loop makes a turn.
    wasWoken = true
    body?()
  }

  /// Begins a turn of the loop, in which the timer must fire at `instant` (boot time in nanoseconds; nil: it need not
  /// fire).
  ///
  /// Sets the timerfd only if it would fire too late. If it fires too early, the loop only waits again, which costs
  /// less than a system call for each wait.
  func begin(timer instant: Int64?) {
    if let instant, timerSetTo == 0 || instant < timerSetTo {
      timerSetTo = instant
      let isSet = platform_timerfd_set(timerFD, instant) == 0
      unsetTimer =
        isSet ? nil : platform_monotonic_ms() &+ max(0, instant &- platform_boottime_ns() &+ 999_999) / 1_000_000
    }
    timerAtStart = timerSetTo
    hasFired = false
    wasWoken = false
  }

  /// Whether the timer of this turn was set to exactly this instant, and has fired.
  func hasFired(at instant: Int64?) -> Bool { hasFired && timerAtStart == instant }

  /// The result of one call of epoll, which reports at most `PLATFORM_READY_MAX` descriptors.
  struct Round {
    /// The ready sockets; valid until the next round.
    let sockets: UnsafeBufferPointer<platform_ready_fd>
    /// Whether another thread has signalled `wakeFD`.
    let isWoken: Bool
    /// Whether more descriptors may be ready.
    let isFull: Bool
    /// When the wait ended, on the monotonic clock.
    let now: Int64
  }

  /// Waits until a descriptor is ready.
  /// - Parameter instant: the monotonic instant until which it waits; 0: it does not wait; negative: without a limit.
  func wait(until instant: Int64) -> Round {
    let limit = unsetTimer.map { instant < 0 ? $0 : min(instant, $0) } ?? instant
    let count = Int(platform_epoll_wait(epoll, ready.baseAddress, limit))
    let now = platform_monotonic_ms()
    var (sockets, isWoken) = (0, false)
    for index in 0..<count {
      switch ready[index].fd {
      case wakeFD:
        platform_fd_drain(wakeFD)
        isWoken = true
      case timerFD:
        platform_fd_drain(timerFD)
        timerFired()
      case watched: watchedEnded()
      default:
        ready[sockets] = ready[index]
        sockets += 1
      }
    }
    if let due = unsetTimer, due <= now { timerFired() }
    if isWoken { wasWoken = true }
    return Round(
      sockets: UnsafeBufferPointer(start: ready.baseAddress, count: sockets), isWoken: isWoken,
      isFull: count == Int(PLATFORM_READY_MAX), now: now)
  }

  private func timerFired() {
    unsetTimer = nil
    timerSetTo = 0
    hasFired = true
  }

  func close() {
    onEnd = nil
    platform_fd_close(epoll)
    platform_fd_close(wakeFD)
    platform_fd_close(timerFD)
  }
}
