// Random numbers in kernels.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace dtrain::cuda {

/// Returns words.v[i]. Uses comparisons instead of an index, because the compiler would place an array that
/// is indexed at run time in local memory.
__device__ inline uint32_t word_of(const Philox::Block& words, uint64_t i) {
  return i == 0 ? words.v[0] : i == 1 ? words.v[1] : i == 2 ? words.v[2] : words.v[3];
}

}  // namespace dtrain::cuda
