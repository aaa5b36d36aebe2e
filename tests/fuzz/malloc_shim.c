/* Preloaded library that makes the n-th memory request of the program under test fail, alone or with all later
 * requests. Requests of all threads are counted from the start of main(); before main(), the program could not report
 * the error.
 *
 *   MALLOC_SHIM_FAIL=N      number of the request that fails, from 1; 0 or missing: no request fails
 *   MALLOC_SHIM_MODE=from   all later requests fail as well
 *   MALLOC_SHIM_LEAST=BYTES only counts requests of at least this size
 *   MALLOC_SHIM_REPORT=FILE when main() returns, writes the number of requests, then the number of the first request
 *                           from each place (call stack), one per line
 *   MALLOC_SHIM_TRACE=1     prints the stack of the first request that fails to standard error
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own functions: they avoid dlsym(), which itself calls calloc(). */
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static atomic_long requests, failing;
static atomic_int counting;
static int from_there_on, trace;
static size_t least;
static const char* report;

/* Hashes of the call stacks seen so far, and whether each request was the first from its place. */
enum { kSlots = 1 << 20 };
static atomic_ulong places[kSlots];
static unsigned char is_first[8 * kSlots];

static void note_place(long number) {
  void* frames[6];
  const int depth = backtrace(frames, 6);
  unsigned long hash = 1469598103934665603ul;
  for (int i = 2; i < depth; ++i) hash = (hash ^ (unsigned long)frames[i]) * 1099511628211ul;
  for (unsigned long slot = hash >> 40;; slot = (slot + 1) % kSlots) {
    unsigned long found = 0;
    if (atomic_compare_exchange_strong(&places[slot % kSlots], &found, hash)) break;
    if (found == hash) return;
  }
  if (number < 8l * kSlots) is_first[number] = 1;
}

/* Returns whether this request must fail. */
static int refused(size_t bytes) {
  if (!atomic_load_explicit(&counting, memory_order_relaxed) || bytes < least) return 0;
  const long number = atomic_fetch_add(&requests, 1) + 1;
  if (report) note_place(number);
  if (failing == 0 || (from_there_on ? number < failing : number != failing)) return 0;
  if (trace && number == failing) {
    void* frames[48];
    atomic_store(&counting, 0);
    backtrace_symbols_fd(frames, backtrace(frames, 48), 2);
    atomic_store(&counting, 1);
  }
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t bytes) { return refused(bytes) ? NULL : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return refused(count * bytes) ? NULL : __libc_calloc(count, bytes); }
void* realloc(void* old, size_t bytes) { return refused(bytes) ? NULL : __libc_realloc(old, bytes); }
void* memalign(size_t alignment, size_t bytes) { return refused(bytes) ? NULL : __libc_memalign(alignment, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return refused(bytes) ? NULL : __libc_memalign(alignment, bytes); }

int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (refused(bytes)) return ENOMEM;
  void* memory = __libc_memalign(alignment, bytes);
  if (!memory) return ENOMEM;
  *out = memory;
  return 0;
}

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (refused(bytes)) return MAP_FAILED;
  return (void*)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

static void write_report(void) {
  if (!report || !atomic_exchange(&counting, 0)) return;
  FILE* file = fopen(report, "w");
  if (!file) _exit(99);
  fprintf(file, "%ld\n", (long)requests);
  for (long number = 1; number <= requests && number < 8l * kSlots; ++number)
    if (is_first[number]) fprintf(file, "%ld\n", number);
  if (fclose(file) != 0) _exit(99);
}

static int (*main_of_program)(int, char**, char**);

static int counted_main(int argc, char** argv, char** environment) {
  void* frame;
  if (trace || report) backtrace(&frame, 1); /* backtrace() loads a library on first use, which needs memory */
  atomic_store(&counting, 1);
  const int code = main_of_program(argc, argv, environment);
  write_report();
  return code;
}

int __libc_start_main(int (*program)(int, char**, char**), int argc, char** argv, void (*initialise)(void),
                      void (*finish)(void), void (*loader_finish)(void), void* stack_end) {
  typedef int (*Start)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void), void (*)(void),
                       void*);
  Start start;
  *(void**)&start = dlsym(RTLD_NEXT, "__libc_start_main");
  const char* number = getenv("MALLOC_SHIM_FAIL");
  const char* mode = getenv("MALLOC_SHIM_MODE");
  failing = number ? atol(number) : 0;
  from_there_on = mode && strcmp(mode, "from") == 0;
  trace = getenv("MALLOC_SHIM_TRACE") != NULL;
  report = getenv("MALLOC_SHIM_REPORT");
  least = getenv("MALLOC_SHIM_LEAST") ? strtoul(getenv("MALLOC_SHIM_LEAST"), NULL, 10) : 0;
  main_of_program = program;
  return start(counted_main, argc, argv, initialise, finish, loader_finish, stack_end);
}
