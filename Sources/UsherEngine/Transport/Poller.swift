internal import CPlatform

/// Lets the I/O thread wait for ready sockets, an instant, or a signal of another thread.
final class Poller {
  private let epoll = platform_epoll_new()
  /// The eventfd that ends a wait. Any thread may signal it.
  let wakeFD = platform_eventfd_new()
  /// A descriptor that becomes readable when the machine wakes up from a suspend. The loop needs this descriptor,
  /// because the time-out of epoll does not count the time of the suspend, but the timer of the turn does.
  private let resumeFD = platform_resumefd_new()
  private var watchesResume = false
  /// When the timer of this turn fires, in nanoseconds of the boot time; nil: there is no timer.
  private var timer: Int64?
  /// Whether the timer has fired since the turn began.
  private(set) var hasFired = false
  /// Whether another thread has signalled `wakeFD` since the turn began.
  private(set) var wasWoken = false
  private let ready = UnsafeMutableBufferPointer<platform_ready_fd>.allocate(capacity: Int(PLATFORM_READY_MAX))

  deinit { ready.deallocate() }

  /// Starts to watch the descriptors of this object. Returns false if the system refused one of them.
  func start() -> Bool {
    epoll >= 0 && wakeFD >= 0 && resumeFD >= 0 && watch(wakeFD, was: 0, PLATFORM_READABLE)
      && watch(resumeFD, was: 0, PLATFORM_READABLE)
  }

  /// Changes the events of a descriptor that epoll watches. Returns false if the system refuses.
  func watch(_ descriptor: Int32, was: Int32, _ interest: Int32) -> Bool {
    platform_epoll_watch(epoll, descriptor, was, interest) == 0
  }

  /// One end of a pair of sockets; negative: there is none. A call of `watch` replaces it by another one. When it
  /// becomes readable, because the other end was closed, this object stops watching it and calls `onEnd`.
  private var watched: Int32 = -1
  private var onEnd: (() -> Void)?

  func watch(_ socket: Int32, onEnd: @escaping () -> Void) {
    if watched >= 0 { _ = watch(watched, was: PLATFORM_READABLE, 0) }
    watched = watch(socket, was: 0, PLATFORM_READABLE) ? socket : -1
    self.onEnd = onEnd
  }

  private func watchedEnded() {
    let body = onEnd
    _ = watch(watched, was: PLATFORM_READABLE, 0)
    watched = -1
    onEnd = nil
    // Set `wasWoken`, so that the transport does not wait again and the loop makes a turn.
    wasWoken = true
    body?()
  }

  /// Begins a turn of the loop, in which the timer must fire at `instant` (boot time in nanoseconds; nil: it need not
  /// fire).
  func begin(timer instant: Int64?) {
    timer = instant
    // If the system refuses, the next turn tries again.
    if instant != nil, !watchesResume { watchesResume = platform_resumefd_set(resumeFD) == 0 }
    hasFired = false
    wasWoken = false
  }

  /// How many milliseconds are left until the timer fires, rounded up, because epoll counts whole milliseconds.
  /// `Int64.max`: there is no timer.
  var timeLeft: Int64 { timer.map { ($0 &- platform_boottime_ns() &+ 999_999) / 1_000_000 } ?? .max }

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

  /// Waits until a descriptor is ready, or until the timer fires. If the timer fires, the round also reports sockets
  /// that were ready when the timer was due; if the round is full, more of them may be ready.
  /// - Parameter instant: the monotonic instant until which the function waits; 0: it does not wait; negative: it waits
  ///   without a limit.
  func wait(until instant: Int64) -> Round {
    let left = timeLeft
    let due = left <= 0 ? 0 : left == .max ? -1 : platform_monotonic_ms() &+ left
    let isTimer = due >= 0 && (instant < 0 || due <= instant)
    if due == 0 { hasFired = true }
    let count = Int(platform_epoll_wait(epoll, ready.baseAddress, isTimer ? due : instant))
    if isTimer, count == 0 { hasFired = true }
    let now = platform_monotonic_ms()
    var (sockets, isWoken) = (0, false)
    for index in 0..<count {
      switch ready[index].fd {
      case wakeFD:
        platform_fd_drain(wakeFD)
        isWoken = true
      case resumeFD: platform_fd_drain(resumeFD)
      case watched: watchedEnded()
      default:
        ready[sockets] = ready[index]
        sockets += 1
      }
    }
    if isWoken { wasWoken = true }
    return Round(
      sockets: UnsafeBufferPointer(start: ready.baseAddress, count: sockets), isWoken: isWoken,
      isFull: count == Int(PLATFORM_READY_MAX), now: now)
  }

  func close() {
    onEnd = nil
    platform_fd_close(epoll)
    platform_fd_close(wakeFD)
    platform_fd_close(resumeFD)
  }
}
