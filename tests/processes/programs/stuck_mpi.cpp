// A library for LD_PRELOAD. As soon as the file exists whose path is in the environment variable STUCK_MPI,
// MPI_Test no longer returns. Open MPI's TCP transport behaves in this way after another process was killed.
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

extern "C" int MPI_Test(void* request, int* flag, void* status) {
  using Test = int (*)(void*, int*, void*);
  static const auto test = reinterpret_cast<Test>(::dlsym(RTLD_DEFAULT, "PMPI_Test"));
  static const char* const file = std::getenv("STUCK_MPI");
  if (file && ::access(file, F_OK) == 0)
    for (;;) ::pause();
  return test(request, flag, status);
}
