// NCCL versions that are too old are rejected.
#include <vector>

#include <doctest/doctest.h>

#include "collective/collective.h"
#include "device/device.h"
#include "emulation/emulation.h"

using namespace dtrain;

namespace {

void check_refused(int version, const char* text) {
  CAPTURE(version);
  const auto context = make_gpu_context({DeviceId::Kind::gpu, 0}, false);
  const std::vector<Context*> contexts{context.get()};
  emulation::set_nccl_version(version);
  CHECK_THROWS_WITH_AS(make_nccl_group(contexts, single_process()), doctest::Contains(text), UserError);
  CHECK(nccl_available());
  emulation::set_nccl_version(0);
  CHECK(make_nccl_group(contexts, single_process()).size() == 1);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("if NCCL is too old, the error has its version and its path") {
    check_refused(22105, "NCCL 2.21.5 (/emulated/libnccl.so.2) is too old");
    check_refused(2804, "NCCL 2.8.4 (/emulated/libnccl.so.2) is too old");
    // This version aborts correctly, but is older than the version with which the program was built.
    check_refused(22203, "this program needs NCCL 2.");
  }
}
