/* options.h - the plug-in's options: mpv's --script-opts that begin with "usher-".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MPV_OPTIONS_H
#define MPV_OPTIONS_H

#include <mpv/client.h>
#include <stdbool.h>

/* The values of the options; an option that is not set is NULL or has its default. README.md explains each option. */
struct options {
  char *license, *ssm, *token, *token_file, *token_header, *headers, *ca_file, *trace_file;
  long timeout_s, slot_wait_s, quit_timeout_s, slate_s;
  bool allow_http, signals;
};

/* Reads the options of the current file, because in mpv each file may have other options. Calls `complain` for each
   mistake. */
void options_read(
    mpv_handle *mpv, struct options *out, void (*complain)(const char *words, void *user_data), void *mine);

void options_free(struct options *options);

#endif
