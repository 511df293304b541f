/* options.c - see options.h. SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { TEXT, SECONDS, FLAG };

static const struct {
  const char *name;
  enum kind kind;
  size_t offset;
} known[] = {
    {"license", TEXT, offsetof(struct options, license)},
    {"ssm", TEXT, offsetof(struct options, ssm)},
    {"token", TEXT, offsetof(struct options, token)},
    {"token-file", TEXT, offsetof(struct options, token_file)},
    {"token-header", TEXT, offsetof(struct options, token_header)},
    {"headers", TEXT, offsetof(struct options, headers)},
    {"ca-file", TEXT, offsetof(struct options, ca_file)},
    {"trace", TEXT, offsetof(struct options, trace_file)},
    {"timeout", SECONDS, offsetof(struct options, timeout_s)},
    {"slot-wait", SECONDS, offsetof(struct options, slot_wait_s)},
    {"quit-timeout", SECONDS, offsetof(struct options, quit_timeout_s)},
    {"slate", SECONDS, offsetof(struct options, slate_s)},
    {"allow-http", FLAG, offsetof(struct options, allow_http)},
    {"signals", FLAG, offsetof(struct options, signals)},
};

/* @return whether the value is valid. */
static bool set(struct options *out, size_t index, const char *value) {
  void *field = (char *)out + known[index].offset;
  char *end = NULL;
  switch (known[index].kind) {
  case TEXT: free(*(char **)field), *(char **)field = strdup(value); return *value != 0;
  case FLAG: *(bool *)field = strcmp(value, "yes") == 0; return *(bool *)field || strcmp(value, "no") == 0;
  case SECONDS: break;
  }
  errno = 0;
  long seconds = strtol(value, &end, 10);
  if (errno || end == value || *end || seconds < 0 || seconds > 3600) return false;
  return *(long *)field = seconds, true;
}

void options_read(mpv_handle *mpv, struct options *out, void (*complain)(const char *, void *), void *mine) {
  static const char *const wanted[] = {"a text that is not empty", "a number of seconds from 0 to 3600", "yes or no"};
  mpv_node all = {0};
  char words[300];
  *out = (struct options){.timeout_s = 20, .quit_timeout_s = 2, .slate_s = 8, .signals = true};
  if (mpv_get_property(mpv, "options/script-opts", MPV_FORMAT_NODE, &all) < 0) return;
  for (int i = 0; all.format == MPV_FORMAT_NODE_MAP && i < all.u.list->num; i++) {
    const char *key = all.u.list->keys[i];
    const mpv_node *value = &all.u.list->values[i];
    if (strncmp(key, "usher-", 6) != 0 || value->format != MPV_FORMAT_STRING) continue;
    size_t index = 0, count = sizeof known / sizeof known[0];
    while (index < count && strcmp(known[index].name, key + 6) != 0) index++;
    if (index == count) snprintf(words, sizeof words, "script-opts: there is no option %.60s", key);
    else snprintf(words, sizeof words, "script-opts: %s must be %s", key, wanted[known[index].kind]);
    if (index == count || !set(out, index, value->u.string)) complain(words, mine);
  }
  mpv_free_node_contents(&all);
}

void options_free(struct options *options) {
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (known[i].kind == TEXT) free(*(char **)((char *)options + known[i].offset));
}
