#include "device/cpu/system_files.h"

#include <fstream>
#include <sstream>

namespace dtrain::cpu {

std::string value_in(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.find_first_not_of(" \t", key.size()) != colon) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

uint64_t kilobytes_in(const std::string& path, std::string_view key) {
  std::istringstream text(value_in(path, key));
  uint64_t kilobytes = 0;
  text >> kilobytes;
  return kilobytes * 1024;
}

std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

}  // namespace dtrain::cpu
