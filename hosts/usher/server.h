/* server.h - the HTTP server of usher gateway, on 127.0.0.1.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_SERVER_H
#define USHER_SERVER_H

#include "gateway.h"

struct server;

/* Listens on a port; 0 means a free port. @return NULL on failure, with the reason in errno. */
struct server *server_start(struct gateway *gateway, uint16_t port);
uint16_t server_port(const struct server *server);
/* Ends all connections and threads. gateway_is_current() must already be false for all playbacks. @return false if at
   `deadline_ms` a thread still waits in a call that cannot be interrupted, such as a name lookup; then the caller must
   end the process. */
bool server_stop(struct server *server, int64_t deadline_ms);

#endif
