/* peer.c - see peer.h. SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

struct question {
  struct nlmsghdr header;
  struct inet_diag_req_v2 socket;
};

struct answer {
  struct nlmsghdr header;
  struct inet_diag_msg socket;
  /* Room for attributes that the kernel appends to its answer. This program does not read them. */
  char further[512];
};

/* Asks the kernel for one TCP socket. When send() returns, the answer is ready to be read. @return false if the kernel
   has no such socket, or does not support the question. */
static bool find(const struct question *question, struct answer *answer) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  bool is_found = fd >= 0 && send(fd, question, sizeof *question, 0) == (ssize_t)sizeof *question &&
                  recv(fd, answer, sizeof *answer, MSG_DONTWAIT) >= (ssize_t)offsetof(struct answer, further) &&
                  answer->header.nlmsg_type == SOCK_DIAG_BY_FAMILY;
  if (fd >= 0) close(fd);
  return is_found;
}

bool peer_is_own(const struct sockaddr_in *local, const struct sockaddr_in *remote) {
  struct answer answer;
  struct question question = {
      .header = {.nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
      .socket = {.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U}};
  struct inet_diag_sockid *id = &question.socket.id;
  id->idiag_sport = local->sin_port, id->idiag_src[0] = local->sin_addr.s_addr;
  id->idiag_dport = remote->sin_port, id->idiag_dst[0] = remote->sin_addr.s_addr;
  id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  /* If there is no connected socket, the kernel answers with a socket that listens on this port; its remote port is 0.
     If a process has closed the socket, its inode and its user are 0. */
  return find(&question, &answer) && answer.socket.id.idiag_dport == remote->sin_port &&
         answer.socket.idiag_inode != 0 && answer.socket.idiag_uid == geteuid();
}
