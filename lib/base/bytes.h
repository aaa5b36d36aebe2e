// Amounts of memory as people read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

/// "18.3 MB", in powers of 1000.
std::string format_bytes(uint64_t bytes);

/// "24GB", "1.5 GB", "512 MiB", "1000000": units of 1000, and of 1024 with an i. Nothing for any other text.
std::optional<uint64_t> parse_bytes(std::string_view text);

}  // namespace dtrain
