/*
 * bad_disk.c - a preloaded library that makes a disk slow, broken or full. Each call of fdatasync() adds a byte to the
 * file that BAD_DISK_LOG names. Three more variables name files. While the file of BAD_DISK_SLOW exists, fdatasync()
 * does not return. While that of BAD_DISK_BROKEN exists, fdatasync() fails with EIO. While that of BAD_DISK_FULL
 * exists, pwrite() fails with ENOSPC.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int is_there(const char *name) {
  const char *path = getenv(name);
  return path != NULL && access(path, F_OK) == 0;
}

int fdatasync(int fd) {
  const struct timespec pause = {0, 1000000};
  const char *path = getenv("BAD_DISK_LOG");
  int log = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log >= 0 && write(log, "s", 1) != 1) return -1;
  close(log);
  while (is_there("BAD_DISK_SLOW")) nanosleep(&pause, NULL);
  if (is_there("BAD_DISK_BROKEN")) return errno = EIO, -1;
  int (*real)(int);
  *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
  return real(fd);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
  if (is_there("BAD_DISK_FULL")) return errno = ENOSPC, -1;
  ssize_t (*real)(int, const void *, size_t, off_t);
  *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
  return real(fd, bytes, size, at);
}
