/* Typed shims over pthread, epoll, eventfd and timerfd, so that Swift needs neither Glibc's overlay nor variadic C. */
#ifndef USHER_CPLATFORM_SHIM_H
#define USHER_CPLATFORM_SHIM_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* ---- a lock with a condition, on the monotonic clock ---- */
typedef struct up_monitor {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
} up_monitor;

static inline up_monitor *up_monitor_new(void) {
  up_monitor *m = (up_monitor *)calloc(1, sizeof *m);
  if (m == NULL) return NULL;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&m->mutex, NULL);
  pthread_cond_init(&m->condition, &attributes);
  pthread_condattr_destroy(&attributes);
  return m;
}
static inline void up_monitor_free(up_monitor *m) {
  pthread_cond_destroy(&m->condition);
  pthread_mutex_destroy(&m->mutex);
  free(m);
}
static inline void up_monitor_lock(up_monitor *m) { pthread_mutex_lock(&m->mutex); }
static inline void up_monitor_unlock(up_monitor *m) { pthread_mutex_unlock(&m->mutex); }
static inline void up_monitor_wait(up_monitor *m) { pthread_cond_wait(&m->condition, &m->mutex); }
static inline void up_monitor_signal(up_monitor *m) { pthread_cond_signal(&m->condition); }
static inline void up_monitor_broadcast(up_monitor *m) { pthread_cond_broadcast(&m->condition); }

static inline int64_t up_monotonic_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
/* Waits until signalled or until the monotonic instant; returns 0 when the instant passed. */
static inline int up_monitor_wait_until(up_monitor *m, int64_t at_ms) {
  struct timespec t;
  t.tv_sec = (time_t)(at_ms / 1000);
  t.tv_nsec = (long)(at_ms % 1000) * 1000000L;
  return pthread_cond_timedwait(&m->condition, &m->mutex, &t) != ETIMEDOUT;
}

/* ---- threads: all signals blocked ---- */
typedef void *(*up_thread_fn)(void *);
static inline int up_thread_start(up_thread_fn fn, void *argument, int detached, uint64_t *out) {
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
static inline void up_thread_join(uint64_t thread) { pthread_join((pthread_t)thread, NULL); }
static inline uint64_t up_thread_self(void) { return (uint64_t)pthread_self(); }
static inline int up_at_fork_child(void (*fn)(void)) { return pthread_atfork(NULL, NULL, fn); }

typedef uint32_t up_key;
static inline int up_key_new(up_key *out) {
  pthread_key_t key;
  int result = pthread_key_create(&key, NULL);
  *out = (up_key)key;
  return result;
}
static inline void up_key_set(up_key key, uintptr_t value) { pthread_setspecific((pthread_key_t)key, (void *)value); }
static inline uintptr_t up_key_get(up_key key) { return (uintptr_t)pthread_getspecific((pthread_key_t)key); }

/* ---- time and wake-ups ---- */
static inline int64_t up_boottime_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline int up_eventfd_new(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }
static inline void up_eventfd_signal(int fd) {
  uint64_t one = 1;
  ssize_t n = write(fd, &one, sizeof one);
  (void)n; /* a full counter is awake already */
}
static inline void up_fd_drain(int fd) {
  uint64_t value;
  ssize_t n = read(fd, &value, sizeof value);
  (void)n; /* nothing there is fine */
}
static inline int up_timerfd_new(void) { return timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC); }
/* Rings at the boot-time instant; 0 disarms. */
static inline void up_timerfd_set(int fd, int64_t at_ns) {
  struct itimerspec t;
  memset(&t, 0, sizeof t);
  t.it_value.tv_sec = (time_t)(at_ns / 1000000000);
  t.it_value.tv_nsec = (long)(at_ns % 1000000000);
  timerfd_settime(fd, TFD_TIMER_ABSTIME, &t, NULL);
}
static inline int up_epoll_new(void) { return epoll_create1(EPOLL_CLOEXEC); }
#define UP_READABLE 1
#define UP_WRITABLE 2
/* Watches `fd`, which `was` watched for something else (0: was not, or is no more): the interest is UP_READABLE | UP_WRITABLE. */
static inline int up_epoll_watch(int epoll, int fd, int was, int interest) {
  struct epoll_event event;
  memset(&event, 0, sizeof event);
  event.events = ((interest & UP_READABLE) ? EPOLLIN : 0u) | ((interest & UP_WRITABLE) ? EPOLLOUT : 0u);
  event.data.fd = fd;
  if (epoll_ctl(epoll, interest == 0 ? EPOLL_CTL_DEL : was == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) == 0)
    return 0;
  if (interest == 0 || (errno != ENOENT && errno != EEXIST)) return -1;
  return epoll_ctl(epoll, errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
}

typedef struct up_ready {
  int32_t fd;
  int32_t readable;
  int32_t writable;
  int32_t failed;
} up_ready;
#define UP_READY_MAX 64
static inline int up_epoll_wait(int epoll, up_ready *out, int timeout_ms) {
  struct epoll_event events[UP_READY_MAX];
  int count = epoll_wait(epoll, events, UP_READY_MAX, timeout_ms);
  for (int i = 0; i < count; i++) {
    out[i].fd = events[i].data.fd;
    out[i].readable = (events[i].events & (EPOLLIN | EPOLLHUP)) != 0;
    out[i].writable = (events[i].events & EPOLLOUT) != 0;
    out[i].failed = (events[i].events & EPOLLERR) != 0;
  }
  return count < 0 ? 0 : count;
}
static inline void up_close(int fd) { close(fd); }

/* Fills `p` with random bytes of the kernel; what getrandom() cannot give yet is waited for. */
static inline void up_random(void *p, size_t n) {
  uint8_t *at = (uint8_t *)p;
  while (n > 0) {
    ssize_t got = getrandom(at, n, 0);
    if (got <= 0) {
      if (errno == EINTR) continue;
      return;
    }
    at += got;
    n -= (size_t)got;
  }
}
/* Reads a whole file; -1 when it cannot be read. A file larger than `room` fills it. */
static inline long up_read_file(const char *path, void *target, size_t room) {
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
static inline size_t up_strnlen(const char *s, size_t most) { return strnlen(s, most); }

#endif
