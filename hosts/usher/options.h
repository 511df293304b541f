/* options.h - the options that `usher run` and `usher gateway` share, and the session that they describe.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_OPTIONS_H
#define USHER_OPTIONS_H

#include "../common/session.h"
#include "../common/words.h"

#include <getopt.h>
#include <stdbool.h>

enum { EXIT_USAGE = 2 };

struct common_options {
  const char *license, *ssm, *token_file, *token_header, *headers, *ca_file, *trace_file;
  bool allow_http;
  long timeout_s, slot_wait_s, quit_timeout_s;
};

/* What getopt_long() returns for the shared options. A sub-command numbers its own options from COMMON_END on. */
enum {
  COMMON_LICENSE = 1,
  COMMON_SSM,
  COMMON_TOKEN_FILE,
  COMMON_TOKEN_HEADER,
  COMMON_HEADER,
  COMMON_CA_FILE,
  COMMON_ALLOW_HTTP,
  COMMON_TIMEOUT,
  COMMON_SLOT_WAIT,
  COMMON_QUIT_TIMEOUT,
  COMMON_TRACE,
  COMMON_END
};

/* The entries of the shared options in the table for getopt_long(). */
#define COMMON_OPTIONS \
  {"license", 1, NULL, COMMON_LICENSE}, {"ssm", 1, NULL, COMMON_SSM}, {"token-file", 1, NULL, COMMON_TOKEN_FILE}, \
      {"token-header", 1, NULL, COMMON_TOKEN_HEADER}, {"header", 1, NULL, COMMON_HEADER}, \
      {"ca-file", 1, NULL, COMMON_CA_FILE}, {"allow-http", 0, NULL, COMMON_ALLOW_HTTP}, \
      {"timeout", 1, NULL, COMMON_TIMEOUT}, {"slot-wait", 1, NULL, COMMON_SLOT_WAIT}, \
      {"quit-timeout", 1, NULL, COMMON_QUIT_TIMEOUT}, { \
    "trace", 1, NULL, COMMON_TRACE \
  }

/* Stores the value `text` of the shared option `option`. @return NULL, or what is wrong with the value. */
const char *common_take(struct common_options *options, int option, const char *text);

/* @return NULL, or which option is missing. */
const char *common_missing(const struct common_options *options);

/* Opens the context of `session`; the caller has set the callbacks of `session`. If libusher refuses an option now or
   later, `words` gets the reason; so `words` must live until session_close(). @return NULL, or why this failed. */
const char *common_open(const struct common_options *options, struct session *session, char words[WORDS_MAX]);

/* Reads the token file, sets up the session and requests its first licence. `words`: as for common_open(); it must be
   empty. @return NULL, or why this failed. */
const char *common_play(const struct common_options *options, struct session *session, const uint8_t *key_ids,
    size_t count, char words[WORDS_MAX]);

/* @return why a call failed with `status`: `words`; if `words` is empty, the text of the status. NULL if `status` is
   USHER_OK. */
const char *common_why(int32_t status, const char *words);

/* Reads a number from 0 to `most`. @return false if the text is anything else. */
bool option_number(const char *text, long most, long *out);

#endif
