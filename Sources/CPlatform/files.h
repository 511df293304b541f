/* Functions for the files of the journal. Those that call the system return a negative errno if the system refuses. */
#ifndef USHER_CPLATFORM_FILES_H
#define USHER_CPLATFORM_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The headers declare these names only for programs that define _GNU_SOURCE, and Swift does not. */
extern int fallocate(int fd, int mode, off_t at, off_t size);
extern const char *strerrordesc_np(int number);
#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

/* Why platform_private_file_open() refuses a file. */
#define PLATFORM_FILE_NOT_REGULAR (-10001)
#define PLATFORM_FILE_OF_ANOTHER_USER (-10002)
#define PLATFORM_FILE_OPEN_TO_OTHERS (-10003)
#define PLATFORM_FILE_HAS_OTHER_NAMES (-10004)

/* Opens a file of the calling user that no other user may use; makes the file if there is none. Follows no symbolic
 * link in the last part of the path. Returns the descriptor, a negative errno, or PLATFORM_FILE_... */
static inline int platform_private_file_open(const char *path) {
  struct stat is;
  int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd < 0) return -errno;
  int fault = fstat(fd, &is) != 0        ? -errno
              : !S_ISREG(is.st_mode)     ? PLATFORM_FILE_NOT_REGULAR
              : is.st_uid != geteuid()   ? PLATFORM_FILE_OF_ANOTHER_USER
              : (is.st_mode & 0077) != 0 ? PLATFORM_FILE_OPEN_TO_OTHERS
              : is.st_nlink != 1         ? PLATFORM_FILE_HAS_OTHER_NAMES
                                         : 0;
  if (fault == 0) return fd;
  close(fd);
  return fault;
}
/* Identifies a file: a copy has another inode. `born_ns`: when the inode was made; 0: the file system does not know. */
static inline int platform_file_identity(int fd, uint64_t *inode, int64_t *born_ns) {
  struct statx now;
  struct stat is;
  *born_ns = 0;
  if (fstat(fd, &is) != 0) return -errno;
  *inode = is.st_ino;
  memset(&now, 0, sizeof now);
  if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BTIME, &now) == 0 && (now.stx_mask & STATX_BTIME) != 0)
    *born_ns = (int64_t)now.stx_btime.tv_sec * 1000000000 + now.stx_btime.tv_nsec;
  return 0;
}
static inline int64_t platform_file_size(int fd) {
  struct stat is;
  return fstat(fd, &is) != 0 ? -errno : (int64_t)is.st_size;
}
static inline uint32_t platform_user_id(void) { return (uint32_t)geteuid(); }

/* Locks or unlocks one byte of a file for this descriptor. The system releases the lock when the descriptor and all its
 * duplicates are closed. Returns 0; -EAGAIN if another descriptor holds the lock. */
static inline int platform_file_lock(int fd, int64_t at, int locks) {
  struct flock range;
  memset(&range, 0, sizeof range);
  range.l_type = locks ? F_WRLCK : F_UNLCK;
  range.l_whence = SEEK_SET;
  range.l_start = (off_t)at;
  range.l_len = 1;
  if (fcntl(fd, F_OFD_SETLK, &range) == 0) return 0;
  return errno == EACCES ? -EAGAIN : -errno;
}
/* Makes the file long enough, and reserves space on the disk, so that later writes do not fail because the disk is
 * full. On a file system that cannot reserve space, the function only makes the file long enough. Returns -EFBIG if
 * the process may not have such a long file: if the function tried, the system would send SIGXFSZ. */
static inline int platform_file_reserve(int fd, int64_t at, int64_t size) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < (uint64_t)(at + size)) return -EFBIG;
  if (fallocate(fd, 0, (off_t)at, (off_t)size) == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return -errno;
  return platform_file_size(fd) >= at + size || ftruncate(fd, (off_t)(at + size)) == 0 ? 0 : -errno;
}
/* Reads `size` bytes, or fewer if the file ends before. Returns how many bytes it read. */
static inline int64_t platform_file_read(int fd, void *target, size_t size, int64_t at) {
  size_t done = 0;
  while (done < size) {
    ssize_t got = pread(fd, (uint8_t *)target + done, size - done, (off_t)(at + (int64_t)done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    if (got == 0) break;
    done += (size_t)got;
  }
  return (int64_t)done;
}
/* Writes all bytes. */
static inline int platform_file_write(int fd, const void *bytes, size_t size, int64_t at) {
  size_t done = 0;
  while (done < size) {
    ssize_t wrote = pwrite(fd, (const uint8_t *)bytes + done, size - done, (off_t)(at + (int64_t)done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return -errno;
    done += (size_t)wrote;
  }
  return 0;
}
/* Waits until the disk has all bytes that the process has written to the file. */
static inline int platform_file_sync(int fd) { return fdatasync(fd) == 0 ? 0 : -errno; }

/* Whether all bytes are 0. */
static inline int platform_is_zero(const void *bytes, size_t size) {
  const uint8_t *at = (const uint8_t *)bytes;
  return size == 0 || (at[0] == 0 && memcmp(at, at + 1, size - 1) == 0);
}

/* Returns the system's text for an errno. The caller must not free it. */
static inline const char *platform_error_text(int number) {
  const char *text = strerrordesc_np(number);
  return text == NULL ? "unknown error" : text;
}

#endif
