// The __shared__ variables of kernels. In the emulation, they are thread-local variables. Their addresses are
// computed with the help of the program's symbols.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace dtrain::emulation {

/// Returns the calling thread's shared variables; none if the program has no symbols.
const std::vector<std::span<std::byte>>& shared_memory();

}  // namespace dtrain::emulation
