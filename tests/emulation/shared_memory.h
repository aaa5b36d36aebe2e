// Kernels' __shared__ variables: in the emulation they are thread-local variables, located through the
// program's symbols.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace dtrain::emulation {

/// Returns the calling thread's shared variables; none if the program has no symbols.
const std::vector<std::span<std::byte>>& shared_memory();

}  // namespace dtrain::emulation
