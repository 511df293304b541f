/* gateway.c - usher gateway: HLS keys and Clear Key licences under a session, for players that take no plug-in.
 *
 * The main thread waits in one poll() for signals, for libusher's callbacks and for requests. Only this thread uses the
 * context of libusher. The server has a thread for each connection; these threads share `struct gateway` under its
 * lock. From libusher they call only usher_read_hls_keys(), which needs no context.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gateway.h"

#include "../common/content.h"
#include "../common/session.h"
#include "commands.h"
#include "gateway_options.h"
#include "player.h"
#include "server.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_REFUSED = 3, EXIT_LOST = 4, EXIT_NO_PLAYER = 127 };
enum {
  SECRET_BYTES = 24,
  SECRET_SIZE = 2 * SECRET_BYTES + 1,
  URL_SIZE = 300,
  /* How many keys the gateway keeps: the newest ones. A long live stream uses more keys, one after the other. */
  KEYS_KEPT = 1024,
  REFUSAL_HOLDS_MS = 2000,
  PLAYER_CHECK_MS = 250 /* how often a thread that waits for a key checks its connection */
};

struct gateway {
  struct gateway_options options; /* constant after the start */
  bool has_page; /* the clip is an encrypted MP4, which the gateway's web page plays */

  /* Only the main thread uses these members. There is one exception: the other threads read `waits_for_slot`. */
  struct session session;
  struct server *server;
  sigset_t mask; /* the signal mask that this process had at its start */
  sigset_t caught; /* the signals that `signals` reads */
  int signals;
  pid_t pid; /* the process id of the player; 0: no player */
  bool ended; /* the main thread has nothing left to do */
  bool sending; /* a licence request is in flight */
  atomic_bool waits_for_slot; /* the limit is reached, and libusher repeats the set-up (--slot-wait) */
  bool lost; /* the session ended before the first licence arrived; `words` has the reason */
  unsigned lost_status; /* the HTTP status for the requests that wait for a key, if `lost` */
  uint64_t sent_ticket; /* the newest ticket for which the licence request in flight requests keys */
  int64_t kill_at_ms; /* the time for SIGKILL, if the player ignores SIGTERM; 0: never */
  char words[WORDS_MAX]; /* why the session or the licence failed */
  int code; /* the exit code */

  /* The lock protects the members below. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int wake; /* an eventfd, which wakes the main thread */
  bool closing;
  uint64_t playback; /* the number of the current playback */
  char secret[SECRET_SIZE]; /* the name of the current playback in paths */
  uint64_t lost_playback; /* the newest playback whose session was lost; 0: none */
  char lost_secret[SECRET_SIZE];
  char lost_words[WORDS_MAX];
  struct entries entries;
  size_t connections; /* the number of connections of the current playback */
  int64_t seen_ms; /* when the current playback last had a connection */
  uint8_t wanted[GATEWAY_KEYS_MAX][16]; /* the key ids for the next licence request */
  size_t wanted_count;
  /* How many threads wait for keys; each of them has a ticket. */
  size_t waiting;
  /* A thread that needs a key takes the next `ticket`, and waits until `done` is at least the number of its ticket. */
  uint64_t ticket, done;
  usher_clearkey_key keys[KEYS_KEPT];
  /* `next_key`: the index in `keys` at which the next new key is stored. */
  size_t key_count, next_key;
  unsigned refusal; /* the HTTP status if the newest licence request failed, else 0 */
  char refusal_words[WORDS_MAX];
  int64_t refused_ms;
  char said[WORDS_MAX];
};

int64_t gateway_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- playbacks (with the lock held) ------------------------------------------------------------------------------ */

static bool make_secret(char out[SECRET_SIZE]) {
  uint8_t bytes[SECRET_BYTES];
  bool is_random = getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes;
  for (size_t i = 0; is_random && i < sizeof bytes; i++) sprintf(out + 2 * i, "%02x", bytes[i]);
  return is_random;
}

/* Ends the current playback, whose path is then no longer valid, and begins the next one. `words`: why the session of
   the current playback was lost, or NULL. @return false if the system has no random numbers; then no path is valid. */
