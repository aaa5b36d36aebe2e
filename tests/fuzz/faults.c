// fuzz_faults.py preloads this library into dtrain. The library counts the calls that access files, and makes one of
// them fail, or kills the process at that call. Environment variables:
//   FAULT_UNDER  folder whose files count
//   FAULT_LOG    file outside that folder, to which every call appends a line: "write /folder/file"
//   FAULT_AT     number of the call, from 1
//   FAULT_DO     "before" or "after": kills the process before or after the call; an errno: the call fails with this
//                errno and has no effect
//   FAULT_ON     if set, all later calls that write fail as well
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum sort { READS, WRITES };
enum verdict { GO_ON, FAIL, KILL_AFTER };

static const char *under, *log_path, *action;
static long at, calls;
static int error_number, on;

__attribute__((constructor)) static void read_environment(void) {
  under = getenv("FAULT_UNDER");
  log_path = getenv("FAULT_LOG");
  action = getenv("FAULT_DO");
  const char* number = getenv("FAULT_AT");
  at = number ? atol(number) : 0;
  error_number = action ? atoi(action) : 0;
  on = getenv("FAULT_ON") != NULL;
}

static void write_log(const char* call, const char* path) {
  char line[PATH_MAX + 64];
  const int length = snprintf(line, sizeof(line), "%s %s\n", call, path);
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0) return;
  syscall(SYS_write, fd, line, (size_t)length);
  syscall(SYS_close, fd);
}

/// Returns the action for a call on this absolute path.
static enum verdict judge(const char* call, const char* path, enum sort sort) {
  if (!under || strncmp(path, under, strlen(under)) != 0) return GO_ON;
  const long number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  if (log_path) write_log(call, path);
  if (!action || number < at || (number > at && !(on && sort == WRITES))) return GO_ON;
  if (strcmp(action, "before") == 0) kill(getpid(), SIGKILL);
  if (strcmp(action, "after") == 0) return KILL_AFTER;
  errno = error_number;
  return FAIL;
}

static enum verdict judge_at(const char* call, int directory, const char* path, enum sort sort) {
  char full[2 * PATH_MAX + 2], link[64];
  const int before = errno;
  if (path[0] == '/') return judge(call, path, sort);
  snprintf(link, sizeof(link), directory == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", directory);
  const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, full, (size_t)PATH_MAX);
  errno = before;
  if (length < 0) return GO_ON;
  full[length] = '/';
  strncpy(full + length + 1, path, PATH_MAX);
  return judge(call, full, sort);
}

static enum verdict judge_fd(const char* call, int fd, enum sort sort) {
  char full[PATH_MAX + 1], link[64];
  const int before = errno;
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, full, (size_t)PATH_MAX);
  errno = before;
  if (length < 0) return GO_ON;
  full[length] = '\0';
  return judge(call, full, sort);
}

