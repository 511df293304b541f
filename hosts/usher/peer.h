/* peer.h - whose process is at the other end of a connection.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_PEER_H
#define USHER_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Whether a connection to 127.0.0.1:`port` comes from a process of this user. `peer` is the address of the other
 * socket. */
bool peer_is_own(const struct sockaddr *peer, uint16_t port);

#endif
