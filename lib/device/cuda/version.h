#pragma once

#include <string>

#include <fmt/format.h>

namespace dtrain::cuda {

/// Formats a CUDA version number: 13020 is "13.2".
inline std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Formats a version number of cuBLASLt, cuDNN 9 or NCCL: 130100 is "13.1.0", 91900 is "9.19.0".
inline std::string library_version_text(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace dtrain::cuda
