/* Reads what the kernel knows about a TCP connection. */
#ifndef USHER_CPLATFORM_SOCKETS_H
#define USHER_CPLATFORM_SOCKETS_H

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Returns the kernel's unique number of the socket behind `fd`; 0 if `fd` is not a socket. No other socket ever has
 * this number. */
static inline uint64_t platform_socket_cookie(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}
/* Returns how many bytes the kernel has received on a TCP connection since its start; 0 if the kernel does not know.
 * The C library's `tcp_info` is too short for this field, and the kernel's header cannot be included together with
 * it. */
static inline uint64_t platform_socket_received(int fd) {
  enum { tcp = 6, tcp_info = 11, bytes_received = 128 / 8 };
  uint64_t info[bytes_received + 1];
  socklen_t size = sizeof info;
  info[bytes_received] = 0;
  return getsockopt(fd, tcp, tcp_info, info, &size) == 0 ? info[bytes_received] : 0;
}
/* Returns a number for the address that a socket is connected to; 0 if it is not connected. */
static inline uint64_t platform_socket_peer(int fd) {
  struct sockaddr_storage peer;
  socklen_t size = sizeof peer;
  memset(&peer, 0, sizeof peer);
  if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0) return 0;
  uint64_t number = 14695981039346656037u;
  for (size_t i = 0; i < size && i < sizeof peer; i++)
    number = (number ^ ((const unsigned char *)&peer)[i]) * 1099511628211u;
  return number | 1;
}
/* Returns whether there is something to read on a socket: bytes, the end of the data, or an error. */
static inline int platform_socket_is_readable(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}
/* Returns how many received bytes the process has not read. */
static inline uint64_t platform_socket_unread(int fd) {
  int waiting = 0;
  return ioctl(fd, FIONREAD, &waiting) == 0 && waiting > 0 ? (uint64_t)waiting : 0;
}
/* Returns how many received bytes the process has read. Between the two system calls of this function bytes may arrive;
 * then the result is too low (`at_most` is 0) or too high (`at_most` is 1). */
static inline uint64_t platform_socket_read(int fd, int at_most) {
  uint64_t waiting = at_most ? platform_socket_unread(fd) : 0;
  uint64_t received = platform_socket_received(fd);
  if (!at_most) waiting = platform_socket_unread(fd);
  return received > waiting ? received - waiting : 0;
}
/* Ends the TCP connection of `fd` at once, and discards the bytes that the kernel has received on it. From now on
 * reading returns the end of the data. The descriptor stays open. */
static inline void platform_socket_drop(int fd) {
  struct sockaddr none;
  int error = 0;
  socklen_t size = sizeof error;
  memset(&none, 0, sizeof none);
  none.sa_family = AF_UNSPEC;
  connect(fd, &none, sizeof none);
  shutdown(fd, SHUT_RDWR);
  /* Read the socket's error, which clears it, so that reading from the socket does not fail. */
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
}
/* Whether this machine (more exactly: the network namespace of the calling thread) no longer has the local address of a
 * socket. If so, no reply can arrive on the connection. Binding another socket to the address shows this. */
static inline int platform_socket_lacks_address(int fd) {
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  memset(&address, 0, sizeof address);
  if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) return 0;
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return 0;
  ((struct sockaddr_in6 *)&address)->sin6_port = 0; /* In sockaddr_in the port has the same offset. */
  int trial = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (trial < 0) return 0;
  int lacks = bind(trial, (struct sockaddr *)&address, size) != 0 && errno == EADDRNOTAVAIL;
  close(trial);
  return lacks;
}
/* Returns a descriptor of the calling thread's network namespace; negative: /proc does not show it. */
static inline int platform_netns_open(void) { return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC); }
/* Moves the calling thread to the network namespace `fd`. Returns 0 if the thread has moved, -1 if it was in this
 * namespace before, and otherwise the error number of the system. */
static inline int platform_netns_enter(int fd) {
  struct stat wanted, mine;
  int own = platform_netns_open();
  if (own < 0) return errno;
  int is_same =
      fstat(own, &mine) == 0 && fstat(fd, &wanted) == 0 && wanted.st_dev == mine.st_dev && wanted.st_ino == mine.st_ino;
  close(own);
  if (is_same) return -1;
  return syscall(SYS_setns, fd, 0x40000000 /* CLONE_NEWNET */) == 0 ? 0 : errno;
}
/* Calls platform_socket_drop() for `fd`, but only if `fd` is still the socket with this cookie. The caller is on
 * another thread than the owner of the socket, so the owner may have closed the socket, and another socket may have the
 * number `fd` by now. */
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
