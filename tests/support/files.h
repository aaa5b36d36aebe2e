// Reading and writing of whole files.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace dtrain::test {

/// Returns the file's bytes; "" if it cannot be read.
inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace dtrain::test
