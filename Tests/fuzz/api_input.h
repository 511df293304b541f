/*
 * api_input.h - parts that the threads of api.c share: the input as programs, arguments for the library, handles, and
 * user_data that count their callbacks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_FUZZ_INPUT_H
#define USHER_FUZZ_INPUT_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <usher/usher.h>

#include "api_server.h"
#include "plain.h"

/* Ends the process if the condition is false. */
#define MUST(claim, ...) \
  do { \
    if (!(claim)) fprintf(stderr, "MUST: "), fprintf(stderr, __VA_ARGS__), abort(); \
  } while (0)

static int get(int *counter) { return __atomic_load_n(counter, __ATOMIC_SEQ_CST); }
static void add(int *counter) { __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST); }

/* ---- every function, by name ------------------------------------------------------------------------------------- */

enum {
#define FUNCTION(name, ...) at_##name,
#include "functions.h"
#undef FUNCTION
  FUNCTION_COUNT
};
static const char *const names[] = {
#define FUNCTION(name, ...) #name,
#include "functions.h"
#undef FUNCTION
};
static int calls[FUNCTION_COUNT], went_well[FUNCTION_COUNT];
static int32_t noted(int function, int32_t status) {
  add(&calls[function]);
  MUST(status <= 0 && strcmp(usher_status_message(status), "an unknown status") != 0, "%s answers %d\n",
      names[function], (int)status);
  if (status == USHER_OK) add(&went_well[function]);
  return status;
}
#define CALL(name, arguments) noted(at_##name, name arguments)

/* ---- programs: one for each thread, and one for all callbacks ---------------------------------------------------- */

struct program {
  const uint8_t *bytes;
  size_t size;
  size_t *at; /* shared by all callbacks */
  void *passed[64]; /* freed after the step: the sanitizer reports it if the library reads this memory later */
  unsigned passed_count;
  int is_callback;
};
static int over(struct program *p) { return __atomic_load_n(p->at, __ATOMIC_RELAXED) >= p->size; }
static uint8_t byte(struct program *p) {
  size_t at = __atomic_fetch_add(p->at, 1, __ATOMIC_RELAXED);
  return at < p->size ? p->bytes[at] : 0;
}
static unsigned below(struct program *p, unsigned most) { return byte(p) % most; }
static int seldom(struct program *p) { return byte(p) % 16 == 15; }

static void *pass(struct program *p, const void *bytes, size_t size) {
  void *copy = malloc(size ? size : 1);
  if (!copy || p->passed_count == sizeof p->passed / sizeof *p->passed) abort();
  if (size) memcpy(copy, bytes, size);
  return p->passed[p->passed_count++] = copy;
}
static void step_over(struct program *p) {
  while (p->passed_count) free(p->passed[--p->passed_count]);
}
/* Returns bytes of the input and sets `size`; the memory has exactly these bytes. Sometimes it returns a content id
 * instead; seldom it returns NULL, or sets a `size` that is not the size of the memory. */
static const uint8_t *some_bytes(struct program *p, size_t *size) {
  uint8_t bytes[64];
  size_t index, count = below(p, sizeof bytes);
  for (index = 0; index < count; index++) bytes[index] = byte(p);
  *size = count;
  if (count % 4 == 3) return (const uint8_t *)pass(p, "one", *size = 3); /* the token map has this content id */
  if (seldom(p)) *size = byte(p) & 1 ? (size_t)-1 : 0; /* 0, or a size that the library must refuse */
  return seldom(p) ? NULL : (const uint8_t *)pass(p, bytes, count);
}
static const char *some_text(struct program *p) {
  static const char *const texts[] = {"", "token", "a,b", "x\r\ny: z", "content-1", "skd://content-1", "X-A: b\nX-C: d",
      "{\"a\":1}", "a.b.0", "v1", "127.0.0.1:*"};
  static char enormous[70001];
  uint8_t choice = byte(p);
  char own[32];
  size_t index;
  if (choice >= 250) return NULL;
  if (choice == 249) return (const char *)memset(enormous, 'a', sizeof enormous - 1);
  if (choice < 128) return (const char *)pass(p, texts[choice % 11], strlen(texts[choice % 11]) + 1);
  for (index = 0; index < sizeof own - 1 && (own[index] = (char)byte(p)); index++) continue;
  own[index] = '\0';
  return (const char *)pass(p, own, index + 1);
}
/* Returns NULL, any text, or a URL. The server of the URL replies correctly, replies with the input's bytes, or never
   replies; or no server listens on the port of the URL. */
