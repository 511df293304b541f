/* terminal.h - colours and signs, if the terminal has them. SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAYER_TERMINAL_H
#define PLAYER_TERMINAL_H

#include <stdbool.h>

enum paint { PAINT_OFF, PAINT_BOLD, PAINT_DIM, PAINT_GOOD, PAINT_WARN, PAINT_BAD };

/**
 * Decides whether the output has colours. `colour`: "auto" (colours on a terminal, unless NO_COLOR is set), "always",
 * "never".
 */
void terminal_init(const char *colour);
/** @return the escape sequence of a colour; "" if the output must have no colours. */
const char *paint(enum paint paint);
/** @return `utf8` if the locale is UTF-8, otherwise `plain`. */
const char *sign(const char *utf8, const char *plain);
/** Replaces the line that shows the progress. Does nothing if stdout is not a terminal. */
void progress_show(const char *line);
void progress_clear(void);

#endif
