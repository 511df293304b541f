/* Memory that another process can read, and the start of the process usher-guardian. */
#ifndef USHER_CPLATFORM_GUARDIAN_H
#define USHER_CPLATFORM_GUARDIAN_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Functions and numbers that the C library declares only with _GNU_SOURCE. Swift reads the headers without it. */
enum { platform_mfd_cloexec = 1, platform_mfd_allow_sealing = 2, platform_f_add_seals = 1033 };
enum { platform_spawn_setsid = 0x80, platform_seal_seal = 1, platform_seal_shrink = 2, platform_seal_grow = 4 };
typedef struct platform_dl_info {
  const char *file;
  void *base;
  const char *symbol;
  void *address;
} platform_dl_info;
extern int platform_dladdr(const void *address, platform_dl_info *info) __asm__("dladdr");
typedef posix_spawn_file_actions_t platform_spawn_actions;
extern int platform_spawn_close_from(platform_spawn_actions *actions, int first) __asm__(
    "posix_spawn_file_actions_addclosefrom_np");
extern const char *platform_error_description(int error) __asm__("strerrordesc_np");

/* The descriptors that usher-guardian gets, besides 0 to 2, which are /dev/null or closed. The guardian has no
   other descriptors. */
#define PLATFORM_GUARDIAN_AREA 3
#define PLATFORM_GUARDIAN_CHANNEL 4
#define PLATFORM_GUARDIAN_HOST 5 /* a pidfd of the host; closed if the kernel has none */
/* The byte of platform_guardian_replaced(). */
#define PLATFORM_GUARDIAN_REPLACED 1

/* Makes memory of `size` zeros that another process can map with the descriptor that this function returns. No process
 * can change the size of the memory, so that a reader never reads beyond its end. Core dumps and children of fork() do
 * not have the memory. Returns -1 if the system refuses; `errno` says why. */
static inline int platform_shared_memory_new(size_t size, void **memory) {
  struct rlimit limit;
  /* Beyond this limit ftruncate() would send SIGXFSZ, which ends the process. */
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < size) {
    errno = EFBIG;
    return -1;
  }
  const int seals = platform_seal_seal | platform_seal_shrink | platform_seal_grow;
  int fd = (int)syscall(SYS_memfd_create, "usher-records", platform_mfd_cloexec | platform_mfd_allow_sealing);
  if (fd < 0) return -1;
  if (ftruncate(fd, (off_t)size) == 0 && fcntl(fd, platform_f_add_seals, seals) == 0) {
    *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (*memory != MAP_FAILED) {
      (void)madvise(*memory, size, MADV_DONTFORK);
      (void)madvise(*memory, size, MADV_DONTDUMP);
      return fd;
    }
  }
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}
static inline void platform_shared_memory_end(int fd, void *memory, size_t size) {
  munmap(memory, size);
  close(fd);
}

/* Writes the path of the file `name` in the folder of this library, or in a folder beside it, to `out`, which has
 * PATH_MAX bytes. Returns 0 if there is no such file; then `out` has the first of the paths. */
static inline int platform_find_beside_library(const char *name, char *out) {
  static const char *const folders[] = {"", "../libexec/usher/", "../../libexec/usher/"};
  static const char here = 0;
  platform_dl_info found;
  char library[PATH_MAX], first[PATH_MAX];
  if (platform_dladdr(&here, &found) == 0 || found.file == NULL || realpath(found.file, library) == NULL)
    library[0] = 0;
  char *slash = strrchr(library, '/');
  if (slash != NULL) slash[1] = 0;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    int size = snprintf(out, PATH_MAX, "%s%s%s", library, folders[i], name);
    if (slash != NULL && size > 0 && size < PATH_MAX && access(out, X_OK) == 0) return 1;
    if (i == 0) memcpy(first, out, PATH_MAX);
  }
  memcpy(out, first, PATH_MAX);
  return 0;
}

