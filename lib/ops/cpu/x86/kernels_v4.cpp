#include "ops/cpu/kernels/all.h"
#include "ops/cpu/x86/tables.h"

namespace dtrain::cpu {

constinit const Kernels kKernelsV4 = kernels_named("x86-64-v4");

}  // namespace dtrain::cpu
