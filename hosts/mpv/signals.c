/* signals.c - see signals.h. SPDX-License-Identifier: Apache-2.0 */
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
static int ends[2] = {-1, -1}; /* a pipe: the signal handler writes, the plug-in reads */

static void on_signal(int number) {
  int error = errno;
  /* If the pipe is full, it is readable already, and the plug-in wakes. */
  if (write(ends[1], "", 1) < 0) (void)number;
  errno = error;
}

int signals_open(void) {
  if (pipe(ends) != 0) return -1;
  for (int i = 0; i < 2; i++) fcntl(ends[i], F_SETFD, FD_CLOEXEC), fcntl(ends[i], F_SETFL, O_NONBLOCK);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    struct sigaction now, ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_RESETHAND};
    if (sigaction(numbers[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
      sigaction(numbers[i], &ours, NULL);
  }
  return ends[0];
}

void signals_close(void) {
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    struct sigaction now, usual = {.sa_handler = SIG_DFL};
    if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == on_signal) sigaction(numbers[i], &usual, NULL);
  }
  for (int i = 0; i < 2; i++)
    if (ends[i] >= 0) close(ends[i]), ends[i] = -1;
}