static bool replace_playback(struct gateway *gateway, const char *words) {
  if (words) {
    memcpy(gateway->lost_secret, gateway->secret, SECRET_SIZE), gateway->lost_playback = gateway->playback;
    snprintf(gateway->lost_words, WORDS_MAX, "%s", words);
  }
  explicit_bzero(gateway->keys, sizeof gateway->keys);
  gateway->key_count = gateway->next_key = gateway->wanted_count = gateway->connections = 0;
  gateway->refusal = 0, gateway->done = gateway->ticket, gateway->playback++;
  entries_clear(&gateway->entries);
  if (gateway->options.clip) entries_add(&gateway->entries, &(struct served){.url = (char *)gateway->options.clip});
  pthread_cond_broadcast(&gateway->changed);
  bool made = make_secret(gateway->secret);
  if (!made) gateway->secret[0] = 0;
  return made;
}

static bool is_current(const struct gateway *gateway, uint64_t playback) {
  return !gateway->closing && playback == gateway->playback;
}

/* ---- for the server's threads ------------------------------------------------------------------------------------ */

/* @return whether `guess` equals the secret. The time that the comparison takes does not depend on the content of
   `guess`. */
static bool is_secret(const char secret[SECRET_SIZE], const char *guess) {
  volatile unsigned char differs = 0;
  if (!secret[0] || strlen(guess) != SECRET_SIZE - 1) return false;
  for (size_t i = 0; i < SECRET_SIZE; i++) differs |= (unsigned char)(secret[i] ^ guess[i]);
  return !differs;
}

unsigned gateway_find(struct gateway *gateway, const char *secret, uint64_t *playback, char words[WORDS_MAX]) {
  unsigned status = 404;
  pthread_mutex_lock(&gateway->lock);
  snprintf(words, WORDS_MAX, "There is no playback at this address, or it has ended.");
  if (!gateway->closing && is_secret(gateway->secret, secret)) status = 200, *playback = gateway->playback;
  else if (!gateway->closing && is_secret(gateway->lost_secret, secret))
    status = 410, memcpy(words, gateway->lost_words, WORDS_MAX);
  pthread_mutex_unlock(&gateway->lock);
  return status;
}

bool gateway_is_current(struct gateway *gateway, uint64_t playback) {
  pthread_mutex_lock(&gateway->lock);
  bool found = is_current(gateway, playback);
  pthread_mutex_unlock(&gateway->lock);
  return found;
}

void gateway_join(struct gateway *gateway, uint64_t playback) {
  pthread_mutex_lock(&gateway->lock);
  if (playback == gateway->playback) gateway->connections++;
  pthread_mutex_unlock(&gateway->lock);
}

void gateway_leave(struct gateway *gateway, uint64_t playback) {
  pthread_mutex_lock(&gateway->lock);
  if (playback == gateway->playback && gateway->connections > 0 && --gateway->connections == 0) {
    gateway->seen_ms = gateway_now_ms();
    eventfd_write(gateway->wake, 1);
  }
  pthread_mutex_unlock(&gateway->lock);
}

static const usher_clearkey_key *find_key(const struct gateway *gateway, const uint8_t key_id[16]) {
  for (size_t i = 0; i < gateway->key_count; i++)
    if (memcmp(gateway->keys[i].key_id, key_id, 16) == 0) return &gateway->keys[i];
  return NULL;
}

static bool has_keys(const struct gateway *gateway, const uint8_t *key_ids, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!find_key(gateway, key_ids + 16 * i)) return false;
  return true;
}

static bool want(struct gateway *gateway, const uint8_t key_id[16]) {
  if (find_key(gateway, key_id)) return true;
  for (size_t i = 0; i < gateway->wanted_count; i++)
    if (memcmp(gateway->wanted[i], key_id, 16) == 0) return true;
  if (gateway->wanted_count == GATEWAY_KEYS_MAX) return false;
  memcpy(gateway->wanted[gateway->wanted_count++], key_id, 16);
  return true;
}

/* Whether the player has closed its connection. If the player has only ended its own sending, it may still read the
   reply; such a connection counts as closed only during a wait for a slot, which may be long. */
static bool is_closed(struct gateway *gateway, int connection) {
  struct pollfd end = {connection, gateway->waits_for_slot ? POLLRDHUP : 0, 0}; /* poll() always reports a reset */
  return poll(&end, 1, 0) > 0;
}

/* Waits for the answer of the main thread. @return false if the answer does not come in time, or if the player closes
   the connection. */
