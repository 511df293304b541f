/* teardown.c - see teardown.h. SPDX-License-Identifier: Apache-2.0 */
#include "teardown.h"

#include "request.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum {
  ACTIVE_MOST = 256, /* the most requests in flight at the same time */
  CONNECTIONS_MOST = 64, /* the most connections; more of them would lose more time in TLS handshakes than they save */
  FIRST_PAUSE_MS = 200, /* the first pause before a retry; each later pause is twice as long */
  LONGEST_PAUSE_MS = 5000,
  LONGEST_RUN_MS = 600000 /* after this time the guardian gives up, for example if this machine stays offline */
};

/* The teardown of one session. */
struct task {
  struct record record;
  struct request request; /* `easy` is NULL before the first attempt, and after the last one */
  bool is_active; /* the request is in flight */
  bool is_over;
  uint32_t attempts; /* attempts that have ended and may have reached the server */
  uint32_t failures; /* failed attempts of all kinds */
  int64_t due_ms;
};

struct teardown {
  CURLM *multi;
  struct record settings;
  struct task *tasks;
  size_t count, left;
  size_t active;
  int64_t end_ms;
};

/* The same clock as `expires_boot_ms`. */
static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void finish(struct teardown *all, struct task *task) {
  request_free(&task->request);
  record_free(&task->record);
  task->is_over = true;
  all->left--;
}

/* Plans the next attempt. If all retries of the task are used, or the next attempt would be too late, ends the task. */
static void retry(struct teardown *all, struct task *task, enum request_result result, int64_t asked_ms) {
  const int64_t now = now_ms();
  if (result != REQUEST_NOT_SENT) task->attempts++;
  if (task->attempts > task->record.fixed.retries) {
    finish(all, task);
    return;
  }
  int64_t pause = FIRST_PAUSE_MS << (task->failures < 5 ? task->failures : 5);
  if (pause > LONGEST_PAUSE_MS) pause = LONGEST_PAUSE_MS;
  if (pause < asked_ms) pause = asked_ms;
  task->failures++;
  task->due_ms = now + pause;
  if (task->due_ms >= task->record.fixed.expires_boot_ms || task->due_ms >= all->end_ms) finish(all, task);
}

static void start(struct teardown *all, struct task *task) {
  if (task->request.easy == NULL && !request_make(&task->request, &task->record, &all->settings)) {
    finish(all, task);
    return;
  }
  request_prepare(&task->request, task);
  if (curl_multi_add_handle(all->multi, task->request.easy) != CURLM_OK) {
    finish(all, task);
    return;
  }
  task->is_active = true;
  all->active++;
}

static void start_due(struct teardown *all) {
  const int64_t now = now_ms();
  for (size_t i = 0; i < all->count && all->active < ACTIVE_MOST; i++) {
    struct task *task = &all->tasks[i];
    if (!task->is_over && !task->is_active && task->due_ms <= now) start(all, task);
  }
}

/* @return the milliseconds until the next task can start; at most a minute. */
static int until_next(const struct teardown *all) {
  int64_t next = 60000;
  const int64_t now = now_ms();
  if (all->active >= ACTIVE_MOST) return (int)next; /* one of the active requests must end first */
  for (size_t i = 0; i < all->count; i++) {
    const struct task *task = &all->tasks[i];
    if (task->is_over || task->is_active) continue;
    if (task->due_ms - now < next) next = task->due_ms - now;
  }
  return next < 0 ? 0 : (int)next;
}

static void collect(struct teardown *all) {
  CURLMsg *message;
  int left;
  while ((message = curl_multi_info_read(all->multi, &left)) != NULL) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL *easy = message->easy_handle;
    const CURLcode code = message->data.result;
    struct task *task = request_owner(easy);
    int64_t asked_ms = 0;
    enum request_result result = request_result(&task->request, code, &asked_ms);
    curl_multi_remove_handle(all->multi, easy);
    task->is_active = false;
    all->active--;
    if (result == REQUEST_ANSWERED) finish(all, task);
    else retry(all, task, result, asked_ms);
  }
}

static bool read_tasks(struct teardown *all, const struct records *records) {
  const int64_t now = now_ms();
  struct record record;
  size_t room = 0;
  for (uint32_t slot = 0; slot < records->header.slot_count; slot++) {
    if (!records_read(records, slot, &record)) continue;
    if (record.fixed.expires_boot_ms <= now) {
      record_free(&record);
      continue;
    }
    if (all->count == room) {
      room = room * 2 + 16;
      struct task *more = realloc(all->tasks, room * sizeof *more);
      if (more == NULL) {
        record_free(&record);
        break;
      }
      all->tasks = more;
    }
    all->tasks[all->count++] = (struct task){.record = record, .due_ms = now};
  }
  all->left = all->count;
  return all->count > 0;
}

static void limit_connections(CURLM *multi) {
  struct rlimit limit;
  long most = CONNECTIONS_MOST;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur / 2 < (rlim_t)most)
    most = limit.rlim_cur < 16 ? 4 : (long)(limit.rlim_cur / 2);
  curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, most);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, most);
}

void teardown_all(const struct records *records) {
  struct teardown all = {.end_ms = now_ms() + LONGEST_RUN_MS};
  bool has_settings = records_read(records, -1, &all.settings);
  if (!has_settings || !read_tasks(&all, records) || (all.multi = curl_multi_init()) == NULL) {
    if (has_settings) record_free(&all.settings);
    return;
  }
  limit_connections(all.multi);
  while (all.left > 0) {
    int running;
    start_due(&all);
    curl_multi_perform(all.multi, &running);
    collect(&all);
    if (all.left > 0) curl_multi_poll(all.multi, NULL, 0, until_next(&all), NULL);
  }
  curl_multi_cleanup(all.multi);
  record_free(&all.settings);
  free(all.tasks);
}
