#pragma once

#include <string>

#include <fmt/format.h>

namespace dtrain::cuda {

/// As CUDA counts: 13020 is "13.2".
inline std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// As cuBLASLt, cuDNN 9 and NCCL count: 130100 is "13.1.0", 91900 "9.19.0".
inline std::string library_version_text(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace dtrain::cuda
