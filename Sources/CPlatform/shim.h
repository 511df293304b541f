/* Typed functions over pthread, epoll, eventfd and timerfd, so that Swift needs no Glibc module and no variadic C. */
#ifndef USHER_CPLATFORM_SHIM_H
#define USHER_CPLATFORM_SHIM_H

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* ---- a lock with a condition, on the monotonic clock ---- */
typedef struct platform_monitor {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
} platform_monitor;

/* The static initialisers allocate nothing and cannot fail. */
static inline void platform_monitor_prepare(platform_monitor *m) {
  m->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  m->condition = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}
static inline void platform_monitor_end(platform_monitor *m) {
  pthread_cond_destroy(&m->condition);
  pthread_mutex_destroy(&m->mutex);
}
static inline void platform_monitor_lock(platform_monitor *m) { pthread_mutex_lock(&m->mutex); }
static inline void platform_monitor_unlock(platform_monitor *m) { pthread_mutex_unlock(&m->mutex); }
static inline void platform_monitor_wait(platform_monitor *m) { pthread_cond_wait(&m->condition, &m->mutex); }
static inline void platform_monitor_signal(platform_monitor *m) { pthread_cond_signal(&m->condition); }
static inline void platform_monitor_broadcast(platform_monitor *m) { pthread_cond_broadcast(&m->condition); }

static inline int64_t platform_monotonic_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
/* Waits for a signal, but not beyond the monotonic instant `at_ms`. Returns 0 if that instant has passed. */
static inline int platform_monitor_wait_until(platform_monitor *m, int64_t at_ms) {
  struct timespec t;
  t.tv_sec = (time_t)(at_ms / 1000);
  t.tv_nsec = (long)(at_ms % 1000) * 1000000L;
  return pthread_cond_clockwait(&m->condition, &m->mutex, CLOCK_MONOTONIC, &t) != ETIMEDOUT;
}

/* ---- threads; each starts with all signals blocked ---- */
typedef void *(*platform_thread_body)(void *);
static inline int platform_thread_start(platform_thread_body fn, void *argument, int detached, uint64_t *out) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (detached) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int result = pthread_create(&thread, &attributes, fn, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (result == 0 && out != NULL) *out = (uint64_t)thread;
  return result;
}
/* Turns cancellation off for the calling thread, until platform_cancel_restore(). Otherwise pthread_cancel() of the
 * host could end the thread while it holds a lock of the library. */
static inline int platform_cancel_off(void) {
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}
static inline void platform_cancel_restore(int before) {
  int unused;
  pthread_setcancelstate(before, &unused);
}
/* The first call of every thread of the library: names the thread, with at most 15 characters. From then on,
 * pthread_cancel() of the host has no effect on the thread. */
static inline void platform_thread_begin(const void *name) {
  (void)platform_cancel_off();
  prctl(PR_SET_NAME, name, 0, 0, 0);
}
static inline void platform_thread_join(uint64_t thread) { pthread_join((pthread_t)thread, NULL); }
static inline uint64_t platform_thread_self(void) { return (uint64_t)pthread_self(); }
static inline int32_t platform_process_id(void) { return (int32_t)getpid(); }
static inline void platform_sleep_ms(int64_t ms) {
  struct timespec t;
  t.tv_sec = (time_t)(ms / 1000);
  t.tv_nsec = (long)(ms % 1000) * 1000000L;
  nanosleep(&t, NULL);
}
static inline int platform_at_fork_child(void (*fn)(void)) { return pthread_atfork(NULL, NULL, fn); }

typedef uint32_t platform_thread_key;
static inline int platform_thread_key_new(platform_thread_key *out) {
  pthread_key_t key;
  int result = pthread_key_create(&key, NULL);
  *out = (platform_thread_key)key;
  return result;
}
static inline void platform_thread_key_set(platform_thread_key key, uintptr_t value) {
  pthread_setspecific((pthread_key_t)key, (void *)value);
}
static inline uintptr_t platform_thread_key_get(platform_thread_key key) {
  return (uintptr_t)pthread_getspecific((pthread_key_t)key);
}

