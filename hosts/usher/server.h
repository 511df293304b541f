/* server.h - the HTTP server of usher gateway, on 127.0.0.1.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_SERVER_H
#define USHER_SERVER_H

#include "gateway.h"

struct server;

/* Listens on a port, 0: on a free one. @return NULL: errno says why. */
struct server *server_start(struct gateway *gateway, uint16_t port);
uint16_t server_port(const struct server *server);
/* Ends all connections and threads. Before, gateway_is_current() must be false for all playbacks. @return false: at
 * `deadline_ms` a thread still waited for something that cannot be interrupted, like the name of a host; the caller
 * must end the process. */
bool server_stop(struct server *server, int64_t deadline_ms);

#endif
