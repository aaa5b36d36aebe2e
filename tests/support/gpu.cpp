#include "support/gpu.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "device/device.h"

namespace dtrain::test {

bool settle_gpu_cases(doctest::Context& context) {
  const GpuPresence gpus = gpu_presence();
  if (gpus.count > 0) return true;
  const char* required = std::getenv("DTRAIN_REQUIRE_CUDA");
  if (required && std::string_view(required) == "1") {
    std::fprintf(stderr, "DTRAIN_REQUIRE_CUDA is set, but there is no GPU: %s\n", gpus.reason.c_str());
    return false;
  }
  std::printf("[gpu] test cases that need a GPU are skipped: %s\n", gpus.reason.c_str());
  context.addFilter("test-suite-exclude", "gpu");
  return true;
}

}  // namespace dtrain::test
