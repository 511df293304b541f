/*
 * beats_easy.c - heartbeats of a plain C program. It uses libcurl's easy interface, and sends one heartbeat after the
 * other over one connection that stays open; json-c reads the replies. SPDX-License-Identifier: Apache-2.0
 */
#include "request.h"
#include <stdlib.h>

int main(int argc, char **argv) {
  const bench_options options = bench_read(argc, argv);
  if (options.in_flight > 1) bench_fail("--in-flight", "this program sends one request after another");
  bench_body body = {NULL, 0, 0};
  curl_global_init(CURL_GLOBAL_DEFAULT);
  CURL *easy = request_handle(&options, &body);
  request_headers headers;
  request_use_headers(easy, &headers);
  char **lines = calloc((size_t)options.sessions, sizeof *lines);
  if (!lines) bench_fail("calloc", "no memory");
  for (int i = 0; i < options.sessions; i++) lines[i] = request_setup(easy, &options, &headers, &body);
  request_route(easy, &options, "heartbeat");
  bench_clock spent = {0};
  int64_t due = bench_now().wall_ns;
  for (int round = -options.warm_up; round < options.rounds; round++) {
    const bench_clock start = bench_now();
    for (int i = 0; i < options.sessions; i++) {
      if (options.pace) bench_sleep_until(due += 1000000000 / options.pace);
      request_set_line(&headers, lines[i]);
      request_answered(easy, curl_easy_perform(easy), &body, &lines[i]);
    }
    if (round >= 0) bench_add(&spent, start);
  }
  bench_print(spent, (int64_t)options.rounds * options.sessions);
  for (int i = 0; i < options.sessions; i++) free(lines[i]);
  free(lines);
  free(body.bytes);
  curl_easy_cleanup(easy);
  curl_global_cleanup();
  return 0;
}
