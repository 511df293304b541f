/* options.h - values of command-line options that several sub-commands have.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_OPTIONS_H
#define USHER_OPTIONS_H

#include <stdbool.h>

/* Reads a number from 0 to `most`. @return false: the text is something else. */
bool option_number(const char *text, long most, long *out);

/* Adds a header line to those of earlier calls; `*headers` gets all of them. @return false: they exceed 16 kB. */
bool option_header(const char *line, const char **headers);

#endif
