/* peer.h - finds out which user's process is at the other end of a connection.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_PEER_H
#define USHER_PEER_H

#include <netinet/in.h>
#include <stdbool.h>

/* Whether a process of this user has the TCP socket with the address `local` that is connected to `remote`; a socket
 * that listens has the remote address 0.0.0.0:0. Also finds an IPv6 socket that is connected to an IPv4 address. The
 * kernel looks up this one socket (sock_diag), even if the machine has many. SO_PEERCRED does not exist for TCP. */
bool peer_is_own(const struct sockaddr_in *local, const struct sockaddr_in *remote);

#endif