/* Whether the guardian's libcurl, TLS library or resolver may need this variable of the environment ("NAME=value"). */
static inline int platform_guardian_needs(const char *variable) {
  static const char *const names[] = {"http_proxy=", "https_proxy=", "HTTPS_PROXY=", "no_proxy=", "NO_PROXY=",
      "all_proxy=", "ALL_PROXY=", "SSL_CERT_FILE=", "SSL_CERT_DIR=", "OPENSSL_CONF=", "OPENSSL_MODULES=",
      "RES_OPTIONS=", "LOCALDOMAIN=", "LD_LIBRARY_PATH="};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(variable, names[i], strlen(names[i])) == 0) return 1;
  return 0;
}

/* Returns a copy of a descriptor whose number does not collide with those of the guardian. */
static inline int platform_copy_high(int fd) { return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 16); }

/* Starts usher-guardian. The program forks and its first process ends at once, so that the host has no child process;
 * platform_guardian_started() waits for this first process. No code of the host runs in the new process: posix_spawn()
 * blocks all signals and calls no handler of pthread_atfork().
 *
 * Returns 0 and sets `channel` to the host's end of a pair of sockets; or returns an error number. While the guardian
 * lives, the descriptor `channel` is not readable; it becomes readable when the guardian ends. */
static inline int platform_guardian_start(const char *path, int area, int32_t *process, int *channel) {
  enum { most = 64 };
  char *environment[most + 1];
  int count = 0, ends[2] = {-1, -1}, error = 0;
  /* If a program has more rights than its user (setuid), it must not pass on variables that this user has set. */
  for (char **at = __environ; getauxval(AT_SECURE) == 0 && at != NULL && *at != NULL && count < most; at++)
    if (platform_guardian_needs(*at)) environment[count++] = *at;
  environment[count] = NULL;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;

  int host = -1;
#ifdef SYS_pidfd_open
  host = (int)syscall(SYS_pidfd_open, getpid(), 0);
#endif
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  int from[] = {
      platform_copy_high(null), platform_copy_high(area), platform_copy_high(ends[1]), platform_copy_high(host)};
  if (null >= 0) close(null);
  if (host >= 0) close(host);
  close(ends[1]);
  if (from[1] < 0 || from[2] < 0) error = EMFILE;

  char name[] = "usher-guardian";
  char *const arguments[] = {name, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  pid_t pid = 0;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (int fd = 0; fd < 3 && error == 0; fd++)
    error = from[0] >= 0 ? posix_spawn_file_actions_adddup2(&actions, from[0], fd)
                         : posix_spawn_file_actions_addclose(&actions, fd);
  if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, from[1], PLATFORM_GUARDIAN_AREA);
  if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, from[2], PLATFORM_GUARDIAN_CHANNEL);
  if (error == 0 && from[3] >= 0) error = posix_spawn_file_actions_adddup2(&actions, from[3], PLATFORM_GUARDIAN_HOST);
  if (error == 0) error = platform_spawn_close_from(&actions, PLATFORM_GUARDIAN_HOST + (from[3] >= 0 ? 1 : 0));
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | platform_spawn_setsid);
  if (error == 0) error = posix_spawn(&pid, path, &actions, &attributes, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  for (size_t i = 0; i < sizeof from / sizeof *from; i++)
    if (from[i] >= 0) close(from[i]);
  if (error != 0) close(ends[0]);
  *process = (int32_t)pid;
  *channel = ends[0];
  return error;
}

#define PLATFORM_GUARDIAN_RUNS 0
#define PLATFORM_GUARDIAN_STARTS (-1)
/* usher-guardian needs a few milliseconds to start, so after this time it is another program, or it hangs. */
#define PLATFORM_GUARDIAN_START_MS 10000
/* The first process ended without an error, or the host waited for it, but no guardian runs. */
#define PLATFORM_GUARDIAN_ENDED 126
/* Whether the first process of usher-guardian has ended. `limit_ms`: how long the function waits for that; then it
 * kills the process with its children, and waits for at most 100 ms more, because a process that waits for a disk does
 * not end at once. Negative: the function does not wait, and kills nothing. Returns PLATFORM_GUARDIAN_STARTS if this
 * process has not ended; PLATFORM_GUARDIAN_RUNS if the guardian runs; otherwise the guardian has failed: the exit code,
 * 128 plus the signal that ended the process, or PLATFORM_GUARDIAN_ENDED if the process ended without an error. */
