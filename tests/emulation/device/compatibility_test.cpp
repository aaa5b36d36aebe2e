// GPUs that cannot run the program's kernels.
#include "device/cuda/compatibility.h"

#include <doctest/doctest.h>

#include "device/device.h"
#include "device/gpu_info.h"
#include "emulation/other_machine.h"
#include "support/errors.h"
#include "support/text.h"

namespace dtrain {
namespace {

using emulation::OtherMachine;
using test::contains;

std::string refusal_of(int gpu) {
  return test::error_of([&] { make_gpu_context({DeviceId::Kind::gpu, gpu}, false); });
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("kernels run only on GPUs of compatible architectures") {
    const auto runs = [](const char* architectures, int capability, int driver = 13020) {
      return cuda::kernel_obstacle(architectures, capability, driver, 13020).empty();
    };
    constexpr auto kUsual = "80-real,90-real,100-real,120-real,120-virtual";
    for (const int capability : {80, 86, 89, 90, 100, 103, 120, 121}) CHECK(runs(kUsual, capability, 13000));
    for (const int capability : {60, 75, 110}) CHECK_FALSE(runs(kUsual, capability));
    CHECK(runs(kUsual, 130));
    // A driver cannot compile PTX of a newer CUDA version than that of the driver.
    CHECK_FALSE(runs(kUsual, 130, 13000));
    CHECK(runs("90-virtual", 90));
    CHECK_FALSE(runs("90-virtual", 90, 12080));
    CHECK_FALSE(runs("90-virtual", 89));
    CHECK_FALSE(runs("86-real", 80));
    CHECK(runs("86", 89));
    CHECK(runs("86", 90));
    CHECK(runs("90a-real", 90));
    CHECK_FALSE(runs("100a-real", 103));
    CHECK(runs("100f-real", 103));
    CHECK_FALSE(runs("100f-real", 120));
    CHECK(runs("100f-virtual", 103));
    CHECK_FALSE(runs("100f-virtual", 120));
    CHECK(runs("native", 75));  // "native" contains no number of an architecture
    CHECK(cuda::kernel_obstacle(kUsual, 75, 13020, 13020) ==
          "its compute capability is 7.5, but this program was compiled only for 8.0 to 8.9, 9.0 to 9.9, "
          "10.0 to 10.9, 12.0 to 12.9, 12.0 and newer");
  }

  TEST_CASE("creating a context on a GPU for which there are no kernels is an error") {
    const OtherMachine machine({.oddities = {{1, {.capability = 75}}}});
    CHECK(refusal_of(0) == "");
    const std::string why = refusal_of(1);
    CHECK(contains(why, "gpu:1 (Emulated GPU) cannot run this program: its compute capability is 7.5, but "));
    CHECK(gpu_obstacle(0) == "");
    CHECK(contains(gpu_obstacle(1), "7.5"));
  }

  TEST_CASE("creating a context on a GPU whose driver is too old for the PTX is an error") {
    const OtherMachine machine({.oddities = {{1, {.capability = 100}}}, .driver = CUDART_VERSION - 1000});
    CHECK(refusal_of(0) == "");
    const std::string why = refusal_of(1);
    CHECK(contains(why, "gpu:1 (Emulated GPU)"));
    CHECK(contains(why, "the driver has to compile"));
  }

  TEST_CASE("a GPU that cannot be used is listed with the reason") {
    const OtherMachine machine({.devices = 4,
                                .oddities = {{0, {.capability = 75}},
                                             {1, {.set_device = cudaErrorDevicesUnavailable}},
                                             {2, {.memory_info = cudaErrorLaunchFailure}}}});
    const std::vector<GpuInfo> gpus = list_gpus();
    REQUIRE(gpus.size() == 4);
    CHECK(contains(gpus[0].problem, "7.5"));
    CHECK(contains(gpus[1].problem, "selecting a GPU failed: CUDA error "));
    CHECK(contains(gpus[2].problem, "querying the free memory failed: CUDA error "));
    CHECK(gpus[3].problem == "");
    CHECK(gpus[3].memory_free > 0);
    CHECK(gpus[3].peers == std::vector<int>{0, 1, 2});
    for (const GpuInfo& gpu : gpus) CHECK(gpu.name == "Emulated GPU");
    CHECK(gpu_report().gpus.size() == 4);
  }
}

}  // namespace dtrain
