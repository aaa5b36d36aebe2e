#include "ops/cpu/x86/tables.h"

namespace dtrain::cpu {

std::vector<const Kernels*> supported_kernels() {
  // Every CPU with these extensions also has the others of x86-64-v3 and -v4.
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  std::vector<const Kernels*> tables;
  if (v4) tables.push_back(&kKernelsV4);
  if (v3) tables.push_back(&kKernelsV3);
  tables.push_back(&kKernelsV2);
  return tables;
}

}  // namespace dtrain::cpu
