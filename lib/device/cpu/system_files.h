// Readers for the small text files of /proc and /sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain::cpu {

/// Returns the text after "KEY:" (or "KEY :") on the first line that starts with the key; empty if there is
/// no such line.
std::string value_in(const std::string& path, std::string_view key);
/// Like value_in(), for a value in kB. Returns the value in bytes, or 0 if it is missing.
uint64_t kilobytes_in(const std::string& path, std::string_view key);
/// Returns the single number in the file; nullopt if the file is missing or holds something else ("max").
std::optional<uint64_t> number_in(const std::string& path);

}  // namespace dtrain::cpu
