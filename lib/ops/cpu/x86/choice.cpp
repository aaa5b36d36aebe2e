#include "base/error.h"
#include "ops/cpu/x86/tables.h"

namespace dtrain::cpu {
namespace {

/// Returns whether this CPU has the instructions of an x86-64 level. Checks only the extensions that the
/// kernels need: every CPU with these also has the other extensions of the level.
bool has_level(int level) {
  switch (level) {
    case 4:
      return has_level(3) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
    case 3:
      return has_level(2) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi2");
    default:
      return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  }
}

}  // namespace

std::vector<const Kernels*> supported_kernels() {
  std::vector<const Kernels*> tables;
  // DTRAIN_CPU_LEVELS expands to LEVEL(n) for each x86-64 level that is compiled (see lib/CMakeLists.txt),
  // the highest level first.
#define LEVEL(n) \
  if (has_level(n)) tables.push_back(&kKernelsV##n);
  DTRAIN_CPU_LEVELS
#undef LEVEL
  if (tables.empty())
    throw Error(
        "This CPU lacks instructions that this program was built for. Build it on this machine, or configure "
        "it with -DDTRAIN_QUICK_BUILD=OFF for other x86-64 CPUs");
  return tables;
}

}  // namespace dtrain::cpu
