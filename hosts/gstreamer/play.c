/*
 * play.c - a small player over playbin, which shows how an application uses the plug-in: it gives its settings to the
 * plug-in in a GstContext, and shows the words of an error message on a black picture. When the player ends, the
 * plug-in tears the session down.
 *
 *   usher-gst-play [--set NAME=VALUE]... [--hash] [--fast] [--playbin NAME] URI
 *
 * --set    a setting of usherdecrypt (gst-inspect-1.0 usherdecrypt lists them); without this option the plug-in reads
 *          the file that the environment variable USHER_GSTREAMER_OPTIONS names
 * --hash   use no screen, but count and hash the decoded pictures and the sound
 * --fast   with --hash: do not wait until a picture is due
 * Commands on standard input: "pause", "play", "seek SECONDS", "stop", "open URI [NAME=VALUE]...", "quit". The end of
 *   the input means "quit".
 * SIGINT, SIGTERM and SIGHUP also mean "quit"; the process then ends itself by the same signal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "picture_hash.h"

#include <glib-unix.h>
#include <gst/gst.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  GMainLoop *loop;
  GstElement *playbin;
  GstElement *slate; /* shows the words of an error on a black picture; NULL: no error, or no screen */
  GstContext *context;
  Hash picture, sound;
  GstState wanted;
  gboolean failed, hash, fast;
} Player;

static int ending_signal; /* the signal that ends the player; 0: none */

static void say(const gchar *format, ...) G_GNUC_PRINTF(1, 2);
static void say(const gchar *format, ...) {
  va_list values;
  va_start(values, format);
  gchar *line = g_strdup_vprintf(format, values);
  va_end(values);
  g_print("%s\n", line);
  g_free(line);
}

/* ---- settings --------------------------------------------------------------------------------------------------- */

static void add_setting(Player *player, const gchar *setting) {
  gchar **pair = g_strsplit(setting, "=", 2);
  if (!player->context) player->context = gst_context_new("usher.session", TRUE);
  player->context = gst_context_make_writable(player->context);
  GstStructure *structure = gst_context_writable_structure(player->context);
  const gchar *value = pair[0] && pair[1] ? pair[1] : "";
  gboolean number = *value && strspn(value, "0123456789") == strlen(value);
  if (number) gst_structure_set(structure, pair[0], G_TYPE_INT, atoi(value), NULL);
  else gst_structure_set(structure, pair[0], G_TYPE_STRING, value, NULL);
  g_strfreev(pair);
}

/* ---- output without a screen ------------------------------------------------------------------------------------ */

static void on_sound(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer user_data) {
  Hash *hash = user_data;
  GstMapInfo map;
  (void)sink, (void)pad;
  if (!gst_buffer_map(buffer, &map, GST_MAP_READ)) return;
  g_checksum_update(hash->checksum, map.data, (gssize)map.size);
  gst_buffer_unmap(buffer, &map);
  hash->count++;
}

static GstElement *hash_sink(const gchar *description, gboolean fast, GCallback on_buffer, Hash *hash) {
  hash->checksum = g_checksum_new(G_CHECKSUM_SHA256);
  GstElement *bin = gst_parse_bin_from_description(description, TRUE, NULL);
  GstElement *sink = bin ? gst_bin_get_by_name(GST_BIN(bin), "hash") : NULL;
  if (!sink) return bin;
  g_object_set(sink, "signal-handoffs", TRUE, "sync", !fast, NULL);
  g_signal_connect(sink, "handoff", on_buffer, hash);
  gst_object_unref(sink);
  return bin;
}

static void say_hash(const gchar *what, Hash *hash) {
  if (hash->count) say("%s %u sha256 %s", what, hash->count, g_checksum_get_string(hash->checksum));
  g_checksum_reset(hash->checksum);
  hash->count = 0;
}

static void say_hashes(Player *player) {
  if (!player->hash) return;
  say_hash("pictures", &player->picture);
  say_hash("sound", &player->sound);
}

/* ---- states ----------------------------------------------------------------------------------------------------- */

static void set_state(Player *player, GstState state) {
  gint64 begin = g_get_monotonic_time();
  player->wanted = state;
  gst_element_set_state(player->playbin, state);
  say("state %s in %" G_GINT64_FORMAT " ms", gst_element_state_get_name(state),
      (g_get_monotonic_time() - begin) / 1000);
}

static gboolean on_message(GstBus *bus, GstMessage *message, gpointer user_data);

/* ---- the words of an error -------------------------------------------------------------------------------------- */

static gboolean on_slate_message(GstBus *bus, GstMessage *message, gpointer user_data) {
  (void)bus, (void)user_data;
  if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_ERROR) return TRUE;
  GError *error = NULL;
  gst_message_parse_error(message, &error, NULL);
  g_printerr("The window cannot show the words: %s\n", error->message);
  g_error_free(error);
  return TRUE;
}

