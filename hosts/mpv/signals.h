/* signals.h - SIGTERM, SIGINT and SIGHUP make mpv run its command `quit`, so that the session is torn down. mpv itself
 * never handles SIGHUP, and handles none of these signals with --no-terminal.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MPV_SIGNALS_H
#define MPV_SIGNALS_H

/* Installs a handler for each of these signals that still has the default action. The handler runs once: a second
   signal of the same kind has the default action. @return a descriptor that is readable after a signal; -1 on
   failure. */
int signals_open(void);

/* Restores the default actions. */
void signals_close(void);

#endif
