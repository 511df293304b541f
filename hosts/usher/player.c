/* player.c - see player.h. SPDX-License-Identifier: Apache-2.0 */
#include "player.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIP "{clip}"
#define KEYS_FILE "{keys-file}"

enum player_kind player_kind_of(const char *program) {
  const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
  if (strcmp(name, "mpv") == 0) return PLAYER_MPV;
  return strcmp(name, "ffmpeg") == 0 || strcmp(name, "ffplay") == 0 || strcmp(name, "ffprobe") == 0 ? PLAYER_FFMPEG
                                                                                                    : PLAYER_OTHER;
}

static bool has(char *const command[], const char *word) {
  for (; *command; command++)
    if (strstr(*command, word)) return true;
  return false;
}

const char *player_obstacle(enum player_kind kind, char *const command[]) {
  if (kind == PLAYER_FFMPEG && !has(command, CLIP))
    return "write {clip} for the name of the clip: ffmpeg -i {clip} ...";
  if (kind == PLAYER_OTHER && !has(command, CLIP) && !has(command, KEYS_FILE))
    return "this player is not known: write {clip} for the name of the clip, and {keys-file} for a file with its keys";
  return NULL;
}

/* ---- the file with the keys -------------------------------------------------------------------------------------- */

/* Text that grows. If there is no memory, `failed` is true and the text is not complete. */
struct text {
  char *bytes;
  size_t size, room;
  bool failed;
};

static void add(struct text *text, const char *format, ...) {
  for (;;) {
    va_list arguments;
    va_start(arguments, format);
    size_t room = text->room - text->size;
    int needed = vsnprintf(text->bytes ? text->bytes + text->size : NULL, room, format, arguments);
    va_end(arguments);
    if (needed < 0) text->failed = true;
    if (text->failed) return;
    if ((size_t)needed < room) {
      text->size += (size_t)needed;
      return;
    }
    size_t more = 2 * text->room + (size_t)needed + 100;
    /* Do not use realloc(): it may free the old memory without wiping it, and that memory contains keys. */
    char *larger = malloc(more);
    if (!larger) {
      text->failed = true;
      return;
    }
    if (text->bytes) memcpy(larger, text->bytes, text->size), explicit_bzero(text->bytes, text->room);
    free(text->bytes);
    text->bytes = larger, text->room = more, larger[text->size] = 0;
  }
}

/* Adds a string with the quotation marks of libavformat: 'it'\''s'. */
static void add_quoted(struct text *text, const char *string) {
  add(text, "'");
  for (; *string; string++) add(text, *string == '\'' ? "'\\''" : "%c", *string);
  add(text, "'");
}

static void add_keys(struct text *text, const usher_clearkey_key *keys, size_t count) {
  for (size_t i = 0; i < count; i++) {
    for (int j = 0; j < 16; j++) add(text, "%02x", keys[i].key_id[j]);
    add(text, ":");
    for (int j = 0; j < 16; j++) add(text, "%02x", keys[i].key[j]);
    add(text, "\n");
  }
}

static bool is_remote(const char *clip) {
  return strncmp(clip, "http://", 7) == 0 || strncmp(clip, "https://", 8) == 0;
}

/* Writes the concat script for ffmpeg. The script itself is a local file. But if the clip is remote, the script forbids
 * local files: the clip could name them, and ffmpeg would copy them into its output. */
static void add_script(struct text *text, const char *clip, const char *option, const char *value) {
  char *path =
      /* ffmpeg looks for a relative path beside the script, so the script needs the absolute path. */
      strstr(clip, "://") ? NULL : realpath(clip, NULL);
  add(text, "ffconcat version 1.0\nfile ");
  add_quoted(text, path ? path : clip);
  add(text, "\noption %s %s\n", option, value);
  if (is_remote(clip)) add(text, "option protocol_whitelist http,https,httpproxy,tcp,tls,crypto,data\n");
  free(path);
}

/* Makes a file without a name. @return its descriptor, which child processes inherit; -1 on failure, with the reason in
   errno. */
