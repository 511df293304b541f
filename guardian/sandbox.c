/* sandbox.c - see sandbox.h. SPDX-License-Identifier: Apache-2.0 */
#include "sandbox.h"

#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

#if defined(ARCHITECTURE) && !defined(IS_SANITIZED)

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Loads the lower half of a 64-bit argument. Both supported architectures are little-endian. */
#define LOAD_ARGUMENT(index) LOAD(args[index])
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define REFUSE RETURN(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW RETURN(SECCOMP_RET_ALLOW)
/* Allows a system call. */
#define CALL(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), ALLOW
/* Skips `count` instructions if the loaded number is not that of the system call. */
#define UNLESS(name, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, (count))
/* Allows the system call if the loaded value is `value`. */
#define ALLOW_VALUE(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1), ALLOW
/* Refuses the system call if the loaded value is `value`. */
#define REFUSE_VALUE(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1), REFUSE
/* Allows the system call if the loaded value has none of these bits, and refuses it otherwise. */
#define ALLOW_WITHOUT(bits) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 1, 0), ALLOW, REFUSE
#define ALLOW_WITH(bits) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, 1), ALLOW, REFUSE
#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND)

/* The system calls that the C library, its resolver, libcurl and OpenSSL use for HTTP requests. */
static struct sock_filter filter[] = {LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0), REFUSE,
    LOAD(nr),
    /* memory */
    CALL(mmap), CALL(munmap), CALL(mremap), CALL(mprotect), CALL(madvise), CALL(brk), CALL(membarrier),
#ifdef SYS_mseal
    CALL(mseal),
#endif
    /* threads (the resolver starts one), their synchronisation, and signals to the process itself */
    CALL(futex), CALL(set_robust_list), CALL(get_robust_list), CALL(set_tid_address), CALL(sched_yield),
    CALL(sched_getaffinity), CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(sigaltstack),
    CALL(exit), CALL(exit_group), CALL(restart_syscall), CALL(gettid), CALL(getpid), CALL(getppid),
#ifdef SYS_rseq
    CALL(rseq),
#endif
    /* input and output on descriptors; ioctl() and fcntl() follow below */
    CALL(read), CALL(write), CALL(readv), CALL(writev), CALL(pread64), CALL(close), CALL(lseek), CALL(dup), CALL(ppoll),
    CALL(pselect6), CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_pwait), CALL(eventfd2), CALL(pipe2),
    CALL(fadvise64),
    /* sockets; socket() follows below */
    CALL(socketpair), CALL(connect), CALL(bind), CALL(shutdown), CALL(sendto), CALL(sendmsg), CALL(sendmmsg),
    CALL(recvfrom), CALL(recvmsg), CALL(recvmmsg), CALL(getsockname), CALL(getpeername), CALL(getsockopt),
    CALL(setsockopt),
    /* files, only to read; openat() follows below */
    CALL(fstat), CALL(newfstatat), CALL(statx), CALL(statfs), CALL(fstatfs), CALL(readlinkat), CALL(faccessat),
    CALL(getdents64), CALL(getcwd),
#ifdef SYS_faccessat2
    CALL(faccessat2),
#endif
#ifdef __x86_64__
    CALL(poll), CALL(select), CALL(epoll_wait), CALL(pipe), CALL(dup2), CALL(stat), CALL(lstat), CALL(access),
    CALL(readlink), CALL(time), CALL(getdents),
#endif
    CALL(dup3),
    /* facts about the system and the process */
    CALL(clock_gettime), CALL(clock_getres), CALL(clock_nanosleep), CALL(nanosleep), CALL(gettimeofday),
    CALL(getrandom), CALL(uname), CALL(sysinfo), CALL(getuid), CALL(geteuid), CALL(getgid), CALL(getegid),
    CALL(getrlimit),
    /* threads, but no processes. The flags of clone3() are in memory, which a filter cannot read. So the filter answers
       that clone3() does not exist, and the C library uses clone(). */
    UNLESS(clone3, 1), RETURN(SECCOMP_RET_ERRNO | ENOSYS), UNLESS(clone, 4), LOAD_ARGUMENT(0), ALLOW_WITH(CLONE_THREAD),
    UNLESS(openat, 4), LOAD_ARGUMENT(2), ALLOW_WITHOUT(WRITING),
    /* An owner of a descriptor is a process to which the kernel sends a signal when data arrives. */
    UNLESS(fcntl, 8), LOAD_ARGUMENT(1), REFUSE_VALUE(F_SETOWN), REFUSE_VALUE(F_SETSIG), REFUSE_VALUE(F_SETOWN_EX),
    ALLOW, UNLESS(ioctl, 6), LOAD_ARGUMENT(1), REFUSE_VALUE(FIOSETOWN), REFUSE_VALUE(SIOCSPGRP), ALLOW,
    /* prlimit() only for the process itself: with a low limit it could end another process. */
    UNLESS(prlimit64, 4), LOAD_ARGUMENT(0), ALLOW_VALUE(0), REFUSE,
#ifdef __x86_64__
    UNLESS(open, 4), LOAD_ARGUMENT(1), ALLOW_WITHOUT(WRITING),
#endif
    UNLESS(prctl, 4), LOAD_ARGUMENT(0), ALLOW_VALUE(PR_SET_NAME), REFUSE, UNLESS(socket, 10), LOAD_ARGUMENT(0),
    ALLOW_VALUE(AF_INET), ALLOW_VALUE(AF_INET6), ALLOW_VALUE(AF_UNIX),
    ALLOW_VALUE(AF_NETLINK), /* the resolver asks the kernel for the machine's addresses */
    REFUSE, REFUSE};

static void install_filter(void) {
  static const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  (void)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

#else
static void install_filter(void) {}
#endif

void sandbox_enter(void) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#ifndef IS_SANITIZED
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
  install_filter();
}
