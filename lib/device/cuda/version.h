#pragma once

#include <string>

#include <fmt/format.h>

namespace dtrain::cuda {

/// As CUDA counts: 13020 is "13.2".
inline std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace dtrain::cuda