/// Defines the replacement of a function NAME with this result type, PARAMETERS and ARGUMENTS. VERDICT decides whether
/// the real function is called.
#define INTERPOSE(RESULT, NAME, PARAMETERS, ARGUMENTS, FAILURE, VERDICT) \
  RESULT NAME PARAMETERS {                                               \
    static RESULT(*real) PARAMETERS;                                     \
    if (!real) real = (RESULT(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME);     \
    const enum verdict verdict = VERDICT;                                \
    if (verdict == FAIL) return FAILURE;                                 \
    RESULT result = real ARGUMENTS;                                      \
    if (verdict == KILL_AFTER) kill(getpid(), SIGKILL);                  \
    return result;                                                       \
  }

INTERPOSE(ssize_t, read, (int fd, void* to, size_t n), (fd, to, n), -1, judge_fd("read", fd, READS))
INTERPOSE(ssize_t, pread, (int fd, void* to, size_t n, off_t o), (fd, to, n, o), -1, judge_fd("pread", fd, READS))
INTERPOSE(ssize_t, pread64, (int fd, void* to, size_t n, off64_t o), (fd, to, n, o), -1, judge_fd("pread", fd, READS))
INTERPOSE(ssize_t, write, (int fd, const void* from, size_t n), (fd, from, n), -1, judge_fd("write", fd, WRITES))
INTERPOSE(ssize_t, pwrite, (int fd, const void* from, size_t n, off_t o), (fd, from, n, o), -1,
          judge_fd("pwrite", fd, WRITES))
INTERPOSE(ssize_t, pwrite64, (int fd, const void* from, size_t n, off64_t o), (fd, from, n, o), -1,
          judge_fd("pwrite", fd, WRITES))
INTERPOSE(ssize_t, writev, (int fd, const struct iovec* from, int n), (fd, from, n), -1, judge_fd("writev", fd, WRITES))
INTERPOSE(int, fsync, (int fd), (fd), -1, judge_fd("fsync", fd, WRITES))
INTERPOSE(int, fdatasync, (int fd), (fd), -1, judge_fd("fdatasync", fd, WRITES))
INTERPOSE(int, ftruncate, (int fd, off_t n), (fd, n), -1, judge_fd("ftruncate", fd, WRITES))
INTERPOSE(int, ftruncate64, (int fd, off64_t n), (fd, n), -1, judge_fd("ftruncate", fd, WRITES))
INTERPOSE(int, flock, (int fd, int how), (fd, how), -1, judge_fd("flock", fd, READS))
INTERPOSE(int, rename, (const char* from, const char* to), (from, to), -1, judge_at("rename", AT_FDCWD, to, WRITES))
INTERPOSE(int, renameat, (int a, const char* from, int b, const char* to), (a, from, b, to), -1,
          judge_at("renameat", b, to, WRITES))
INTERPOSE(int, unlink, (const char* path), (path), -1, judge_at("unlink", AT_FDCWD, path, READS))
INTERPOSE(int, unlinkat, (int directory, const char* path, int flags), (directory, path, flags), -1,
          judge_at("unlinkat", directory, path, READS))
INTERPOSE(int, remove, (const char* path), (path), -1, judge_at("remove", AT_FDCWD, path, READS))
INTERPOSE(int, rmdir, (const char* path), (path), -1, judge_at("rmdir", AT_FDCWD, path, READS))
INTERPOSE(int, mkdir, (const char* path, mode_t mode), (path, mode), -1, judge_at("mkdir", AT_FDCWD, path, WRITES))
INTERPOSE(int, mkdirat, (int directory, const char* path, mode_t mode), (directory, path, mode), -1,
          judge_at("mkdirat", directory, path, WRITES))
INTERPOSE(int, stat, (const char* path, struct stat* to), (path, to), -1, judge_at("stat", AT_FDCWD, path, READS))
INTERPOSE(int, lstat, (const char* path, struct stat* to), (path, to), -1, judge_at("lstat", AT_FDCWD, path, READS))
INTERPOSE(int, fstat, (int fd, struct stat* to), (fd, to), -1, judge_fd("fstat", fd, READS))
INTERPOSE(int, faccessat, (int directory, const char* path, int mode, int flags), (directory, path, mode, flags), -1,
          judge_at("faccessat", directory, path, READS))
INTERPOSE(DIR*, opendir, (const char* path), (path), NULL, judge_at("opendir", AT_FDCWD, path, READS))
INTERPOSE(DIR*, fdopendir, (int fd), (fd), NULL, judge_fd("fdopendir", fd, READS))
INTERPOSE(FILE*, fopen, (const char* path, const char* mode), (path, mode), NULL,
          judge_at("fopen", AT_FDCWD, path, mode[0] == 'r' ? READS : WRITES))
INTERPOSE(FILE*, fopen64, (const char* path, const char* mode), (path, mode), NULL,
          judge_at("fopen", AT_FDCWD, path, mode[0] == 'r' ? READS : WRITES))

/// The descriptor is closed even if close() reports a failure.
int close(int fd) {
  const enum verdict verdict = judge_fd("close", fd, READS);
  const int before = errno;
  const int result = (int)syscall(SYS_close, fd);
  if (verdict == KILL_AFTER) kill(getpid(), SIGKILL);
  if (verdict != FAIL) return result;
  errno = before;
  return -1;
}

static int open_at(const char* call, int directory, const char* path, int flags, mode_t mode) {
  const enum verdict verdict = judge_at(call, directory, path, (flags & O_CREAT) ? WRITES : READS);
  if (verdict == FAIL) return -1;
  const int result = (int)syscall(SYS_openat, directory, path, flags, mode);
  if (verdict == KILL_AFTER) kill(getpid(), SIGKILL);
  return result;
}

#define MODE_BEHIND(FLAGS)                           \
  mode_t mode = 0;                                   \
  if (((FLAGS)&O_CREAT) || ((FLAGS)&O_TMPFILE) == O_TMPFILE) { \
    va_list list;                                    \
    va_start(list, FLAGS);                           \
    mode = va_arg(list, mode_t);                     \
    va_end(list);                                    \
  }

int open(const char* path, int flags, ...) {
  MODE_BEHIND(flags)
  return open_at("open", AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE_BEHIND(flags)
  return open_at("open", AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
int openat(int directory, const char* path, int flags, ...) {
  MODE_BEHIND(flags)
  return open_at("openat", directory, path, flags, mode);
}
int openat64(int directory, const char* path, int flags, ...) {
  MODE_BEHIND(flags)
  return open_at("openat", directory, path, flags | O_LARGEFILE, mode);
}
