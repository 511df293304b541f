/* plugin.c - a plug-in for mpv: encrypted MP4 and DASH play under the stream limit of an operator. README.md says how
 * to use it; common/session.c contains most of its calls of libusher.
 *
 * mpv calls mpv_open_cplugin() on a thread of the plug-in. This thread waits in one poll() for mpv's events, for
 * libusher's callbacks and for signals, and never waits for a server. While mpv's hook `on_load` is open, mpv does not
 * play the item yet, but still executes commands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../common/content.h"
#include "../common/session.h"
#include "../common/trace.h"
#include "../common/words.h"
#include "options.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <mpv/client.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COMPLAINTS_MAX 32

struct plugin {
  mpv_handle *mpv;
  struct session session;
  struct options options; /* the options when mpv loaded the newest item */
  uint64_t hook; /* the id of the open hook on_load; 0: none */
  struct content content; /* the content of the item that the hook loads */
  bool waits; /* the screen shows that the item waits for a slot */
  int64_t entry; /* the item's playlist entry */
  int64_t lost_entry; /* mpv loads this entry again to show why its session was lost; 0: none */
  char words[WORDS_MAX]; /* why the item does not play; "": not known yet */
  char *complaints[COMPLAINTS_MAX]; /* the mistakes in options that were reported */
  int wake[2]; /* a pipe: mpv's callback writes to it when mpv has events */
  int signals;
};

/* ---- words ------------------------------------------------------------------------------------------------------- */

static void say(struct plugin *plugin, const char *format, ...) {
  char line[WORDS_MAX + 100] = "usher: ";
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + 7, sizeof line - 7, format, arguments);
  va_end(arguments);
  if (mpv_command(plugin->mpv, (const char *[]){"print-text", line, NULL}) < 0) fprintf(stderr, "%s\n", line);
}

static void complain(const char *words, void *user_data) { say(user_data, "%s", words); }

/* Prints a mistake in the options, unless the plug-in has printed the same words for an earlier item. */
static void complain_once(const char *words, void *user_data) {
  struct plugin *plugin = user_data;
  int i = 0;
  while (i < COMPLAINTS_MAX && plugin->complaints[i] && strcmp(plugin->complaints[i], words) != 0) i++;
  if (i == COMPLAINTS_MAX || plugin->complaints[i]) return;
  plugin->complaints[i] = strdup(words);
  say(plugin, "%s", words);
}

/* ---- the hook on_load -------------------------------------------------------------------------------------------- */

static void finish_hook(struct plugin *plugin) {
  uint64_t hook = plugin->hook;
  plugin->hook = 0;
  if (plugin->waits) mpv_command(plugin->mpv, (const char *[]){"show-text", "", "1", NULL});
  plugin->waits = false;
  mpv_hook_continue(plugin->mpv, hook);
}

/* Prints `words`, which have several lines, in one line. */
static void print_line(struct plugin *plugin, const char *words, void (*print)(const char *line, void *plugin)) {
  char line[WORDS_MAX];
  snprintf(line, sizeof line, "%s", words);
  for (char *c = line; *c; c++)
    if (*c == '\n') *c = ' ';
  print(line, plugin);
}

/* Ends the hook so that mpv does not play the item: mpv shows `words` on a black picture, or reports that it cannot
   open the item. */
static void refuse(struct plugin *plugin, void (*print)(const char *line, void *plugin)) {
  char url[100] = "null://usher", message[WORDS_MAX + 10];
  print_line(plugin, plugin->words, print);
  if (plugin->options.slate_s > 0) {
    snprintf(url, sizeof url, "av://lavfi:color=c=black:s=1280x720:r=5:d=%ld", plugin->options.slate_s);
    /* "$>" at the beginning of the text tells mpv not to expand ${...} in it. */
    snprintf(message, sizeof message, "$>%s", plugin->words);
    mpv_set_property_string(plugin->mpv, "file-local-options/osd-msg1", message);
    mpv_set_property_string(plugin->mpv, "file-local-options/osd-level", "1");
    mpv_set_property_string(plugin->mpv, "file-local-options/osd-font-size", "36");
    mpv_set_property_string(plugin->mpv, "file-local-options/start", "none");
  }
  mpv_set_property_string(plugin->mpv, "stream-open-filename", url);
  finish_hook(plugin);
}