static const char *some_url(struct program *p, const char *path) {
  static const char *const kinds[] = {"good", "good", "good", "garbage", "drop"};
  char url[128];
  uint8_t choice = byte(p) % 16;
  if (choice == 15) return some_text(p);
  if (choice == 14) return NULL;
  make_url(url, sizeof url, choice == 13 ? 1 : server_port, kinds[choice % 5], path);
  return (const char *)pass(p, url, strlen(url) + 1);
}
static uint32_t some_ms(struct program *p) { return 1 + below(p, 40); }
/* @return a copy of the options, with a right or wrong struct_size. Sets *is_good to 1 if the library must accept the
   copy, otherwise to 0. */
static const void *sized(struct program *p, const void *options, size_t size, int *is_good) {
  static const size_t sizes[] = {0, 4, 8, (size_t)-1, (size_t)1 << 20};
  uint8_t copy[1024], choice = byte(p);
  size_t told = size;
  memset(copy, 0, sizeof copy);
  memcpy(copy, options, size);
  *is_good = 1;
  if (choice == 255) return *is_good = 0, NULL;
  if (choice >= 248)
    told = choice == 254 ? size - 1 : choice == 253 ? size + 8 : sizes[choice % 5], *is_good = told == size + 8;
  if (choice == 247) told = size + 9, copy[size + 8] = 1, *is_good = 0;
  memcpy(copy, &told, sizeof told);
  return pass(p, copy, told < sizeof copy && told > sizeof told ? told : sizeof told);
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

#define SLOTS 4
enum kind { CONTEXTS, DELEGATES, PLAYERS, PLAYBACKS, RESPONSES, LOADERS, KINDS };
static void *volatile handles[KINDS][SLOTS];
static void *look(enum kind kind, unsigned slot) {
  return __atomic_load_n(&handles[kind][slot % SLOTS], __ATOMIC_RELAXED);
}
/* Stores the handle that a function returned. A function that failed must have returned NULL; only a failed request may
   return a response. If the slot already has a response, frees it, because the end of a context frees no responses. */
static void put(struct program *p, enum kind kind, int32_t status, void *handle) {
  MUST(kind == RESPONSES ? handle || status : (handle != NULL) == (status == USHER_OK),
      "a handle %p of kind %d with status %d\n", handle, (int)kind, (int)status);
  if (handle) handle = __atomic_exchange_n(&handles[kind][below(p, SLOTS)], handle, __ATOMIC_RELAXED);
  if (kind == RESPONSES) usher_response_free((usher_response *)handle);
}
static void *pick(struct program *p, enum kind kind) {
  uint8_t choice = byte(p);
  if (choice < 250) return look(kind, choice);
  if (choice == 250) return NULL;
  if (choice == 251) return (void *)(uintptr_t)(byte(p) * 0x0101010101010101u);
  if (choice == 252) return (void *)((uintptr_t)look(kind, 0) + byte(p)); /* near a valid handle */
  return look((enum kind)(choice % KINDS), choice); /* perhaps of another kind */
}

/* ---- user_data that count their callbacks and destroys ----------------------------------------------------------- */

struct watch {
  int function, calls, destroyed, late;
  int is_accepted; /* the library accepted the request, so its completion must run once */
  /* The library has refused the structure, perhaps before it read the field `destroy`. So it need not run `destroy`. */
  int may_be_lost;
  int is_once;
};
#define WATCHES 1024
static struct watch watches[WATCHES];
static int watch_count;
static struct watch *watch(int function, int is_once) {
  int index = __atomic_fetch_add(&watch_count, 1, __ATOMIC_SEQ_CST);
  struct watch *w = &watches[index];
  MUST(index < WATCHES, "an input is too long\n");
  memset(w, 0, sizeof *w);
  w->function = function, w->is_once = is_once;
  return w;
}
static void on_destroy(void *user_data) { add(&((struct watch *)user_data)->destroyed); }
static void called(void *user_data) {
  struct watch *w = (struct watch *)user_data;
  if (get(&w->destroyed)) add(&w->late);
  add(&w->calls);
}
static void answered(struct watch *w, int32_t status) {
  if (status == USHER_OK) add(&w->is_accepted);
}

#endif