/* ---- time and wake-ups ---- */
static inline int64_t platform_boottime_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
/* Returns for how long the machine has slept since it started: CLOCK_MONOTONIC stops during a suspend. */
static inline int64_t platform_slept_ms(void) {
  struct timespec awake;
  clock_gettime(CLOCK_MONOTONIC, &awake);
  return (platform_boottime_ns() - ((int64_t)awake.tv_sec * 1000000000 + awake.tv_nsec)) / 1000000;
}
static inline int platform_eventfd_new(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }
static inline void platform_eventfd_signal(int fd) {
  uint64_t one = 1;
  /* The write fails only when the counter is full. Then the descriptor is readable already. */
  while (write(fd, &one, sizeof one) < 0 && errno == EINTR) {}
}
static inline void platform_fd_drain(int fd) {
  uint64_t value;
  ssize_t n = read(fd, &value, sizeof value);
  (void)n; /* The read fails if the counter is 0. Then there is nothing to drain. */
}
/* Returns the wall clock in milliseconds since 1970. */
static inline int64_t platform_wall_clock_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
static inline uint64_t platform_length(const char *text) { return strlen(text); }
static inline int platform_is_in_environment(const char *name) {
  const char *value = getenv(name);
  return value != NULL && value[0] != 0;
}
/* Makes close() drop the bytes that the peer has not acknowledged. Otherwise the kernel would send these bytes in
 * the background. */
static inline void platform_socket_abort_at_close(int fd) {
  struct linger at_once = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}
/* Returns how many sent bytes the peer has not acknowledged; -1 if the socket is closed. */
static inline int platform_socket_unacknowledged(int fd) {
  int bytes = -1;
  return ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : -1;
}
/* Returns the local port of a socket; 0 if it has none. */
static inline int platform_socket_local_port(int fd) {
  struct sockaddr_in6 address; /* also for IPv4: in sockaddr_in the port has the same offset */
  socklen_t size = sizeof address;
  if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) return 0;
  return address.sin6_family == AF_INET || address.sin6_family == AF_INET6 ? ntohs(address.sin6_port) : 0;
}
/* Makes reads from a socket end, as if the peer had closed the connection. */
static inline void platform_socket_end_reads(int fd) { shutdown(fd, SHUT_RD); }
/* Whether a socket for IPv6 also reaches IPv4 addresses. */
static inline int platform_maps_ipv4(void) {
  int only = 1;
  socklen_t size = sizeof only;
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  if (getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size) != 0) only = 1;
  close(fd);
  return only == 0;
}
/* Looks up a host name. Writes its addresses to `out`, separated by commas, with IPv6 addresses in brackets. Returns
 * how many bytes it wrote; 0 if the lookup failed.
 *
 * libcurl tries IPv4 and IPv6 addresses at the same time, 0.2 s apart. But it tries the addresses of one family one
 * after another, each for half of the time that is left. So if all addresses are IPv4, this function writes every
 * second one in its IPv6 form ("::ffff:192.0.2.1"). */
static inline uint64_t platform_look_up(const void *host, void *out, uint64_t room) {
  struct addrinfo hints, *found = NULL, *each;
  char *text = (char *)out;
  uint64_t used = 0;
  int count = 0, is_all_ipv4 = 1;
  memset(&hints, 0, sizeof hints);
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo((const char *)host, NULL, &hints, &found) != 0) return 0;
  for (each = found; each != NULL; each = each->ai_next)
    if (each->ai_family != AF_INET) is_all_ipv4 = 0;
  int maps = is_all_ipv4 && found != NULL && found->ai_next != NULL && platform_maps_ipv4();
  for (each = found; each != NULL; each = each->ai_next) {
    char number[NI_MAXHOST];
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    if (getnameinfo(each->ai_addr, each->ai_addrlen, number, sizeof number, NULL, 0, NI_NUMERICHOST) != 0) continue;
    /* Skip an IPv6 address that is valid only on one interface (with a zone, as in fe80::1%eth0). */
    if (strchr(number, '%') != NULL) continue;
    const char *before = each->ai_family == AF_INET6 ? "[" : maps && count % 2 == 1 ? "[::ffff:" : "";
    int size = snprintf(text + used, (size_t)(room - used), "%s%s%s%s", count > 0 ? "," : "", before, number,
        before[0] != 0 ? "]" : "");
    if (size < 0 || (uint64_t)size >= room - used) break;
    used += (uint64_t)size;
    count++;
  }
  freeaddrinfo(found);
  return used;
}
/* Returns a timer. After platform_resumefd_set() it becomes readable when the wall clock is set, and when the machine
   wakes up from a suspend. */
