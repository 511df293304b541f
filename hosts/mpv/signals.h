/* signals.h - SIGTERM, SIGINT and SIGHUP end mpv by its command `quit`, so that the session is torn down, also where
 * mpv itself does not handle them (--no-terminal; SIGHUP always).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MPV_SIGNALS_H
#define MPV_SIGNALS_H

/* Handles each of these signals that still has its default action. A second signal of the same kind has the default
 * action again. @return a descriptor that is readable after a signal; -1: none. */
int signals_open(void);

/* Restores the default actions. */
void signals_close(void);

#endif
