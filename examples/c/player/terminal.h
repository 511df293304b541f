/* terminal.h - colours and signs, if the terminal has them. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_TERMINAL_H
#define PLAYER_TERMINAL_H

#include <stdbool.h>

enum paint { PAINT_OFF, PAINT_BOLD, PAINT_DIM, PAINT_GOOD, PAINT_WARN, PAINT_BAD };

/** `colour`: "auto" (on a terminal, unless NO_COLOR is set), "always", "never". */
void terminal_init(const char *colour);
/** The escape sequence of a colour; "" if the terminal shows no colours. */
const char *paint(enum paint paint);
/** `utf8` if the locale is UTF-8, otherwise `plain`. */
const char *sign(const char *utf8, const char *plain);
/** Rewrites one line during playback; only on a terminal. */
void progress_show(const char *line);
void progress_clear(void);

#endif