static inline int platform_guardian_started(int32_t process, int channel, int limit_ms) {
  int status = 0;
  pid_t found = waitpid((pid_t)process, &status, WNOHANG);
  for (int waited = 0; limit_ms >= 0 && found == 0 && waited < limit_ms + 100; waited++) {
    /* The process leads a group of its own; systems without POSIX_SPAWN_SETSID make none. */
    if (waited == limit_ms && kill(-(pid_t)process, SIGKILL) != 0) kill((pid_t)process, SIGKILL);
    poll(NULL, 0, 1);
    found = waitpid((pid_t)process, &status, WNOHANG);
  }
  if (found == 0) return PLATFORM_GUARDIAN_STARTS;
  if (found > 0 && !WIFEXITED(status)) return 128 + WTERMSIG(status);
  if (found > 0 && WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
  /* The exit code is 0; or there is no such child, because the host ignores SIGCHLD or has itself waited for it. */
  struct pollfd end = {channel, POLLIN, 0};
  return poll(&end, 1, 0) > 0 ? PLATFORM_GUARDIAN_ENDED : PLATFORM_GUARDIAN_RUNS;
}
/* Wakes the guardian, which then reads the state of its area. Then closes this process's end of the channel. */
static inline void platform_guardian_end(int channel) {
  if (channel < 0) return;
  (void)send(channel, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  close(channel);
}
/* Tells the guardian that another guardian runs for this process, so that it ends without a teardown. Then closes this
 * process's end of the channel. If the byte cannot be sent, this end stays open: otherwise the guardian would believe
 * that this process has ended. */
static inline void platform_guardian_replaced(int channel) {
  static const char byte = PLATFORM_GUARDIAN_REPLACED;
  if (send(channel, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 || errno == EPIPE || errno == ECONNRESET)
    close(channel);
}
/* The error number of the last system call that failed on this thread. */
static inline int platform_last_error(void) { return errno; }
/* Writes the text of an error number to `out`, which has 128 bytes. */
static inline void platform_write_error_text(int error, char *out) {
  const char *text = platform_error_description(error);
  snprintf(out, 128, "%s", text == NULL ? "unknown error" : text);
}

/* The number of the point at which a test wants the process to be killed; -1: none. See KillPoint.swift. */
static inline int64_t platform_kill_point(void) {
  const char *text = getenv("USHER_KILL_AT");
  return text == NULL || text[0] == 0 ? -1 : (int64_t)strtoll(text, NULL, 10);
}
/* Called at each such point, by any thread. `chosen` is the result of platform_kill_point(): if it is the number of
 * this point, kills the process; if it is 0, prints the number and the name of this point. */
static inline void platform_pass_kill_point(const void *name, int64_t chosen) {
  static int64_t passed, sessions;
  int64_t now = __atomic_add_fetch(&passed, 1, __ATOMIC_SEQ_CST);
  if (strcmp((const char *)name, "first record") == 0) __atomic_add_fetch(&sessions, 1, __ATOMIC_SEQ_CST);
  if (chosen == 0) dprintf(2, "point %lld %s\n", (long long)now, (const char *)name);
  if (now != chosen) return;
  dprintf(2, "killed at %s; sessions: %lld\n", (const char *)name, (long long)sessions);
  kill(getpid(), SIGKILL);
}

/* Calls `handler` at exit() and when main() returns: before the exit handlers that were registered earlier. Returns 0
 * if the system is short of memory. */
static inline int platform_at_exit(void (*handler)(void *)) {
  extern int __cxa_atexit(void (*)(void *), void *, void *);
  return __cxa_atexit(handler, NULL, NULL) == 0;
}

#endif
