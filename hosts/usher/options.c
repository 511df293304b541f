/* options.c - see options.h. SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "../common/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool option_number(const char *text, long most, long *out) {
  char *end;
  errno = 0;
  *out = strtol(text, &end, 10);
  return !errno && end != text && !*end && *out >= 0 && *out <= most;
}

/* Adds a header line to `*headers`, which has the lines of earlier calls. @return false if the lines exceed 16 kB. */
static bool add_header(const char *line, const char **headers) {
  static char all[16384];
  if (strlen(all) + strlen(line) + 2 >= sizeof all) return false;
  sprintf(all + strlen(all), "%s%s", *all ? "\n" : "", line);
  *headers = all;
  return true;
}

static const char *seconds(const char *text, long *out, const char *wrong) {
  return option_number(text, 3600, out) ? NULL : wrong;
}

const char *common_take(struct common_options *options, int option, const char *text) {
  switch (option) {
  case COMMON_LICENSE: options->license = text; break;
  case COMMON_SSM: options->ssm = text; break;
  case COMMON_TOKEN_FILE: options->token_file = text; break;
  case COMMON_TOKEN_HEADER: options->token_header = text; break;
  case COMMON_HEADER: return add_header(text, &options->headers) ? NULL : "the headers have at most 16 kB";
  case COMMON_CA_FILE: options->ca_file = text; break;
  case COMMON_ALLOW_HTTP: options->allow_http = true; break;
  case COMMON_TIMEOUT: return seconds(text, &options->timeout_s, "--timeout is a number of seconds, 0 to 3600");
  case COMMON_SLOT_WAIT: return seconds(text, &options->slot_wait_s, "--slot-wait is a number of seconds, 0 to 3600");
  case COMMON_QUIT_TIMEOUT:
    return seconds(text, &options->quit_timeout_s, "--quit-timeout is a number of seconds, 0 to 3600");
  case COMMON_TRACE: options->trace_file = text; break;
  }
  return NULL;
}

const char *common_missing(const struct common_options *options) {
  return !options->license ? "--license is missing" : !options->token_file ? "--token-file is missing" : NULL;
}

const char *common_why(int32_t status, const char *words) {
  return status == USHER_OK ? NULL : *words ? words : usher_status_message(status);
}

/* Writes to `user_data`, which has WORDS_MAX bytes, why libusher has refused an option. */
static void on_refusal(int32_t status, const char *text, void *user_data) {
  static const struct words_option options[] = {{"license_url", "--license"}, {"ssm_url", "--ssm"},
      {"content_token", "--token-file"}, {"token_header", "--token-header"}, {"extra_headers", "--header"},
      {"ca_file", "--ca-file"}, {NULL, NULL}};
  words_of_refusal(status, text, options, "an option is wrong: ", user_data);
}

const char *common_open(const struct common_options *options, struct session *session, char words[WORDS_MAX]) {
  usher_context_options context = USHER_CONTEXT_OPTIONS_INIT;
  context.callbacks = USHER_CALLBACKS_PUMPED;
  context.ca_file = options->ca_file, context.allow_insecure_http = options->allow_http;
  context.guardian = USHER_GUARDIAN_IF_POSSIBLE; /* if this process is killed, the guardian frees its slot */
  context.refusal = on_refusal, context.refusal_user_data = words;
  if (!trace_to_file(&context, options->trace_file)) {
    snprintf(words, WORDS_MAX, "--trace: %s: %s", options->trace_file, strerror(errno));
    return words;
  }
  return common_why(session_open(session, &context), words);
}

const char *common_play(const struct common_options *options, struct session *session, const uint8_t *key_ids,
    size_t count, char words[WORDS_MAX]) {
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  ssp.license_url = options->license, ssp.ssm_url = options->ssm;
  ssp.token_header = options->token_header, ssp.extra_headers = options->headers;
  ssp.slot_wait_ms = (uint32_t)options->slot_wait_s * 1000;
  /* Read the file again for each playback, because tokens expire. */
  char *token = words_first_line(options->token_file);
  if (!token) {
    snprintf(words, WORDS_MAX, "--token-file: %s: %s", options->token_file, strerror(errno));
    return words;
  }
  int32_t status = session_play(session, &ssp, token, key_ids, count, (uint32_t)options->timeout_s * 1000);
  explicit_bzero(token, strlen(token)), free(token);
  return common_why(status, words);
}
