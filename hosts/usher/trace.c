/* trace.c - usher trace: shows traces of libusher, which are files with its log lines of level USHER_LOG_TRACE.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "trace_page.h" /* the bytes of trace.html */

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: usher trace view TRACE... >page.html    a page with a timeline; several traces share one time axis\n"
    "       usher trace chrome TRACE... >trace.json  the trace format of Chrome, which Perfetto and Speedscope open\n"
    "\n"
    "TRACE: a file with a JSON object per line; see docs/traces.md. The option --trace of `usher run` and\n"
    "`usher gateway` writes such a file, and the option usher-trace of the mpv plug-in too. The file may also have\n"
    "lines of a log, and other text before an object in its line.\n"
    "\n"
    "Exit code: 0; 1: a file cannot be read, or has no trace; 2: wrong arguments.\n";

/* One trace: its lines, in the order of the file. */
struct trace {
  const char *name;
  json_object *lines;
  json_object *requests; /* the lines of kind "request"; the key is the number of the request, as text */
  int64_t start_unix_ms; /* the time of day at which the context's clock was 0 */
};

static int64_t number(json_object *line, const char *name) {
  return json_object_get_int64(json_object_object_get(line, name));
}
static const char *text(json_object *line, const char *name) {
  const char *value = json_object_get_string(json_object_object_get(line, name));
  return value ? value : "";
}

/* Adds a line of a file to the trace, if the line has a JSON object of a trace. Before the object, the line may have
   other text, such as the time and the category of GStreamer's log. */
static void add_line(struct trace *trace, const char *line) {
  const char *start = strstr(line, "{\"t_ms\":");
  json_object *object = start ? json_tokener_parse(start) : NULL;
  if (!json_object_is_type(object, json_type_object) || !text(object, "kind")[0]) {
    json_object_put(object);
    return;
  }
  if (strcmp(text(object, "kind"), "context") == 0)
    trace->start_unix_ms = number(object, "unix_ms") - number(object, "t_ms");
  if (strcmp(text(object, "kind"), "request") == 0)
    json_object_object_add(trace->requests, text(object, "request"), json_object_get(object));
  json_object_array_add(trace->lines, object);
}

/* Returns whether the file has a trace. */
static int read_trace(struct trace *trace, const char *path) {
  FILE *file = fopen(path, "r");
  char *line = NULL;
  size_t room = 0;
  *trace = (struct trace){path, json_object_new_array(), json_object_new_object(), 0};
  while (file && getline(&line, &room, file) >= 0) add_line(trace, line);
  int failed = !file || ferror(file);
  if (failed) fprintf(stderr, "usher: %s: %s\n", path, strerror(errno));
  else if (!json_object_array_length(trace->lines)) {
    fprintf(stderr, "usher: %s: has no trace: the context's log level must be USHER_LOG_TRACE\n", path);
    failed = 1;
  }
  free(line);
  if (file) fclose(file);
  return !failed;
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

static void print_page(const struct trace *traces, size_t count) {
  static const char place[] = "/*TRACES*/";
  const char *end = strstr((const char *)trace_page, place);
  json_object *all = json_object_new_array();
  for (size_t i = 0; i < count; i++) {
    json_object *one = json_object_new_object();
    json_object_object_add(one, "name", json_object_new_string(traces[i].name));
    json_object_object_add(one, "start_unix_ms", json_object_new_int64(traces[i].start_unix_ms));
    json_object_object_add(one, "lines", json_object_get(traces[i].lines));
    json_object_array_add(all, one);
  }
  fwrite(trace_page, 1, (size_t)(end - (const char *)trace_page), stdout);
  /* The page has the trace in a script element. "</script>" or "<!--" in a message would break this element, so escape
     "<". */
  for (const char *c = json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN); *c; c++)
    if (*c == '<') fputs("\\u003c", stdout);
    else putchar(*c);
  fputs(end + sizeof place - 1, stdout);
  json_object_put(all);
}

/* ---- the trace format of Chrome ---------------------------------------------------------------------------------- */

/* Adds an event of phase `phase` to `out`: b begins a bar, e ends it, n is an instant, and M gives a name. @return the
   event. */
