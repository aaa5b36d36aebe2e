// Amounts of memory as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

/// "18.3 MB", in powers of 1000.
std::string format_bytes(uint64_t bytes);

}  // namespace dtrain