static bool await(struct gateway *gateway, uint64_t playback, int connection) {
  uint64_t ticket = ++gateway->ticket;
  /* The time limit is long enough for two licence requests: an earlier request may still be in flight. */
  int64_t end_ms =
      gateway_now_ms() + gateway->options.common.slot_wait_s * 1000 + 2 * gateway_timeout_ms(gateway) + 2000;
  bool is_gone = false;
  gateway->waiting++;
  eventfd_write(gateway->wake, 1);
  while (gateway->done < ticket && is_current(gateway, playback) && !is_gone && gateway_now_ms() < end_ms) {
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    next.tv_nsec += PLAYER_CHECK_MS * 1000000;
    if (next.tv_nsec >= 1000000000) next.tv_nsec -= 1000000000, next.tv_sec++;
    if (pthread_cond_timedwait(&gateway->changed, &gateway->lock, &next) == ETIMEDOUT)
      is_gone = is_closed(gateway, connection);
  }
  if (--gateway->waiting == 0) eventfd_write(gateway->wake, 1);
  return gateway->done >= ticket || !is_current(gateway, playback);
}

unsigned gateway_keys(struct gateway *gateway, uint64_t playback, int connection, const uint8_t *key_ids, size_t count,
    usher_clearkey_key *keys, char words[WORDS_MAX]) {
  unsigned status = 200;
  pthread_mutex_lock(&gateway->lock);
  bool room = true, in_time = true;
  /* Many players repeat a refused request at once. So for some time the gateway refuses the key again, and does not ask
     the session manager. */
  bool refused = gateway->refusal && gateway_now_ms() - gateway->refused_ms < REFUSAL_HOLDS_MS;
  if (is_current(gateway, playback) && !refused && !has_keys(gateway, key_ids, count)) {
    for (size_t i = 0; i < count; i++) room = want(gateway, key_ids + 16 * i) && room;
    if (room) in_time = await(gateway, playback, connection);
  }
  if (!is_current(gateway, playback)) {
    bool lost = !gateway->closing && playback == gateway->lost_playback;
    status = lost ? 410 : 404;
    snprintf(words, WORDS_MAX, "%s", lost ? gateway->lost_words : "The playback has ended.");
  } else if (has_keys(gateway, key_ids, count))
    for (size_t i = 0; i < count; i++) keys[i] = *find_key(gateway, key_ids + 16 * i);
  else if (!room) status = 503, snprintf(words, WORDS_MAX, "The player asks for too many keys at once.");
  else if (!in_time) status = 504, snprintf(words, WORDS_MAX, "The licence server has not replied.");
  else if (gateway->refusal) status = gateway->refusal, memcpy(words, gateway->refusal_words, WORDS_MAX);
  else status = 403, snprintf(words, WORDS_MAX, "%s", WORDS_OTHER_KEYS);
  pthread_mutex_unlock(&gateway->lock);
  return status;
}

bool gateway_entry(struct gateway *gateway, uint64_t playback, size_t number, struct served *out) {
  pthread_mutex_lock(&gateway->lock);
  const struct served *entry = is_current(gateway, playback) ? entries_find(&gateway->entries, number) : NULL;
  bool found = entry != NULL;
  if (found) *out = *entry, out->url = strdup(out->url);
  pthread_mutex_unlock(&gateway->lock);
  return found && out->url;
}

char *gateway_rewrite(struct gateway *gateway, uint64_t playback, size_t number, const char *url, const char *text) {
  pthread_mutex_lock(&gateway->lock);
  const uint8_t *key_id = gateway->options.has_default_key_id ? gateway->options.default_key_id : NULL;
  char *result = NULL;
  if (is_current(gateway, playback)) {
    entries_keep(&gateway->entries, number);
    result = playlist_rewrite(&gateway->entries, url, text, gateway->secret, key_id);
  }
  pthread_mutex_unlock(&gateway->lock);
  return result;
}

bool gateway_allows_origin(struct gateway *gateway, const char *origin) {
  for (size_t i = 0; i < gateway->options.origin_count; i++)
    if (strcmp(gateway->options.origins[i], origin) == 0) return true;
  return false;
}

const char *gateway_ca_file(const struct gateway *gateway) { return gateway->options.common.ca_file; }

