/*
 * host.h - parts of the hosts whose memory a test searches for secrets. Such a host reads playbacks from stdin, plays
 * them, frees everything, wipes the lines that it read, prints "over", and waits until the test has searched its
 * memory. Each host defines `play`, which gets the lines of one playback; the last line of the input is "end".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TEST_HOST_H
#define USHER_TEST_HOST_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <usher/usher.h>

static char input[65536];
/* Whether the host sets wipe_freed_memory. */
static int is_wiping;

/* Plays one playback; `at` points to its lines of standard input. If `is_held` is 1, the function returns while the
   session is open, and frees nothing; a host that cannot do this fails. @return 0: success. */
static int play(char *at, int is_held);

static char *line(char **at) {
  char *found = *at, *end = strchr(found, '\n');
  if (!end) return NULL;
  *end = 0;
  *at = end + 1;
  return found;
}

static int check(int32_t status, const char *what) {
  if (status) printf("%s: %s\n", what, usher_status_name(status));
  return status != USHER_OK;
}

int main(int argc, char **argv) {
  const int is_held = argc > 1 && strcmp(argv[1], "held") == 0;
  is_wiping = argc > 1 && strcmp(argv[1], "wiping") == 0;
  size_t size = 0;
  ssize_t count;
  int wrong;
  while (size < sizeof input - 1 && (count = read(0, input + size, sizeof input - 1 - size)) > 0) {
    size += (size_t)count;
    if (strstr(input, "\nend\n")) break;
  }
  wrong = play(input, is_held);
  explicit_bzero(input, sizeof input);
  printf("%s\n", wrong ? "wrong" : "over");
  fflush(stdout);
  count = read(0, input, 1);
  return wrong || count < 0;
}

#endif
