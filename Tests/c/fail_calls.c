/*
 * fail_calls.c - a preloaded library that makes system calls fail when a test asks for this. It counts how often
 * libusher, libcurl and json-c call one function, and makes the n-th call fail, or the n-th call and all later ones.
 * Calls by the program and by other libraries never fail. The test uses the functions in fail_calls.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "fail_calls.h"

static int armed, countdown, forever, hits, seen[FAIL_OWN_MEMORY + 1];
static struct { uintptr_t from, to; } ours[16];
static int our_count;

static int note(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  if (!strstr(info->dlpi_name, "libusher") && !strstr(info->dlpi_name, "libcurl") &&
      !strstr(info->dlpi_name, "libjson-c"))
    return 0;
  for (int index = 0; index < info->dlpi_phnum && our_count < 16; index++) {
    if (info->dlpi_phdr[index].p_type != PT_LOAD || !(info->dlpi_phdr[index].p_flags & PF_X)) continue;
    ours[our_count].from = info->dlpi_addr + info->dlpi_phdr[index].p_vaddr;
    ours[our_count].to = ours[our_count].from + info->dlpi_phdr[index].p_memsz;
    our_count++;
  }
  return 0;
}
void fail_nth(int call, int nth, int all_after) {
  if (!our_count) dl_iterate_phdr(note, NULL);
  __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
  hits = 0;
  countdown = nth;
  memset(seen, 0, sizeof seen);
  forever = all_after;
  __atomic_store_n(&armed, call, __ATOMIC_SEQ_CST);
}
int fail_stop(void) {
  __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
  return __atomic_load_n(&hits, __ATOMIC_SEQ_CST);
}
int fail_seen(int call) { return __atomic_load_n(&seen[call], __ATOMIC_SEQ_CST); }
static int fails(int call, const void *caller) {
  int left, now = __atomic_load_n(&armed, __ATOMIC_SEQ_CST);
  if (now == FAIL_NOTHING) return 0;
  for (int index = 0; index < our_count; index++) {
    if ((uintptr_t)caller < ours[index].from || (uintptr_t)caller >= ours[index].to) continue;
    __atomic_add_fetch(&seen[call], 1, __ATOMIC_SEQ_CST);
    if (now != call) return 0;
    left = __atomic_sub_fetch(&countdown, 1, __ATOMIC_SEQ_CST);
    if (left != 0 && !(left < 0 && forever)) return 0;
    __atomic_add_fetch(&hits, 1, __ATOMIC_SEQ_CST);
    return 1;
  }
  return 0;
}
static int error(int number) {
  errno = number;
  return -1;
}
#define CALLER __builtin_return_address(0)
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  return fails(FAIL_PTHREAD_CREATE, CALLER) ? EAGAIN : REAL(pthread_create)(out, attributes, body, argument);
}
int pthread_key_create(pthread_key_t *key, void (*end)(void *)) {
  return fails(FAIL_PTHREAD_KEY_CREATE, CALLER) ? EAGAIN : REAL(pthread_key_create)(key, end);
}
int eventfd(unsigned int value, int flags) {
  return fails(FAIL_EVENTFD, CALLER) ? error(EMFILE) : REAL(eventfd)(value, flags);
}
int epoll_create1(int flags) { return fails(FAIL_EPOLL_CREATE, CALLER) ? error(EMFILE) : REAL(epoll_create1)(flags); }
int epoll_ctl(int epoll, int what, int fd, struct epoll_event *event) {
  return fails(FAIL_EPOLL_CTL, CALLER) ? error(ENOMEM) : REAL(epoll_ctl)(epoll, what, fd, event);
}
int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
  return fails(FAIL_EPOLL_WAIT, CALLER) ? error(EINTR) : REAL(epoll_wait)(epoll, events, most, timeout);
}
int timerfd_create(int clock, int flags) {
  return fails(FAIL_TIMERFD_CREATE, CALLER) ? error(EMFILE) : REAL(timerfd_create)(clock, flags);
}
int timerfd_settime(int timer, int flags, const struct itimerspec *to, struct itimerspec *was) {
  return fails(FAIL_TIMERFD_SETTIME, CALLER) ? error(ENOMEM) : REAL(timerfd_settime)(timer, flags, to, was);
}
ssize_t getrandom(void *to, size_t size, unsigned int flags) {
  return fails(FAIL_GETRANDOM, CALLER) ? error(ENOSYS) : REAL(getrandom)(to, size, flags);
}
int socket(int domain, int type, int protocol) {
  return fails(FAIL_SOCKET, CALLER) ? error(EMFILE) : REAL(socket)(domain, type, protocol);
}
int socketpair(int domain, int type, int protocol, int both[2]) {
  return fails(FAIL_SOCKETPAIR, CALLER) ? error(EMFILE) : REAL(socketpair)(domain, type, protocol, both);
}
int connect(int fd, const struct sockaddr *address, socklen_t size) {
  return fails(FAIL_CONNECT, CALLER) ? error(ENETUNREACH) : REAL(connect)(fd, address, size);
}
int getsockname(int fd, struct sockaddr *address, socklen_t *size) {
  return fails(FAIL_GETSOCKNAME, CALLER) ? error(ENOBUFS) : REAL(getsockname)(fd, address, size);
}
int setsockopt(int fd, int level, int name, const void *value, socklen_t size) {
  return fails(FAIL_SETSOCKOPT, CALLER) ? error(ENOPROTOOPT) : REAL(setsockopt)(fd, level, name, value, size);
}
int getsockopt(int fd, int level, int name, void *value, socklen_t *size) {
  return fails(FAIL_GETSOCKOPT, CALLER) ? error(ENOBUFS) : REAL(getsockopt)(fd, level, name, value, size);
}
int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  void *argument;
  va_start(arguments, request);
  argument = va_arg(arguments, void *);
  va_end(arguments);
  return fails(FAIL_IOCTL, CALLER) ? error(ENOTTY) : REAL(ioctl)(fd, request, argument);
}
ssize_t read(int fd, void *bytes, size_t size) {
  return fails(FAIL_READ, CALLER) ? error(EINTR) : REAL(read)(fd, bytes, size);
}
ssize_t send(int fd, const void *bytes, size_t size, int flags) {
  return fails(FAIL_SEND, CALLER) ? error(ECONNRESET) : REAL(send)(fd, bytes, size, flags);
}
ssize_t recv(int fd, void *bytes, size_t size, int flags) {
  return fails(FAIL_RECV, CALLER) ? error(ECONNRESET) : REAL(recv)(fd, bytes, size, flags);
}
ssize_t write(int fd, const void *bytes, size_t size) {
  return fails(FAIL_WRITE, CALLER) ? error(EINTR) : REAL(write)(fd, bytes, size);
}
int fcntl(int fd, int command, ...) {
  va_list arguments;
  void *argument;
  va_start(arguments, command);
  argument = va_arg(arguments, void *);
  va_end(arguments);
  return fails(FAIL_FCNTL, CALLER) ? error(EINVAL) : REAL(fcntl)(fd, command, argument);
}
int open(const char *path, int flags, ...) {
  va_list arguments;
  unsigned int mode;
  va_start(arguments, flags);
  mode = va_arg(arguments, unsigned int);
  va_end(arguments);
  return fails(FAIL_OPEN, CALLER) ? error(EMFILE) : REAL(open)(path, flags, mode);
}
extern int curl_global_init(long flags);
int curl_global_init(long flags) {
  return fails(FAIL_CURL_GLOBAL_INIT, CALLER) ? 27 /* CURLE_OUT_OF_MEMORY */ : REAL(curl_global_init)(flags);
}

/* Allocations fail either in libcurl and json-c (FAIL_MEMORY) or in libusher itself (FAIL_OWN_MEMORY). */
extern void *__libc_malloc(size_t size), *__libc_calloc(size_t count, size_t size),
    *__libc_realloc(void *p, size_t size);
static int no_memory(const void *caller) {
  int call = __atomic_load_n(&armed, __ATOMIC_SEQ_CST), is_own;
  Dl_info info;
  if ((call != FAIL_MEMORY && call != FAIL_OWN_MEMORY) || !dladdr(caller, &info) || !info.dli_fname) return 0;
  is_own = strstr(info.dli_fname, "libusher") != NULL;
  if (is_own != (call == FAIL_OWN_MEMORY) || !fails(call, caller)) return 0;
  errno = ENOMEM;
  return 1;
}
void *malloc(size_t size) { return no_memory(CALLER) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return no_memory(CALLER) ? NULL : __libc_calloc(count, size); }
int posix_memalign(void **out, size_t alignment, size_t size) {
  return no_memory(CALLER) ? ENOMEM : REAL(posix_memalign)(out, alignment, size);
}
void *realloc(void *p, size_t size) { return no_memory(CALLER) ? NULL : __libc_realloc(p, size); }