static int keys_file(enum player_kind kind, const char *clip, const struct content *content,
    const usher_clearkey_key *keys, size_t count) {
  struct text text = {0};
  char *value = content_option_value(content, keys, count);
  if (kind == PLAYER_MPV) add(&text, "demuxer-lavf-o-append=%s=%s\n", content_option(content), value ? value : "");
  else if (kind == PLAYER_FFMPEG) add_script(&text, clip, content_option(content), value ? value : "");
  else add_keys(&text, keys, count);
  int fd = value && !text.failed ? memfd_create("keys", 0) : -1;
  if (!value || text.failed) errno = ENOMEM;
  if (fd >= 0 && write(fd, text.bytes, text.size) != (ssize_t)text.size) close(fd), fd = -1;
  if (fd >= 0) lseek(fd, 0, SEEK_SET);
  if (value) explicit_bzero(value, strlen(value));
  if (text.bytes) explicit_bzero(text.bytes, text.room);
  free(value), free(text.bytes);
  return fd;
}

/* ---- the arguments ----------------------------------------------------------------------------------------------- */

struct arguments {
  char *items[4096];
  size_t count;
  bool failed;
};

static void add_argument(struct arguments *arguments, const char *word) {
  char *copy = arguments->count + 1 < sizeof arguments->items / sizeof arguments->items[0] ? strdup(word) : NULL;
  if (copy) arguments->items[arguments->count++] = copy;
  else arguments->failed = true;
}

/* Adds a word; `to` replaces `from` in it. */
static void add_replaced(struct arguments *arguments, const char *word, const char *from, const char *to) {
  struct text text = {0};
  for (const char *found; (found = strstr(word, from)) != NULL; word = found + strlen(from))
    add(&text, "%.*s%s", (int)(found - word), word, to);
  add(&text, "%s", word);
  if (text.failed) arguments->failed = true;
  else add_argument(arguments, text.bytes);
  free(text.bytes);
}

static void add_script_input(struct arguments *arguments, const char *file) {
  static const char *const words[] = {
      "-f", "concat", "-safe", "0", "-protocol_whitelist", "file,http,https,tcp,tls,crypto,data", "-i"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) add_argument(arguments, words[i]);
  add_argument(arguments, file);
}

static void make_arguments(
    struct arguments *out, enum player_kind kind, char *const command[], const char *clip, const char *file) {
  for (size_t i = 0; command[i]; i++) {
    bool is_clip = strcmp(command[i], CLIP) == 0;
    bool before_clip = strcmp(command[i], "-i") == 0 && command[i + 1] && strcmp(command[i + 1], CLIP) == 0;
    if (file && kind == PLAYER_FFMPEG && before_clip) continue; /* add_script_input() adds -i itself */
    if (file && kind == PLAYER_FFMPEG && is_clip) add_script_input(out, file);
    else if (strstr(command[i], KEYS_FILE)) add_replaced(out, command[i], KEYS_FILE, file ? file : "");
    else add_replaced(out, command[i], CLIP, clip);
    if (i == 0 && kind == PLAYER_MPV && file) {
      char include[60];
      snprintf(include, sizeof include, "--include=%s", file);
      add_argument(out, include);
    }
  }
  if (kind == PLAYER_MPV && !has(command, CLIP)) add_argument(out, clip);
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

pid_t player_start(enum player_kind kind, char *const command[], const char *clip, const struct content *content,
    const usher_clearkey_key *keys, size_t count, const sigset_t *mask) {
  struct arguments *arguments = calloc(1, sizeof *arguments);
  char path[40] = "";
  int error = 0, report[2] = {-1, -1}, fd = keys ? keys_file(kind, clip, content, keys, count) : -1;
  pid_t parent = getpid(), pid = -1;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (fd >= 0) setenv("USHER_KEYS_FILE", path, 1);
  if (arguments) make_arguments(arguments, kind, command, clip, fd >= 0 ? path : NULL);
  if (!arguments || arguments->failed) errno = ENOMEM;
  else if ((keys && fd < 0) || pipe2(report, O_CLOEXEC) != 0) pid = -1;
  /* The parent has threads, so the child may call only async-signal-safe functions until exec(). */
  else if ((pid = fork()) == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(arguments->items[0], arguments->items);
    error = errno;
    _exit(write(report[1], &error, sizeof error) == sizeof error ? 127 : 126);
  }
  if (pid < 0) error = errno;
  if (report[1] >= 0) close(report[1]);
  if (pid > 0 && read(report[0], &error, sizeof error) == sizeof error) waitpid(pid, NULL, 0), pid = -1;
  if (report[0] >= 0) close(report[0]);
  if (fd >= 0) close(fd);
  for (size_t i = 0; arguments && i < arguments->count; i++) free(arguments->items[i]);
  free(arguments);
  errno = error;
  return pid;
}
