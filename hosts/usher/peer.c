/* peer.c - see peer.h. SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Looks a socket up in one of the kernel's tables, which have the user of each socket. */
static bool is_in(const char *path, const char *local, const char *remote) {
  FILE *table = fopen(path, "re");
  char line[300], found_local[60], found_remote[60];
  bool is_own = false;
  while (table && !is_own && fgets(line, sizeof line, table)) {
    unsigned user;
    unsigned long inode;
    bool is_read = sscanf(line, " %*u: %59s %59s %*X %*X:%*X %*X:%*X %*X %u %*u %lu", found_local, found_remote, &user,
                       &inode) == 4;
    /* A socket that its process has closed has the inode 0, and 0 also as its user. */
    is_own = is_read && user == geteuid() && inode != 0 && strcmp(found_local, local) == 0 &&
             strcmp(found_remote, remote) == 0;
  }
  if (table) fclose(table);
  return is_own;
}

bool peer_is_own(const struct sockaddr *peer, uint16_t port) {
  const struct sockaddr_in *address = (const struct sockaddr_in *)(const void *)peer;
  static const char mapped[] = "0000000000000000FFFF0000"; /* an IPv6 socket connects to ::ffff:127.0.0.1 */
  char local[20], remote[20], local6[60], remote6[60];
  if (peer->sa_family != AF_INET) return false;
  snprintf(local, sizeof local, "%08X:%04X", address->sin_addr.s_addr, ntohs(address->sin_port));
  snprintf(remote, sizeof remote, "%08X:%04X", htonl(INADDR_LOOPBACK), port);
  snprintf(local6, sizeof local6, "%s%s", mapped, local);
  snprintf(remote6, sizeof remote6, "%s%s", mapped, remote);
  return is_in("/proc/net/tcp", local, remote) || is_in("/proc/net/tcp6", local6, remote6);
}
