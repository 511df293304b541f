/*
 * stress.c - for USHER_TEST_SECONDS seconds, eight threads call random functions of the whole API with random handles,
 * some of them stale, and close and free objects at random. The process does not crash or hang, each destroy runs
 * exactly once, no session is left, and each thread calls every function. With the same USHER_TEST_SEED the test makes
 * the same random choices; the threads may still run in another order. stress_steps.h has the steps, and stress.h the
 * parts that they share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "stress_steps.h"

static int ended, busy[THREADS];

/* The work of one thread: runs each step once, in random order, and then random steps until the test stops. */
static void *work(void *index) {
  struct dice d;
  uint32_t order[STEPS], at, other, kept;
  d.thread = (int)(intptr_t)index, d.first = 1;
  d.state = (uint64_t)(d.thread + 1) * 0x9E3779B97F4A7C15u + seed * 0x2545F4914F6CDD1Du;
  for (at = 0; at < STEPS; at++) order[at] = at;
  for (at = STEPS - 1; at > 0; at--)
    other = roll(&d, at + 1), kept = order[at], order[at] = order[other], order[other] = kept;
  for (at = 0; at < STEPS; at++) steps[order[at]].take(&d), more(&busy[d.thread]);
  for (d.first = 0; !known(&stop); more(&busy[d.thread])) take_any_step(&d);
  add(&ended, 1);
  return NULL;
}

static void run_threads(struct dice d) {
  pthread_t threads[THREADS];
  int index, stuck, before[THREADS];
  double since = now_s(), until = since + atof(setting("USHER_TEST_SECONDS"));
  for (index = 0; index < THREADS; index++) pthread_create(&threads[index], NULL, work, (void *)(intptr_t)index);
  for (; now_s() < until; sleep_ms(20)) {
    int was_calm = known(&calm), is_calm = (int)((now_s() - since) * 2) % 10 > 1; /* "storm" for 1 s, "calm" for 4 s */
    __atomic_store_n(&calm, is_calm, __ATOMIC_RELAXED);
    for (index = 0; is_calm && !was_calm && index < CONTEXTS; index++) renew_context(&d, (uint32_t)index);
    /* All threads may be waiting for this clock, so move it. */
    usher_context_advance((usher_context *)look(&contexts[MANUAL]), 20, 0);
  }
  for (index = 0; index < THREADS; index++) before[index] = get(&busy[index]);
  until = now_s() + 13 * patience(); /* every call returns within this time */
  do {
    sleep_ms(20);
    usher_context_advance((usher_context *)look(&contexts[MANUAL]), 20, 0);
    for (stuck = index = 0; index < THREADS; index++) stuck += get(&busy[index]) == before[index];
  } while (stuck > 0 && now_s() < until);
  add(&stop, 1);
  /* A thread may still be waiting for the manual clock of a context, so move the clocks until all threads have ended.
     */
  while (get(&ended) < THREADS) {
    for (index = 0; index < CONTEXTS; index++) usher_context_advance((usher_context *)look(&contexts[index]), 1000, 0);
    sleep_ms(2);
  }
  for (index = 0; index < THREADS; index++) pthread_join(threads[index], NULL);
  tell(stuck == 0, "no thread hung (%d did)", stuck);
}

/*
 * Prints for each function how many threads called it, how many calls they made, and how many calls succeeded. In a run
 * of half a minute every function must succeed at least once, also functions that need a session which is some seconds
 * old.
 */
static void claim_calls(int is_long) {
  int function, index, total = 0;
  for (function = 0; function < FUNCTION_COUNT; function++) {
    int by_threads = 0, times = get(&calls[THREADS][function]), in_callbacks = times;
    for (index = 0; index < THREADS; index++)
      by_threads += get(&calls[index][function]) > 0, times += get(&calls[index][function]);
    tell(by_threads == THREADS && (!is_long || get(&went_well[function]) > 0),
        "%s: %d times by %d threads, %d of them in callbacks; %d succeeded", names[function], times, by_threads,
        in_callbacks, get(&went_well[function]));
    total += times;
  }
  for (index = 1; index < (int)(sizeof seen / sizeof *seen); index++)
    if (get(&seen[index])) printf("%s arrived %d times\n", usher_event_name(index), get(&seen[index]));
  tell(get(&seen[USHER_EVENT_SESSION_STARTED]) > 0, "%d sessions started", get(&seen[USHER_EVENT_SESSION_STARTED]));
  tell(total > 0, "%d calls of %d functions by %d threads", total, FUNCTION_COUNT, THREADS);
}

int main(void) {
  struct dice first;
  const char *text = getenv("USHER_TEST_SEED");
  int index;
  seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
  printf("USHER_TEST_SEED=%llu\n", (unsigned long long)seed);
  first.state = seed + 4711, first.thread = 0, first.first = 0;
  for (index = 0; index < CONTEXTS; index++) make_context(&first, (uint32_t)index);
  run_threads(first);
  for (index = 0; index < CONTEXTS; index++) usher_context_free((usher_context *)look(&contexts[index]));
  for (index = 0; index < SLOTS; index++) usher_response_free((usher_response *)look(&responses[index]));
  claim_calls(atof(setting("USHER_TEST_SECONDS")) >= 30);
  reaches(&destroyed, get(&given), 8000);
  sleep_ms(50);
  for (index = 0; index < (int)(sizeof places / sizeof *places); index++)
    tell(get(&places[index]->given) == get(&places[index]->destroyed), "%s: %d user_data given, %d destroyed",
        places[index]->name, get(&places[index]->given), get(&places[index]->destroyed));
  nothing_held("stress");
  return failed != 0;
}