static inline int platform_resumefd_new(void) { return timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC); }
/* Returns 0, or -1 if the system refuses. */
static inline int platform_resumefd_set(int fd) {
  struct itimerspec t;
  memset(&t, 0, sizeof t);
  /* The timer itself must not fire: it would, in the year 2242. A time_t of four bytes ends in 2038. */
  t.it_value.tv_sec = (time_t)(sizeof t.it_value.tv_sec > 4 ? INT64_C(0x200000000) : INT64_C(0x7fffffff));
  return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &t, NULL);
}
/* A timer for which one thread waits in platform_ticker_wait(), and which another thread sets. */
static inline int platform_ticker_new(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC); }
/* Sets the timer: the wait of the other thread ends after `ms` milliseconds. 0: stops the timer. Returns 0, or -1
   if the system refuses. */
static inline int platform_ticker_set(int fd, int64_t ms) {
  struct itimerspec t;
  memset(&t, 0, sizeof t);
  t.it_value.tv_sec = (time_t)(ms / 1000);
  t.it_value.tv_nsec = (long)(ms % 1000) * 1000000L;
  return timerfd_settime(fd, 0, &t, NULL);
}
static inline void platform_ticker_wait(int fd) {
  uint64_t value;
  /* If the host has closed the descriptor, each read fails. Sleep, so that the caller does not use all processor
     time. */
  if (read(fd, &value, sizeof value) < 0) platform_sleep_ms(10);
}
static inline int platform_epoll_new(void) { return epoll_create1(EPOLL_CLOEXEC); }
#define PLATFORM_READABLE 1
#define PLATFORM_WRITABLE 2
/* Changes the events of `fd` that epoll watches from `was` to `interest`. Both are a combination of PLATFORM_READABLE
   and PLATFORM_WRITABLE; 0 means that epoll does not watch `fd`. */