static void refuse_with(struct plugin *plugin, const char *words) {
  snprintf(plugin->words, WORDS_MAX, "%s", words);
  refuse(plugin, complain);
}

static void refuse_for_option(struct plugin *plugin, const char *words) {
  snprintf(plugin->words, WORDS_MAX, "%s", words);
  refuse(plugin, complain_once);
}

/* Adds an option to the options that mpv passes to libavformat for this file. Keeps the options of the user. @return
   false if mpv refuses the option. */
static bool add_demuxer_option(struct plugin *plugin, const char *name, char *value) {
  mpv_node now = {0}, values[64];
  char *keys[64];
  int count = 0;
  mpv_get_property(plugin->mpv, "options/demuxer-lavf-o", MPV_FORMAT_NODE, &now);
  for (int i = 0; now.format == MPV_FORMAT_NODE_MAP && i < now.u.list->num && count < 63; i++, count++)
    keys[count] = now.u.list->keys[i], values[count] = now.u.list->values[i];
  keys[count] = (char *)name;
  values[count++] = (mpv_node){.format = MPV_FORMAT_STRING, .u.string = value};
  mpv_node_list list = {.num = count, .values = values, .keys = keys};
  mpv_node all = {.format = MPV_FORMAT_NODE_MAP, .u.list = &list};
  int error = mpv_set_property(plugin->mpv, "file-local-options/demuxer-lavf-o", MPV_FORMAT_NODE, &all);
  mpv_free_node_contents(&now);
  return error >= 0;
}

/* Gives the keys of the item to libavformat. @return false if the licence does not have all keys, or if mpv refuses the
   option. */
static bool use_keys(struct plugin *plugin, const usher_clearkey_key *keys, size_t count) {
  char *value = content_option_value(&plugin->content, keys, count);
  bool used = value && add_demuxer_option(plugin, content_option(&plugin->content), value);
  if (value) explicit_bzero(value, strlen(value));
  return free(value), used;
}

/* ---- what libusher reports --------------------------------------------------------------------------------------- */

static void on_licensed(const usher_clearkey_key *keys, size_t count, void *user_data) {
  struct plugin *plugin = user_data;
  if (!plugin->hook) return;
  if (use_keys(plugin, keys, count)) {
    finish_hook(plugin);
    return;
  }
  session_stop(&plugin->session);
  refuse_with(plugin, WORDS_OTHER_KEYS);
}

static void on_waiting(const usher_notice *notice, void *user_data) {
  struct plugin *plugin = user_data;
  char words[WORDS_MAX], duration_ms[30];
  words_of_wait(&notice->error, plugin->options.slot_wait_s, words);
  print_line(plugin, words, complain);
  snprintf(duration_ms, sizeof duration_ms, "%ld", plugin->options.slot_wait_s * 1000);
  mpv_command(plugin->mpv, (const char *[]){"show-text", words, duration_ms, NULL});
  plugin->waits = true;
}

static void on_failed(const usher_notice *notice, void *user_data) {
  struct plugin *plugin = user_data;
  words_of_error(&notice->error, plugin->words);
  session_stop(&plugin->session);
  if (plugin->hook) {
    refuse(plugin, complain);
    return;
  }
  plugin->lost_entry = plugin->entry;
  mpv_command(plugin->mpv, (const char *[]){"playlist-play-index", "current", NULL});
}

static void on_unconfirmed(const char *why, void *user_data) {
  say(user_data, "the server did not confirm the end of a stream; it may count that stream for some time: %s", why);
}

/* ---- loading an item --------------------------------------------------------------------------------------------- */

/* Whether the viewer has chosen another item, or quits, while the hook is open. */
static bool aborted(void *user_data) {
  struct plugin *plugin = user_data;
  int abort = 0;
  struct pollfd signals = {plugin->signals, POLLIN, 0};
  if (poll(&signals, 1, 0) > 0) return true;
  return mpv_get_property(plugin->mpv, "playback-abort", MPV_FORMAT_FLAG, &abort) >= 0 && abort;
}

