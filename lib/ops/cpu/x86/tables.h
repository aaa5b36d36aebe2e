// The kernel tables of the x86-64 levels.
#pragma once

#include "ops/cpu/kernels/table.h"

namespace dtrain::cpu {

extern const Kernels kKernelsV2, kKernelsV3,
    kKernelsV4;  // x86-64-v2 (SSE 4.2), x86-64-v3 (AVX2) and x86-64-v4 (AVX-512)

}  // namespace dtrain::cpu
