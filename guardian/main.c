/* usher-guardian - tears down the sessions of a host that has died.
 *
 * libusher starts this program if the context option `guardian` says so. The program waits until the host has ended,
 * reads the records of the sessions that the host held (Sources/CGuard/record.h), tears these sessions down, and ends.
 * docs/guardian.md describes it. SPDX-License-Identifier: Apache-2.0 */
#include "records.h"
#include "sandbox.h"
#include "teardown.h"

#include <curl/curl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The descriptors that libusher passes; Sources/CPlatform/guardian.h has the same numbers. */
enum { AREA = 3, CHANNEL = 4, HOST = 5 };
/* The byte with which libusher says that another guardian runs for this host; the same file has the same number. */
enum { REPLACED = 1 };
/* Exit codes of the first process. */
enum { RUNS = 0, WRONG_CALL = 2, NO_PROCESS = 3 };

/* Ignores signals: a signal for the whole process group, or for all processes of a service, must not end the guardian
 * before the host has ended. The guardian needs no signal to end, because it ends by itself soon after the host. */
static void ignore_signals(void) {
  static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) signal(numbers[i], SIG_IGN);
}

/* Waits until this guardian has nothing to wait for any more. Returns true if the host has ended; false if the host has
 * marked its records as ended, or another guardian runs for it. The guardian sees the end of the host in two ways: the
 * host's pidfd becomes readable, or no process has the host's end of the channel open any more. A child of the host may
 * keep that end open, so the channel alone would not be enough. */
static bool host_ends(const struct records *records) {
  struct pollfd ends[] = {{CHANNEL, POLLIN, 0}, {HOST, POLLIN, 0}};
  for (;;) {
    char bytes[16];
    if (poll(ends, 2, -1) <= 0) continue;
    if (ends[1].revents & POLLNVAL) ends[1].fd = -1; /* the kernel has no pidfd */
    else if (ends[1].revents) return true;
    if (!ends[0].revents) continue;
    ssize_t count = recv(CHANNEL, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count <= 0) return true;
    if (records_are_over(records)) return false;
    if (bytes[count - 1] == REPLACED) return false;
  }
}

int main(void) {
  struct records records;
  if (!records_open(&records, AREA)) return WRONG_CALL;
  close(AREA);
  ignore_signals(); /* do this first: signals may come as soon as the host continues */
  /* The host waits until this process ends, because the host must not have a child process while it plays. So a second
     process does the work. */
  pid_t child = fork();
  if (child != 0) _exit(child > 0 ? RUNS : NO_PROCESS);
  if (setsid() < 0 || chdir("/") != 0) _exit(NO_PROCESS);
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) _exit(NO_PROCESS);
  sandbox_enter();
  if (host_ends(&records) && !records_are_over(&records)) teardown_all(&records);
  curl_global_cleanup();
  return 0;
}