/* Whether the viewer passes a key to libavformat with mpv's own option. */
static bool has_own_key(struct plugin *plugin) {
  char *options = mpv_get_property_string(plugin->mpv, "options/demuxer-lavf-o");
  bool has = options && strstr(options, "decryption_key");
  return mpv_free(options), has;
}

static void on_refusal(int32_t status, const char *text, void *user_data) {
  static const struct words_option options[] = {{"license_url", "usher-license"}, {"ssm_url", "usher-ssm"},
      {"content_token", "usher-token"}, {"token_header", "usher-token-header"}, {"extra_headers", "usher-headers"},
      {"ca_file", "usher-ca-file"}, {NULL, NULL}};
  struct plugin *plugin = user_data;
  words_of_refusal(
      status, text, options, "This content cannot be played: an option of the plug-in is wrong.\n", plugin->words);
}

static bool open_session(struct plugin *plugin) {
  if (plugin->session.context) return true;
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  options.callbacks = USHER_CALLBACKS_PUMPED;
  options.ca_file = plugin->options.ca_file;
  options.allow_insecure_http = plugin->options.allow_http;
  options.guardian = USHER_GUARDIAN_IF_POSSIBLE; /* if mpv is killed, the guardian frees its slot */
  if (!trace_to_file(&options, plugin->options.trace_file)) {
    snprintf(plugin->words, WORDS_MAX, "usher-trace: %s: %s", plugin->options.trace_file, strerror(errno));
    return false;
  }
  options.refusal = on_refusal;
  options.refusal_user_data = plugin;
  plugin->session.user_data = plugin;
  plugin->session.licensed = on_licensed;
  plugin->session.waiting = on_waiting;
  plugin->session.failed = on_failed;
  plugin->session.unconfirmed = on_unconfirmed;
  int32_t status = session_open(&plugin->session, &options);
  if (status == USHER_OK) return true;
  session_close(&plugin->session, 0);
  if (!plugin->words[0]) snprintf(plugin->words, WORDS_MAX, "%s", usher_status_message(status));
  return false;
}

static void start(struct plugin *plugin) {
  const struct options *options = &plugin->options;
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  ssp.license_url = options->license, ssp.ssm_url = options->ssm;
  ssp.token_header = options->token_header, ssp.extra_headers = options->headers;
  ssp.slot_wait_ms = (uint32_t)options->slot_wait_s * 1000;
  if (!open_session(plugin)) {
    refuse(plugin, complain_once);
    return;
  }
  const char *file = options->token_file;
  char *token = file ? words_first_line(file) : options->token ? strdup(options->token) : NULL;
  if (!token && file) {
    snprintf(plugin->words, WORDS_MAX,
        "This content is encrypted, and there is no token for it.\nusher-token-file: %s: %s", file, strerror(errno));
    refuse(plugin, complain_once);
    return;
  }
  if (!token) {
    refuse_for_option(
        plugin, "This content is encrypted, and there is no token for it.\nSet usher-token-file or usher-token.");
    return;
  }
  int32_t status = session_play(&plugin->session, &ssp, token, plugin->content.key_ids[0], plugin->content.key_id_count,
      (uint32_t)options->timeout_s * 1000);
  explicit_bzero(token, strlen(token)), free(token);
  if (status == USHER_OK) return;
  session_stop(&plugin->session);
  if (!plugin->words[0]) snprintf(plugin->words, WORDS_MAX, "%s", usher_status_message(status));
  refuse(plugin, complain_once);
}

