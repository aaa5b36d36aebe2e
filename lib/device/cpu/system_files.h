// What Linux tells of itself in small text files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain::cpu {

/// The text that follows "KEY:" (or "KEY :") on the first line of the file that begins with it; empty without
/// one.
std::string value_in(const std::string& path, std::string_view key);
/// The bytes of a value that is given so in kB; 0 without one.
uint64_t kilobytes_in(const std::string& path, std::string_view key);
/// The file's only number; nothing where the file is not there or says something else ("max").
std::optional<uint64_t> number_in(const std::string& path);

}  // namespace dtrain::cpu