static json_object *chrome(json_object *out, const char *phase, const char *name, size_t process, json_object *line) {
  json_object *event = json_object_new_object();
  json_object_object_add(event, "ph", json_object_new_string(phase));
  json_object_object_add(event, "name", json_object_new_string(name));
  json_object_object_add(event, "pid", json_object_new_int64((int64_t)process));
  json_object_object_add(event, "tid", json_object_new_int64(number(line, "playback")));
  json_object_object_add(event, "args", json_object_get(line));
  json_object_array_add(out, event);
  return event;
}

static void add_bar(json_object *event, const char *category, const char *kind, int64_t id, int64_t time_ms) {
  char track[64];
  snprintf(track, sizeof track, "%s %" PRId64, kind, id);
  json_object_object_add(event, "cat", json_object_new_string(category));
  json_object_object_add(event, "id2", json_object_new_object());
  json_object_object_add(json_object_object_get(event, "id2"), "local", json_object_new_string(track));
  json_object_object_add(event, "ts", json_object_new_int64(time_ms * 1000));
}

static void add_chrome(json_object *out, const struct trace *trace, size_t process, int64_t shift_ms) {
  json_object *names = json_object_new_object();
  json_object_object_add(names, "name", json_object_new_string(trace->name));
  chrome(out, "M", "process_name", process, names);
  json_object_put(names);
  for (size_t i = 0; i < json_object_array_length(trace->lines); i++) {
    json_object *line = json_object_array_get_idx(trace->lines, i);
    const char *kind = text(line, "kind"), *event = text(line, "event");
    int64_t at = number(line, "t_ms") + shift_ms, playback = number(line, "playback");
    if (strcmp(kind, "request") == 0) {
      add_bar(
          chrome(out, "b", text(line, "operation"), process, line), "request", "request", number(line, "request"), at);
    } else if (strcmp(kind, "reply") == 0) {
      json_object *request = json_object_object_get(trace->requests, text(line, "request"));
      if (!request) continue;
      const char *name = text(request, "operation");
      add_bar(chrome(out, "e", name, process, line), "request", "request", number(line, "request"), at);
    } else if (strcmp(kind, "event") == 0) {
      add_bar(chrome(out, "n", event, process, line), "event", "playback", playback, at);
      if (strcmp(event, "SESSION_STARTED") == 0)
        add_bar(chrome(out, "b", "session", process, line), "session", "playback", playback, at);
      if (strcmp(event, "SESSION_ENDED") == 0)
        add_bar(chrome(out, "e", "session", process, line), "session", "playback", playback, at);
    }
  }
}

static void print_chrome(const struct trace *traces, size_t count, int64_t first_ms) {
  json_object *whole = json_object_new_object(), *events = json_object_new_array();
  for (size_t i = 0; i < count; i++)
    add_chrome(events, &traces[i], i + 1, traces[i].start_unix_ms ? traces[i].start_unix_ms - first_ms : 0);
  json_object_object_add(whole, "traceEvents", events);
  puts(json_object_to_json_string_ext(whole, JSON_C_TO_STRING_PLAIN));
  json_object_put(whole);
}

int trace_command(int argc, char **argv) {
  const char *format = argc > 1 ? argv[1] : "";
  if (strcmp(format, "--help") == 0 || strcmp(format, "-h") == 0) return fputs(help, stdout), 0;
  int is_page = strcmp(format, "view") == 0;
  if ((!is_page && strcmp(format, "chrome") != 0) || argc < 3) return fputs(help, stderr), 2;
  size_t count = (size_t)argc - 2;
  struct trace *traces = calloc(count, sizeof *traces);
  int64_t first_ms = INT64_MAX;
  int ok = traces != NULL;
  for (size_t i = 0; traces && i < count; i++) {
    ok &= read_trace(&traces[i], argv[i + 2]);
    if (traces[i].start_unix_ms && traces[i].start_unix_ms < first_ms) first_ms = traces[i].start_unix_ms;
  }
  if (ok && is_page) print_page(traces, count);
  else if (ok) print_chrome(traces, count, first_ms);
  ok &= fflush(stdout) == 0;
  for (size_t i = 0; traces && i < count; i++) json_object_put(traces[i].requests), json_object_put(traces[i].lines);
  free(traces);
  return !ok;
}