static inline int platform_epoll_watch(int epoll, int fd, int was, int interest) {
  struct epoll_event event;
  memset(&event, 0, sizeof event);
  event.events = ((interest & PLATFORM_READABLE) ? EPOLLIN : 0u) | ((interest & PLATFORM_WRITABLE) ? EPOLLOUT : 0u);
  event.data.fd = fd;
  if (epoll_ctl(epoll, interest == 0 ? EPOLL_CTL_DEL : was == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) == 0)
    return 0;
  if (interest == 0 || (errno != ENOENT && errno != EEXIST)) return -1;
  return epoll_ctl(epoll, errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
}

typedef struct platform_ready_fd {
  int32_t fd;
  int32_t readable;
  int32_t writable;
  int32_t failed;
} platform_ready_fd;
#define PLATFORM_READY_MAX 64
/* Waits for ready descriptors until the monotonic instant `until_ms`; 0: does not wait; negative: waits without a
 * limit. A signal does not end the wait, and neither does a stop of the process (SIGSTOP). If no descriptor becomes
 * ready, the wait takes at least `until_ms` minus the value that platform_monotonic_ms() had when the wait began. */
static inline int platform_epoll_wait(int epoll, platform_ready_fd *out, int64_t until_ms) {
  struct epoll_event events[PLATFORM_READY_MAX];
  int count, interrupted = -1;
  do {
    interrupted++;
    int64_t left = until_ms > 0 ? until_ms - platform_monotonic_ms() + (interrupted > 0) : until_ms;
    int timeout_ms = left > 0x7fffffff ? 0x7fffffff : left > 0 || until_ms <= 0 ? (int)left : 0;
    count = epoll_wait(epoll, events, PLATFORM_READY_MAX, until_ms < 0 ? -1 : timeout_ms);
  } while (count < 0 && errno == EINTR);
  /* If the host has closed the descriptor, epoll_wait fails at each call. Sleep, so that the calling loop does not use
     all processor time. */
  if (count < 0) platform_sleep_ms(10);
  for (int i = 0; i < count; i++) {
    out[i].fd = events[i].data.fd;
    out[i].readable = (events[i].events & (EPOLLIN | EPOLLHUP)) != 0;
    out[i].writable = (events[i].events & EPOLLOUT) != 0;
    out[i].failed = (events[i].events & EPOLLERR) != 0;
  }
  return count < 0 ? 0 : count;
}
static inline void platform_fd_close(int fd) {
  if (fd >= 0) close(fd);
}

/* Fills `p` with random bytes from the kernel. Soon after boot this function may wait until the kernel has enough
 * entropy. Returns 0, or -1 if the kernel has no random bytes. */
static inline int platform_random_bytes(void *p, size_t n) {
  uint8_t *at = (uint8_t *)p;
  int fd = -1;
  while (n > 0) {
    ssize_t got = fd < 0 ? getrandom(at, n, 0) : read(fd, at, n);
    if (got <= 0) {
      if (got < 0 && errno == EINTR) continue;
      if (fd >= 0) break;
      /* A sandbox may forbid getrandom(); then read the file instead. */
      fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
      if (fd < 0) return -1;
      continue;
    }
    at += got;
    n -= (size_t)got;
  }
  if (fd >= 0) close(fd);
  return n == 0 ? 0 : -1;
}
/* Reads a regular file, at most `room` bytes. Returns how many bytes it read, or -1 if the file cannot be read. */
static inline long platform_read_file(const char *path, void *target, size_t room) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return -1;
  struct stat is;
  if (fstat(fd, &is) != 0 || !S_ISREG(is.st_mode)) {
    close(fd);
    return -1;
  }
  size_t done = 0;
  while (done < room) {
    ssize_t got = read(fd, (uint8_t *)target + done, room - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      close(fd);
      return -1;
    }
    if (got == 0) break;
    done += (size_t)got;
  }
  close(fd);
  return (long)done;
}
/* Whether the process or the system has no free file descriptor at this moment. */
static inline int platform_is_short_of_descriptors(void) {
  int fd = platform_eventfd_new();
  if (fd < 0) return errno == EMFILE || errno == ENFILE;
  close(fd);
  return 0;
}
/* How many file descriptors the process may have open; INT32_MAX if the limit is larger or unknown. */
static inline int32_t platform_descriptors_max(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT32_MAX) return INT32_MAX;
  return (int32_t)limit.rlim_cur;
}
/* The C library's own posix_memalign. The linker option --wrap=posix_memalign gives it this name. */
int __real_posix_memalign(void **out, size_t alignment, size_t size);
/* Allocates a block. If the system has no memory, ends the process by a signal. The alignment of malloc() is enough
 * for almost all blocks; for these the function calls malloc(), because malloc() is faster than posix_memalign(). */
static inline __attribute__((always_inline)) void platform_allocate_or_end(void **out, size_t alignment, size_t size) {
  if (alignment <= _Alignof(max_align_t)) {
    *out = malloc(size);
    if (*out == NULL) __builtin_trap();
  } else if (__real_posix_memalign(out, alignment, size) != 0) {
    __builtin_trap();
  }
}
static inline size_t platform_strnlen(const char *s, size_t most) { return strnlen(s, most); }

#endif