int64_t gateway_timeout_ms(const struct gateway *gateway) {
  return (gateway->options.common.timeout_s ? gateway->options.common.timeout_s : GATEWAY_TIMEOUT_S) * 1000;
}

const char *gateway_name(const char *url, char out[GATEWAY_NAME_MAX]) {
  static const char scheme[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
  size_t size = strncmp(url, "data:", 5) == 0 ? 5 : strcspn(url, "?#"), before = strspn(url, scheme), begin;
  before = strncmp(url + before, "://", 3) == 0 ? before + 3 : 0;
  size_t root = before ? before + strcspn(url + before, "/?#") : 0;
  begin = before;
  for (size_t i = before; i < root; i++)
    if (url[i] == '@') begin = i + 1;
  snprintf(out, GATEWAY_NAME_MAX, "%.*s%.*s", (int)before, url, (int)(size - begin), url + begin);
  return out;
}

/* Prints words on standard error, unless it has printed the same words directly before. Replaces each control character
   except a line end by '?': texts of servers may contain control characters, which a terminal would execute. */
static void say(struct gateway *gateway, const char *words) {
  char safe[WORDS_MAX];
  size_t size = 0;
  for (; words[size] && size + 1 < WORDS_MAX; size++) {
    unsigned char byte = (unsigned char)words[size];
    bool is_c1 = size > 0 && byte >= 0x80 && byte < 0xa0 && (unsigned char)words[size - 1] == 0xc2; /* in UTF-8 */
    safe[size] = (byte < ' ' && byte != '\n') || byte == 0x7f || is_c1 ? '?' : words[size];
  }
  safe[size] = 0;
  if (strcmp(gateway->said, safe) == 0) return;
  memcpy(gateway->said, safe, size + 1);
  fprintf(stderr, "usher: %s\n", safe);
}

void gateway_say(struct gateway *gateway, const char *words) {
  pthread_mutex_lock(&gateway->lock);
  say(gateway, words);
  pthread_mutex_unlock(&gateway->lock);
}

/* ---- the main thread --------------------------------------------------------------------------------------------- */

static void finish(struct gateway *gateway, int code) {
  gateway->ended = true, gateway->code = code;
  session_stop(&gateway->session);
  pthread_mutex_lock(&gateway->lock);
  gateway->closing = true;
  explicit_bzero(gateway->keys, sizeof gateway->keys), gateway->key_count = 0;
  pthread_cond_broadcast(&gateway->changed);
  pthread_mutex_unlock(&gateway->lock);
}

/* Writes the URL for the player. */
static void make_url(const struct gateway *gateway, char out[URL_SIZE]) {
  /* The printed URL must not contain the query, because `ps` shows the URL. */
  char clip[GATEWAY_NAME_MAX], *slash;
  const char *name = gateway->options.clip ? gateway_name(gateway->options.clip, clip) : NULL;
  if (name && (slash = strrchr(clip, '/'))) name = slash + 1;
  if (gateway->has_page) name = NULL;
  int size = snprintf(out, URL_SIZE, "http://127.0.0.1:%u/%s/%s", server_port(gateway->server), gateway->secret,
      name                ? "0/"
      : gateway->has_page ? GATEWAY_PAGE
                          : "license");
  for (; name && size + 1 < URL_SIZE && (isalnum((unsigned char)*name) || strchr("-._~", *name)) && *name; name++)
    /* The name may be cut, because only the viewer reads it. */
    out[size++] = *name;
  out[size] = 0;
}

static void print_url(const struct gateway *gateway) {
  char url[URL_SIZE];
  make_url(gateway, url);
  puts(url), fflush(stdout);
}

/* Ends the playback, and begins the next one. `words`: why the session was lost; NULL: the player has gone. */
static void end_playback(struct gateway *gateway, const char *words) {
  session_stop(&gateway->session);
  gateway->sending = false;
  gateway->waits_for_slot = false;
  gateway->words[0] = 0;
  pthread_mutex_lock(&gateway->lock);
  bool made = replace_playback(gateway, words);
  say(gateway, words ? words : "the player is gone; the session has ended");
  gateway->said[0] = 0;
  pthread_mutex_unlock(&gateway->lock);
  if (gateway->pid && words) kill(gateway->pid, SIGTERM), gateway->kill_at_ms = gateway_now_ms() + 5000;
  else if (gateway->options.once || !made) finish(gateway, words ? EXIT_LOST : made ? 0 : EXIT_REFUSED);
  else if (!gateway->pid) print_url(gateway);
}

/* Answers the threads that wait for the newest licence request. `status`: the HTTP status of the refusal; 0: new keys
   have come, or no thread waits any more. */
static void answer(struct gateway *gateway, unsigned status, const char *words) {
  pthread_mutex_lock(&gateway->lock);
  gateway->done = gateway->sent_ticket, gateway->refusal = status, gateway->refused_ms = gateway_now_ms();
  if (status) snprintf(gateway->refusal_words, WORDS_MAX, "%s", words), say(gateway, words);
  else gateway->said[0] = 0;
  bool has_none = gateway->key_count == 0;
  pthread_cond_broadcast(&gateway->changed);
  pthread_mutex_unlock(&gateway->lock);
  gateway->sending = false;
  gateway->waits_for_slot = false;
  /* If the playback has no key, stop its session to free the slot. The next request for a key sets up a new session. */
  if (has_none) session_stop(&gateway->session);
}

static unsigned status_of(const usher_error *error) {
  return error->http_status == 403 || error->status == USHER_E_LIMIT ? 403 : 502;
}

static void on_licensed(const usher_clearkey_key *keys, size_t count, void *user_data) {
  struct gateway *gateway = user_data;
  if (gateway->ended || !gateway->sending) return;
  if (gateway->lost) {
    answer(gateway, gateway->lost_status, gateway->words);
    return;
  }
  size_t added = 0;
  pthread_mutex_lock(&gateway->lock);
  for (size_t i = 0; i < count; i++)
    if (!find_key(gateway, keys[i].key_id)) {
      gateway->keys[gateway->next_key] = keys[i], added++;
      gateway->next_key = (gateway->next_key + 1) % KEYS_KEPT;
      if (gateway->key_count < KEYS_KEPT) gateway->key_count++;
    }
  pthread_mutex_unlock(&gateway->lock);
  if (added > 0) answer(gateway, 0, "");
  else answer(gateway, 403, WORDS_OTHER_KEYS);
}

static void on_unlicensed(const usher_error *error, void *user_data) {
  struct gateway *gateway = user_data;
  if (gateway->ended || !gateway->sending) return;
  if (!gateway->lost) words_of_error(error, gateway->words);
  answer(gateway, gateway->lost ? gateway->lost_status : status_of(error), gateway->words);
}

static void on_waiting(const usher_notice *notice, void *user_data) {
  struct gateway *gateway = user_data;
  char words[WORDS_MAX];
  if (gateway->ended || !gateway->sending) return;
  gateway->waits_for_slot = true;
  words_of_wait(&notice->error, gateway->options.common.slot_wait_s, words);
  gateway_say(gateway, words);
}

/* Stops waiting for a slot if no player waits for a key any more. */
static void give_up(struct gateway *gateway) {
  pthread_mutex_lock(&gateway->lock);
  bool is_useless = gateway->waits_for_slot && gateway->waiting == 0;
  if (is_useless) say(gateway, "the player is gone; the gateway no longer waits for a slot");
  pthread_mutex_unlock(&gateway->lock);
  if (is_useless) answer(gateway, 0, "");
}

static void on_failed(const usher_notice *notice, void *user_data) {
  struct gateway *gateway = user_data;
  char words[WORDS_MAX];
  if (gateway->ended || gateway->lost) return;
  words_of_error(&notice->error, words);
  gateway->lost = gateway->key_count == 0;
  if (!gateway->lost) {
    end_playback(gateway, words);
    return;
  }
  /* libusher calls on_unlicensed() next, which answers the waiting threads with these words. */
  memcpy(gateway->words, words, WORDS_MAX);
  gateway->lost_status = status_of(&notice->error);
}

static void on_unconfirmed(const char *why, void *user_data) {
  char words[WORDS_MAX];
  snprintf(
      words, sizeof words, "the server did not confirm the end of the stream; it may count it for some time: %s", why);
  gateway_say(user_data, words);
}

/* Sends a licence request for the keys that threads wait for, unless a licence request is in flight. */
static void send_request(struct gateway *gateway) {
  uint8_t key_ids[GATEWAY_KEYS_MAX * 16];
  if (gateway->sending || gateway->ended) return;
  pthread_mutex_lock(&gateway->lock);
  size_t count = 0;
  /* Leave out the keys that have arrived since a thread asked for them. */
  for (size_t i = 0; i < gateway->wanted_count; i++)
    if (!find_key(gateway, gateway->wanted[i])) memcpy(key_ids + 16 * count++, gateway->wanted[i], 16);
  gateway->wanted_count = 0, gateway->sent_ticket = gateway->ticket;
  if (count > 0) gateway->seen_ms = gateway_now_ms();
  /* If no key is left, the last licence had all keys for which threads wait, so no further request is necessary. */
  if (count == 0) gateway->done = gateway->ticket;
  pthread_cond_broadcast(&gateway->changed);
  pthread_mutex_unlock(&gateway->lock);
  if (count == 0) return;
  gateway->sending = true, gateway->lost = false, gateway->words[0] = 0;
  const struct common_options *options = &gateway->options.common;
  struct session *session = &gateway->session;
  const char *why = session->playback
                        ? common_why(session_request(session, key_ids, count, (uint32_t)options->timeout_s * 1000), "")
                        : common_play(options, session, key_ids, count, gateway->words);
  if (why) answer(gateway, 502, why);
}

/* @return the time in ms until the player counts as gone, unless it connects again; -1 if it is connected, or if there
   is no session. */
static int idle_ms(struct gateway *gateway) {
  pthread_mutex_lock(&gateway->lock);
  int64_t left = gateway->seen_ms + gateway->options.idle_s * 1000 - gateway_now_ms();
  bool counts = gateway->session.playback && !gateway->pid && gateway->connections == 0;
  pthread_mutex_unlock(&gateway->lock);
  return !counts ? -1 : left > 0 ? (int)left : 0;
}

static void on_child(struct gateway *gateway) {
  int status;
  if (!gateway->pid || waitpid(gateway->pid, &status, WNOHANG) != gateway->pid) return;
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  finish(gateway, gateway->lost_playback ? EXIT_LOST : code);
}

static void on_signal(struct gateway *gateway) {
  struct signalfd_siginfo info;
  while (read(gateway->signals, &info, sizeof info) == sizeof info) {
    int number = (int)info.ssi_signo;
    if (number == SIGCHLD) on_child(gateway);
    else if (gateway->ended) continue;
    else if (!gateway->pid) finish(gateway, 0);
    else if (info.ssi_code != SI_KERNEL)
      /* Forward the signal to the player, unless its code is SI_KERNEL: the terminal has then also sent it to the
         player. */
      kill(gateway->pid, number);
  }
}

static void loop(struct gateway *gateway) {
  while (!gateway->ended) {
    struct pollfd due[] = {{gateway->signals, POLLIN, 0}, {gateway->session.fd, POLLIN, 0}, {gateway->wake, POLLIN, 0}};
    eventfd_t count;
    int wait_ms = idle_ms(gateway);
    if (wait_ms == 0) {
      end_playback(gateway, NULL);
      continue;
    }
    int64_t kill_ms = gateway->kill_at_ms ? gateway->kill_at_ms - gateway_now_ms() : -1;
    if (gateway->kill_at_ms && kill_ms <= 0) kill(gateway->pid, SIGKILL), gateway->kill_at_ms = 0, kill_ms = -1;
    poll(due, 3, gateway->kill_at_ms ? (int)kill_ms : wait_ms);
    if (due[0].revents) on_signal(gateway);
    if (due[1].revents) usher_context_pump(gateway->session.context, NULL);
    if (due[2].revents) eventfd_read(gateway->wake, &count);
    give_up(gateway);
    send_request(gateway);
  }
}

static void catch_signals(struct gateway *gateway) {
  static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  sigemptyset(&gateway->caught);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) sigaddset(&gateway->caught, numbers[i]);
  /* If SIGCHLD were ignored, waitpid() would not return the exit code of the player. So set the default action. */
  signal(SIGCHLD, SIG_DFL);
  /* Block SIGPIPE and do not ignore it: the player would inherit an ignored signal. */
  sigaddset(&gateway->caught, SIGPIPE);
  /* Block the signals before libusher and the server start threads: these threads then inherit the signal mask. */
  sigprocmask(SIG_BLOCK, &gateway->caught, &gateway->mask);
  sigdelset(&gateway->caught, SIGPIPE);
  /* Until the player starts, SIGCHLD can only come from a child that this process had before exec(); ignore it. */
  sigdelset(&gateway->caught, SIGCHLD);
  gateway->signals = signalfd(-1, &gateway->caught, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool is_signalled(void *user_data) {
  const struct gateway *gateway = user_data;
  return poll(&(struct pollfd){gateway->signals, POLLIN, 0}, 1, 0) > 0;
}

/* Reads the clip, to find out whether the gateway's web page plays it. @return false if the clip is unreadable or
   unusable; then the reason is printed. */
static bool read_clip(struct gateway *gateway, const char *clip) {
  struct content_reading reading = {
      .cancelled = is_signalled, .user_data = gateway, .verifies = true, .ca_file = gateway->options.common.ca_file};
  struct content content;
  char name[GATEWAY_NAME_MAX];
  content_read(clip, &reading, &content);
  gateway->has_page = content.kind == CONTENT_MP4;
  bool failed =
      content.kind == CONTENT_NOT_OPENED || content.kind == CONTENT_UNREADABLE || content.kind == CONTENT_UNUSABLE;
  if (!failed || is_signalled(gateway)) return true;
  fprintf(stderr, "usher: %s: %s\n", gateway_name(clip, name), content.why);
  return false;
}

/* Starts the server and the session. On failure prints the reason and returns false. */
static bool start(struct gateway *gateway) {
  gateway->session.user_data = gateway;
  gateway->session.licensed = on_licensed, gateway->session.unlicensed = on_unlicensed;
  gateway->session.waiting = on_waiting, gateway->session.failed = on_failed;
  gateway->session.unconfirmed = on_unconfirmed;
  const char *why = common_open(&gateway->options.common, &gateway->session, gateway->words);
  if (why) return fprintf(stderr, "usher: %s\n", why), false;
  if (gateway->options.clip && !read_clip(gateway, gateway->options.clip)) return false;
  if (!replace_playback(gateway, NULL)) why = "the system has no random numbers";
  if (!why && !(gateway->server = server_start(gateway, (uint16_t)gateway->options.port)))
    why = errno == EPROTONOSUPPORT ? "the kernel does not say which user has a connection (CONFIG_INET_DIAG)"
                                   : strerror(errno);
  if (why) fprintf(stderr, "usher: the gateway cannot start: %s\n", why);
  return !why;
}

static void start_player(struct gateway *gateway) {
  char url[URL_SIZE];
  make_url(gateway, url);
  sigaddset(&gateway->caught, SIGCHLD);
  signalfd(gateway->signals, &gateway->caught, SFD_NONBLOCK | SFD_CLOEXEC);
  bool names_clip = player_obstacle(PLAYER_FFMPEG, gateway->options.command) == NULL;
  enum player_kind kind = names_clip ? PLAYER_OTHER : PLAYER_MPV; /* PLAYER_MPV adds the URL as the last argument */
  gateway->pid = player_start(kind, gateway->options.command, url, NULL, NULL, 0, &gateway->mask);
  if (gateway->pid > 0) return;
  fprintf(stderr, "usher: %s: %s\n", gateway->options.command[0], strerror(errno));
  gateway->pid = 0;
  finish(gateway, EXIT_NO_PLAYER);
}

int gateway_command(int argc, char **argv) {
  static struct gateway gateway = {.session = {.fd = -1}};
  int code;
  if (!gateway_options_read(argc, argv, &gateway.options, &code)) return code;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&gateway.lock, NULL);
  pthread_cond_init(&gateway.changed, &monotonic);
  gateway.wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  catch_signals(&gateway);
  if (!start(&gateway)) finish(&gateway, EXIT_REFUSED);
  else if (gateway.options.command && !is_signalled(&gateway)) start_player(&gateway);
  else if (!is_signalled(&gateway)) print_url(&gateway);
  loop(&gateway);
  int64_t deadline_ms = gateway_now_ms() + gateway.options.common.quit_timeout_s * 1000;
  session_close(&gateway.session, (uint32_t)gateway.options.common.quit_timeout_s * 1000);
  if (gateway.server && !server_stop(gateway.server, deadline_ms)) fflush(stdout), _exit(gateway.code);
  entries_clear(&gateway.entries);
  return gateway.code;
}