static void on_load(struct plugin *plugin) {
  struct content *content = &plugin->content;
  if (plugin->lost_entry && plugin->lost_entry == plugin->entry) {
    plugin->lost_entry = 0;
    refuse(plugin, complain);
    return;
  }
  plugin->lost_entry = 0, plugin->words[0] = 0;
  options_free(&plugin->options);
  options_read(plugin->mpv, &plugin->options, complain_once, plugin);
  memset(content, 0, sizeof *content);
  char *url = mpv_get_property_string(plugin->mpv, "stream-open-filename");
  char *agent = mpv_get_property_string(plugin->mpv, "user-agent");
  struct content_reading reading = {.user_agent = agent, .cancelled = aborted, .user_data = plugin};
  if (url && !has_own_key(plugin)) content_read(url, &reading, content);
  mpv_free(url), mpv_free(agent);

  bool encrypted = content->kind == CONTENT_MP4 || content->kind == CONTENT_DASH;
  const char *obstacle = encrypted ? content_obstacle(content) : NULL;
  if (encrypted && !plugin->options.license)
    refuse_for_option(plugin, "This content is encrypted, and the plug-in has no licence server.\nSet usher-license.");
  else if (obstacle) refuse_with(plugin, obstacle);
  else if (encrypted) start(plugin);
  else if (content->kind == CONTENT_UNSUPPORTED) refuse_with(plugin, content->why);
  else if (content->kind == CONTENT_UNUSABLE && plugin->options.license) refuse_with(plugin, content->why);
  else finish_hook(plugin);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* Ends the open hook if the viewer has chosen another item, or quits. */
static void check_hook(struct plugin *plugin) {
  if (!plugin->hook || !aborted(plugin)) return;
  session_stop(&plugin->session);
  finish_hook(plugin);
}

static void on_wakeup(void *user_data) {
  const struct plugin *plugin = user_data;
  /* If the pipe is full, it is readable already, and the plug-in wakes. */
  if (write(plugin->wake[1], "", 1) < 0) return;
}

static void empty(int fd) {
  char bytes[64];
  while (read(fd, bytes, sizeof bytes) > 0) {}
}

/* @return false if mpv shuts down. */
static bool on_mpv_event(struct plugin *plugin, const mpv_event *event) {
  switch (event->event_id) {
  case MPV_EVENT_SHUTDOWN: return false;
  case MPV_EVENT_START_FILE: plugin->entry = ((mpv_event_start_file *)event->data)->playlist_entry_id; break;
  case MPV_EVENT_END_FILE: session_stop(&plugin->session); break;
  case MPV_EVENT_HOOK:
    plugin->hook = ((mpv_event_hook *)event->data)->id;
    on_load(plugin);
    break;
  default: break;
  }
  return true;
}

static void run(struct plugin *plugin) {
  for (;;) {
    for (const mpv_event *event; (event = mpv_wait_event(plugin->mpv, 0))->event_id != MPV_EVENT_NONE;)
      if (!on_mpv_event(plugin, event)) return;
    struct pollfd due[] = {{plugin->wake[0], POLLIN, 0}, {plugin->session.fd, POLLIN, 0}, {plugin->signals, POLLIN, 0}};
    poll(due, 3, plugin->hook ? 50 : -1);
    empty(plugin->wake[0]);
    if (due[1].revents) usher_context_pump(plugin->session.context, NULL);
    check_hook(plugin);
    if (due[2].revents) {
      empty(plugin->signals);
      /* mpv itself exits with code 4 after a signal, so use the same code. */
      mpv_command(plugin->mpv, (const char *[]){"quit", "4", NULL});
    }
  }
}

__attribute__((visibility("default"))) int mpv_open_cplugin(mpv_handle *mpv);

int mpv_open_cplugin(mpv_handle *mpv) {
  struct plugin *plugin = calloc(1, sizeof *plugin);
  if (!plugin || pipe(plugin->wake) != 0) return free(plugin), -1;
  for (int i = 0; i < 2; i++) fcntl(plugin->wake[i], F_SETFD, FD_CLOEXEC), fcntl(plugin->wake[i], F_SETFL, O_NONBLOCK);
  plugin->mpv = mpv, plugin->session.fd = -1, plugin->signals = -1;
  options_read(mpv, &plugin->options, complain_once, plugin);
  if (plugin->options.signals) plugin->signals = signals_open();
  mpv_set_wakeup_callback(mpv, on_wakeup, plugin);
  /* With the priority 50, mpv calls this hook after those of the scripts that change the URL. */
  mpv_hook_add(mpv, 0, "on_load", 50);
  run(plugin);
  session_close(&plugin->session, (uint32_t)plugin->options.quit_timeout_s * 1000);
  mpv_set_wakeup_callback(mpv, NULL, NULL);
  signals_close();
  options_free(&plugin->options);
  for (int i = 0; i < COMPLAINTS_MAX; i++) free(plugin->complaints[i]);
  close(plugin->wake[0]), close(plugin->wake[1]);
  free(plugin);
  return 0;
}
