/* words.h - makes the texts about errors for the viewer, and reads the token file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOSTS_WORDS_H
#define HOSTS_WORDS_H

#include <usher/usher.h>

#define WORDS_MAX 700

#define WORDS_OTHER_KEYS "The licence is for other content: it does not have the key of this one."

/* Writes two or three lines: what has happened, what the viewer can do, and the code of the server, if any. */
void words_of_error(const usher_error *error, char out[WORDS_MAX]);

/* Writes the lines of words_of_error(), and one more line, which says that the host waits until another device stops,
 * for at most `seconds` seconds. */
void words_of_wait(const usher_error *error, long seconds, char out[WORDS_MAX]);

/* The name of a host's option, and the name of the field of libusher that gets the option's value. */
struct words_option {
  const char *field, *option;
};

/* Writes why libusher has refused an option, with the name of the host's option. `text` begins with the name of
 * libusher's field and a colon. `options` ends with a field that is NULL. */
void words_of_refusal(
    int32_t status, const char *text, const struct words_option *options, const char *before, char out[WORDS_MAX]);

/* Returns the first line of a file; the caller frees it. If this fails, returns NULL, and errno has the reason. */
char *words_first_line(const char *path);

#endif