static void hide_words(Player *player) {
  if (!player->slate) return;
  GstBus *bus = gst_element_get_bus(player->slate);
  gst_bus_remove_watch(bus);
  gst_object_unref(bus);
  gst_element_set_state(player->slate, GST_STATE_NULL);
  gst_clear_object(&player->slate);
}

static void show_words(Player *player, const gchar *words) {
  static const gchar description[] =
      "videotestsrc pattern=black ! video/x-raw,width=1280,height=720,framerate=5/1 ! "
      "textoverlay name=words halignment=center valignment=center font-desc=Sans,14 ! videoconvert ! autovideosink";
  GError *error = NULL;
  hide_words(player);
  player->slate = gst_parse_launch_full(description, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  if (!player->slate) {
    g_printerr("The window cannot show the words: %s\n", error->message);
    g_error_free(error);
    return;
  }
  GstElement *overlay = gst_bin_get_by_name(GST_BIN(player->slate), "words");
  GstBus *bus = gst_element_get_bus(player->slate);
  gst_bus_add_watch(bus, on_slate_message, NULL);
  gst_object_unref(bus);
  g_object_set(overlay, "text", words, NULL);
  gst_object_unref(overlay);
  gst_element_set_state(player->slate, GST_STATE_PLAYING);
}

static void open_item(Player *player, gchar **words) {
  GstBus *bus = gst_element_get_bus(player->playbin);
  GstMessage *message;
  hide_words(player);
  /* In the state READY, playbin would play the failed item again, so go to NULL. */
  set_state(player, GST_STATE_NULL);
  for (; (message = gst_bus_pop(bus)); gst_message_unref(message)) on_message(bus, message, player);
  gst_object_unref(bus);
  /* The loop above has read all messages about the last item, so nothing can set `failed` for that item again. */
  player->failed = FALSE;
  say_hashes(player);
  for (gchar **setting = words + 1; *setting; setting++) add_setting(player, *setting);
  if (player->context) gst_element_set_context(player->playbin, player->context);
  g_object_set(player->playbin, "uri", words[0], NULL);
  set_state(player, GST_STATE_PLAYING);
}

static void seek(Player *player, const gchar *seconds) {
  gint64 to = (gint64)(g_ascii_strtod(seconds, NULL) * (gdouble)GST_SECOND);
  gboolean good =
      gst_element_seek_simple(player->playbin, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE, to);
  say("seek %s", good ? "done" : "refused");
}

static gboolean on_line(GIOChannel *channel, GIOCondition condition, gpointer user_data) {
  Player *player = user_data;
  gchar *line = NULL;
  (void)condition;
  if (g_io_channel_read_line(channel, &line, NULL, NULL, NULL) != G_IO_STATUS_NORMAL) line = g_strdup("quit");
  gchar **words = g_strsplit(g_strstrip(line), " ", -1);
  gboolean quit = words[0] && strcmp(words[0], "quit") == 0;
  if (quit) g_main_loop_quit(player->loop);
  else if (!words[0]) say("?");
  else if (strcmp(words[0], "pause") == 0) set_state(player, GST_STATE_PAUSED);
  else if (strcmp(words[0], "play") == 0) set_state(player, GST_STATE_PLAYING);
  else if (strcmp(words[0], "stop") == 0) set_state(player, GST_STATE_READY);
  else if (strcmp(words[0], "seek") == 0 && words[1]) seek(player, words[1]);
  else if (strcmp(words[0], "open") == 0 && words[1]) open_item(player, words + 1);
  else say("? %s", line);
  g_strfreev(words);
  g_free(line);
  return !quit;
}

static gboolean on_signal(Player *player, int number) {
  ending_signal = number;
  g_main_loop_quit(player->loop);
  /* FALSE removes this handler. So a second signal of this kind has its default action and ends the process. */
  return FALSE;
}
static gboolean on_interrupt(gpointer player) { return on_signal(player, SIGINT); }
static gboolean on_terminate(gpointer player) { return on_signal(player, SIGTERM); }
static gboolean on_hang_up(gpointer player) { return on_signal(player, SIGHUP); }

/* ---- messages --------------------------------------------------------------------------------------------------- */

static void on_session(const GstStructure *message) {
  const gchar *event = gst_structure_get_string(message, "event"), *name;
  guint64 item = 0;
  gst_structure_get_uint64(message, "item", &item);
  name = gst_structure_get_string(message, "status-name");
  if (!name) say("session %u %s", (guint)item, event);
  else
    say("session %u %s %s: %s %s", (guint)item, event, name, gst_structure_get_string(message, "summary"),
        gst_structure_get_string(message, "advice"));
}

static void on_error(Player *player, GstMessage *message) {
  GError *error = NULL;
  gchar *debug = NULL;
  gst_message_parse_error(message, &error, &debug);
  if (!player->failed) {
    say("error %s/%d: %s", g_quark_to_string(error->domain), error->code, error->message);
    set_state(player, GST_STATE_NULL); /* also closes the window */
    if (!player->hash) show_words(player, error->message);
  }
  if (debug) g_printerr("%s\n", debug);
  g_error_free(error);
  g_free(debug);
}

static gboolean on_message(GstBus *bus, GstMessage *message, gpointer user_data) {
  Player *player = user_data;
  (void)bus;
  switch (GST_MESSAGE_TYPE(message)) {
  case GST_MESSAGE_EOS:
    say_hashes(player);
    say("end");
    break;
  case GST_MESSAGE_ERROR:
    on_error(player, message);
    player->failed = TRUE;
    break;
  case GST_MESSAGE_STATE_CHANGED:
    if (GST_MESSAGE_SRC(message) == GST_OBJECT(player->playbin)) {
      GstState old, new;
      gst_message_parse_state_changed(message, &old, &new, NULL);
      if (new == GST_STATE_PLAYING) player->failed = FALSE;
      say("is %s", gst_element_state_get_name(new));
    }
    break;
  case GST_MESSAGE_ELEMENT:
    if (gst_message_has_name(message, "usher-session")) on_session(gst_message_get_structure(message));
    break;
  default: break;
  }
  return TRUE;
}

/* Ends the process by the signal that it has caught. */
static void raise_signal(void) {
  if (!ending_signal) return;
  signal(ending_signal, SIG_DFL);
  raise(ending_signal);
}

int main(int argc, char **argv) {
  Player player = {0};
  /* Exit handlers run in reverse order of their registration. So raise_signal() runs after the exit handler of the
   * plug-in. */
  atexit(raise_signal);
  gchar **settings = NULL, **uris = NULL, *playbin = NULL;
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &settings, "A setting of usherdecrypt", "NAME=VALUE"},
      {"hash", 0, 0, G_OPTION_ARG_NONE, &player.hash, "Count and hash pictures and sound", NULL},
      {"fast", 0, 0, G_OPTION_ARG_NONE, &player.fast, "Do not wait for the time of a picture", NULL},
      {"playbin", 0, 0, G_OPTION_ARG_STRING, &playbin, "playbin or playbin3", "NAME"},
      {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY, &uris, NULL, "URI"},
      {0},
  };
  GOptionContext *options = g_option_context_new(NULL);
  g_option_context_add_main_entries(options, entries, NULL);
  g_option_context_add_group(options, gst_init_get_option_group());
  gboolean good = g_option_context_parse(options, &argc, &argv, &error) && uris && !uris[1];
  g_option_context_free(options);
  if (!good) {
    g_printerr("usher-gst-play: %s\n", error ? error->message : "one URI is needed");
    return 2;
  }
  player.loop = g_main_loop_new(NULL, FALSE);
  player.playbin = gst_element_factory_make(playbin ? playbin : "playbin", NULL);
  gst_object_ref_sink(player.playbin);
  /* With this setting, the bus keeps its messages about the last item when the player goes to NULL. */
  g_object_set(player.playbin, "auto-flush-bus", FALSE, NULL);
  if (player.hash) {
    g_object_set(player.playbin, "flags", 3 /* GST_PLAY_FLAG_VIDEO and _AUDIO */, "video-sink",
        hash_sink(PICTURE_HASH_SINK, player.fast, G_CALLBACK(picture_hash_take), &player.picture), "audio-sink",
        hash_sink("audioconvert ! audio/x-raw,format=F32LE ! fakesink name=hash", player.fast, G_CALLBACK(on_sound),
            &player.sound),
        NULL);
  }
  GstBus *bus = gst_element_get_bus(player.playbin);
  guint watch = gst_bus_add_watch(bus, on_message, &player);
  GIOChannel *input = g_io_channel_unix_new(0);
  guint reader = g_io_add_watch(input, G_IO_IN | G_IO_HUP, on_line, &player);
  g_unix_signal_add(SIGINT, on_interrupt, &player);
  g_unix_signal_add(SIGTERM, on_terminate, &player);
  g_unix_signal_add(SIGHUP, on_hang_up, &player);
  for (gchar **setting = settings; setting && *setting; setting++) add_setting(&player, *setting);
  open_item(&player, uris);

  g_main_loop_run(player.loop);
  hide_words(&player);
  set_state(&player, GST_STATE_NULL);

  g_source_remove(watch);
  (void)reader;
  g_io_channel_unref(input);
  gst_bus_set_flushing(bus, TRUE);
  gst_object_unref(bus);
  gst_object_unref(player.playbin);
  if (player.context) gst_context_unref(player.context);
  if (player.picture.checksum) g_checksum_free(player.picture.checksum);
  if (player.sound.checksum) g_checksum_free(player.sound.checksum);
  g_main_loop_unref(player.loop);
  g_strfreev(settings);
  g_strfreev(uris);
  g_free(playbin);
  /* Do not call gst_deinit(): the plug-in still logs when the process ends. */
  return player.failed;
}
