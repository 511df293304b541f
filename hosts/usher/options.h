/* options.h - reads the values of options that several sub-commands have.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_OPTIONS_H
#define USHER_OPTIONS_H

#include "../common/words.h"

#include <stdbool.h>

/* Reads a number from 0 to `most`. @return false if the text is anything else. */
bool option_number(const char *text, long most, long *out);

/* Adds a header line to `*headers`, which has the lines of earlier calls. @return false if the lines exceed 16 kB. */
bool option_header(const char *line, const char **headers);

/* Writes why libusher has refused an option of `usher run` or `usher gateway`. `text` is from libusher. */
void option_refusal(int32_t status, const char *text, char out[WORDS_MAX]);

#endif
