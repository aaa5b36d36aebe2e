// Formatting and parsing sizes in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

/// Formats a size in powers of 1000, e.g. "18.3 MB".
std::string format_bytes(uint64_t bytes);

/// Parses "24GB", "1.5 GB", "512 MiB" or "1000000". Prefixes are powers of 1000, or of 1024 with an "i".
/// Returns nullopt for any other text.
std::optional<uint64_t> parse_bytes(std::string_view text);

}  // namespace dtrain
