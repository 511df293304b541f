/* What the kernel knows about a TCP connection. */
#ifndef USHER_CPLATFORM_SOCKETS_H
#define USHER_CPLATFORM_SOCKETS_H

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Returns the kernel's number of the socket behind `fd`, which no other socket gets; 0 if it is not a socket. */
static inline uint64_t platform_socket_cookie(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}
/* Returns how many bytes the kernel has received on a TCP connection since it was made; 0 if it does not know. The C
 * library's `tcp_info` ends before this field, and the kernel's cannot be included beside it. */
static inline uint64_t platform_socket_received(int fd) {
  enum { tcp = 6, tcp_info = 11, bytes_received = 128 / 8 };
  uint64_t info[bytes_received + 1];
  socklen_t size = sizeof info;
  info[bytes_received] = 0;
  return getsockopt(fd, tcp, tcp_info, info, &size) == 0 ? info[bytes_received] : 0;
}
/* Returns how many of these bytes the process has read. Bytes that arrive meanwhile may be left out. */
static inline uint64_t platform_socket_read(int fd) {
  uint64_t received = platform_socket_received(fd);
  int waiting = 0;
  if (ioctl(fd, FIONREAD, &waiting) != 0 || waiting < 0) return 0;
  return received > (uint64_t)waiting ? received - (uint64_t)waiting : 0;
}
/* Ends the TCP connection of `fd` at once and discards what the kernel has received on it: from now on, reading gives
 * the end of the data. The descriptor stays open. */
static inline void platform_socket_drop(int fd) {
  struct sockaddr none;
  int error = 0;
  socklen_t size = sizeof error;
  memset(&none, 0, sizeof none);
  none.sa_family = AF_UNSPEC;
  connect(fd, &none, sizeof none);
  shutdown(fd, SHUT_RDWR);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size); /* clears it, so that reading does not fail */
}
/* The same from another thread, only if `fd` still is the socket with this cookie: a closed descriptor's number may
 * belong to another socket by now. */
static inline void platform_socket_drop_by_cookie(int fd, uint64_t cookie) {
  int mine = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  int used = mine < 0 ? fd : mine;
  if (platform_socket_cookie(used) == cookie) platform_socket_drop(used);
  if (mine >= 0) close(mine);
}

/* Returns the processor time of a thread of this process, in microseconds. */
static inline int64_t platform_thread_cpu_us(uint64_t thread) {
  clockid_t clock;
  struct timespec t;
  if (pthread_getcpuclockid((pthread_t)thread, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

#endif
