/* A shim (LD_PRELOAD) under which small anonymous mappings fail, as when the limit vm.max_map_count is reached. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if ((flags & MAP_ANONYMOUS) && bytes < 1 << 20) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}
