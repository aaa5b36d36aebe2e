/* A shim (LD_PRELOAD) under which the monotonic clock runs a hundred million times as fast. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

static int (*real)(clockid_t, struct timespec *);
static struct timespec begin;

__attribute__((constructor)) static void set_up(void) {
  real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  real(CLOCK_MONOTONIC, &begin);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  if (!real) set_up();
  const int result = real(clock, now);
  if (clock != CLOCK_MONOTONIC || result != 0) return result;
  const int64_t nanoseconds = (int64_t)(now->tv_sec - begin.tv_sec) * 1000000000 + (now->tv_nsec - begin.tv_nsec);
  now->tv_sec = begin.tv_sec + nanoseconds / 10;
  now->tv_nsec = nanoseconds % 10 * 100000000;
  return 0;
}
