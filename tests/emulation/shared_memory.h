// What kernels declare __shared__: in the emulation thread-local variables of the host, of which the
// program's symbols tell where they are.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace dtrain::emulation {

/// The pieces of the calling thread's; none where the program has no symbols.
const std::vector<std::span<std::byte>>& shared_memory();

}  // namespace dtrain::emulation
