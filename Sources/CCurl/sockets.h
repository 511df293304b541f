/* The descriptors that libcurl opens. A program that the host starts must not inherit them. */
#ifndef USHER_CCURL_SOCKETS_H
#define USHER_CCURL_SOCKETS_H

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

typedef curl_socket_t (*curl_shim_open_callback)(void *, curlsocktype, struct curl_sockaddr *);
static inline CURLcode curl_shim_set_open_callback(CURL *e, curl_shim_open_callback v) {
  return curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, v);
}
/* Opens a socket. Asks the kernel to repeat lost data at equal intervals at first, instead of doubling each interval:
 * requests are small and rare, and a session may end because one request is late. */
static inline curl_socket_t curl_shim_open_socket(const struct curl_sockaddr *address) {
  int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  int yes = 1;
  if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &yes, sizeof yes);
  return fd;
}

/* The address to which a socket connects. */
typedef struct curl_shim_address {
  int family, type, protocol;
  socklen_t size;
  struct sockaddr_storage at;
} curl_shim_address;

static inline curl_shim_address curl_shim_copy_address(const struct curl_sockaddr *address) {
  curl_shim_address copy;
  memset(&copy, 0, sizeof copy);
  if (address->addrlen > sizeof copy.at) return copy;
  copy.family = address->family;
  copy.type = address->socktype;
  copy.protocol = address->protocol;
  copy.size = address->addrlen;
  memcpy(&copy.at, &address->addr, address->addrlen);
  return copy;
}
/* Opens a socket and begins to connect it. The socket becomes writable when the connection attempt has ended. Returns
 * -1 if the system refuses. libcurl 7.88 later calls connect() on the socket, although it may be connected already.
 * That does no harm, because Linux returns 0 to the first such call. */
static inline curl_socket_t curl_shim_connect_socket(curl_shim_address address) {
  struct curl_sockaddr parts;
  memset(&parts, 0, sizeof parts);
  parts.family = address.family;
  parts.socktype = address.type | SOCK_NONBLOCK;
  parts.protocol = address.protocol;
  int fd = curl_shim_open_socket(&parts);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address.at, address.size) == 0 || errno == EINPROGRESS) return fd;
  close(fd);
  return -1;
}
/* Whether a TCP socket is connected. */
static inline int curl_shim_is_connected(int fd) {
  struct sockaddr_storage peer;
  socklen_t size = sizeof peer;
  return getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
}
static inline void curl_shim_close_on_exec(int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); }

/* Whether `fd` is one end of a socket pair or pipe, and the pair or pipe contains `count` bytes that were sent one by
 * one. For `count` 0: whether the pair or pipe is empty. */
static inline int curl_shim_has_inside(int fd, int count) {
  int arrived = 0, sent = 0, domain = 0;
  socklen_t size = sizeof domain;
  if (ioctl(fd, FIONREAD, &arrived) != 0) return 0;
  /* For a local socket, TIOCOUTQ does not count the sent bytes but the memory that they take. So compare `sent` only
     with 0. */
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0)
    if (domain != AF_UNIX || ioctl(fd, TIOCOUTQ, &sent) != 0) return 0;
  return count == 0 ? arrived == 0 && sent == 0 : arrived == count || sent > 0;
}
/* Sets FD_CLOEXEC on the two descriptors that curl_multi_init() made for curl_multi_wakeup(). libcurl 7.88 does not set
 * this flag, and does not report the numbers of the descriptors. So this function finds the two descriptors by their
 * behaviour, which it tests twice: curl_multi_wakeup() puts bytes into them, and curl_multi_poll() empties them. Call
 * this function before you add a handle. */
static inline void curl_shim_close_wake_up_on_exec(CURLM *m) {
  enum { bytes = 29, room = 16, gap_most = 1024 };
  int found[room], count = 0;
  for (int round = 0; round < 2; round++) {
    int left = 0;
    for (int at = 0; at < bytes; at++) curl_multi_wakeup(m);
    for (int fd = 0, gap = 0; round == 0 && count < room && gap < gap_most; fd++) {
      int flags = fcntl(fd, F_GETFD);
      gap = flags < 0 ? gap + 1 : 0;
      if (flags == 0 && curl_shim_has_inside(fd, bytes)) found[count++] = fd;
    }
    for (int at = 0; at < count; at++)
      if (curl_shim_has_inside(found[at], bytes)) found[left++] = found[at];
    curl_multi_poll(m, NULL, 0, 0, NULL);
    count = 0;
    for (int at = 0; at < left; at++)
      if (curl_shim_has_inside(found[at], 0)) found[count++] = found[at];
  }
  for (int at = 0; at < count; at++) curl_shim_close_on_exec(found[at]);
}

#endif
