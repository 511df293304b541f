/* terminal.h - colours and signs, where the terminal has them. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_TERMINAL_H
#define PLAYER_TERMINAL_H

#include <stdbool.h>

enum paint { PAINT_OFF, PAINT_BOLD, PAINT_DIM, PAINT_GOOD, PAINT_WARN, PAINT_BAD };

/** `colour`: "auto" (on a terminal, unless NO_COLOR is set), "always", "never". */
void terminal_init(const char *colour);
/** The escape sequence for a paint; "" where there are no colours. */
const char *paint(enum paint paint);
/** `utf8` where the locale is UTF-8, else `plain`. */
const char *sign(const char *utf8, const char *plain);
/** Rewrites one line while it plays; only on a terminal. */
void progress_show(const char *line);
void progress_clear(void);

#endif
