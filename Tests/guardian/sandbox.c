/*
 * sandbox.c - enters the sandbox of the guardian, and tries what it must refuse and what it must allow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../../guardian/sandbox.h"

#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed;

static void refused(long result, const char *what) {
  int is_refused = result < 0 && errno == EPERM;
  if (!is_refused) failed = 1;
  printf("%s - %s: %s\n", is_refused ? "refused" : "NOT REFUSED", what, result < 0 ? strerror(errno) : "done");
}
static void works(int does, const char *what) {
  if (!does) failed = 1;
  printf("%s - %s\n", does ? "works" : "DOES NOT WORK", what);
}
static void *nothing(void *argument) { return argument; }

int main(void) {
  char *const arguments[] = {NULL};
  struct addrinfo *found = NULL;
  pthread_t thread;
  char byte;
  struct rlimit limit;
  int pair[2];
  works(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "a pair of sockets");
  sandbox_enter();
  refused(execve("/bin/true", arguments, arguments), "execve");
  refused(fork(), "fork");
  refused(open("/tmp/usher-sandbox", O_WRONLY | O_CREAT, 0600), "a new file");
  refused(open("/dev/null", O_RDWR), "a file for writing");
  refused(unlink("/tmp/usher-sandbox"), "unlink");
  refused(mkdir("/tmp/usher-sandbox", 0700), "mkdir");
  refused(kill(getppid(), 0), "a signal for another process");
  refused(fcntl(pair[0], F_SETOWN, getppid()), "an owner of a descriptor, to which the kernel sends SIGIO");
  refused(fcntl(pair[0], F_SETSIG, SIGKILL), "another signal than SIGIO");
  struct f_owner_ex owner = {F_OWNER_PID, getppid()};
  refused(fcntl(pair[0], F_SETOWN_EX, &owner), "an owner of a descriptor, by F_SETOWN_EX");
  int parent = getppid();
  refused(ioctl(pair[0], FIOSETOWN, &parent), "an owner of a descriptor, by FIOSETOWN");
  refused(ioctl(pair[0], SIOCSPGRP, &parent), "an owner of a descriptor, by SIOCSPGRP");
  refused(prlimit(getppid(), RLIMIT_CPU, NULL, &limit), "limits of another process");
  refused(ptrace(PTRACE_SEIZE, getppid(), 0, 0), "ptrace");
  refused(socket(AF_PACKET, SOCK_RAW, 0), "a socket for packets");
  refused(listen(0, 1), "listen");
  refused(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "dumpable again");
  refused(setuid(0), "setuid");
  refused(chdir("/"), "chdir");

  works(pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0, "a thread");
  works(getaddrinfo("localhost", "443", NULL, &found) == 0, "a look-up of a name");
  int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
  works(file >= 0 && read(file, &byte, 1) == 1, "reading a file");
  works(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 || errno == EAFNOSUPPORT, "a socket of the internet");
  works(getrlimit(RLIMIT_NOFILE, &limit) == 0, "the limits of the process itself");
  works(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(pair[0], F_GETFL) >= 0, "flags of a descriptor");
  works(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) < 0, "other options of prctl() are refused");
  return failed;
}
