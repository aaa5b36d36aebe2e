// Information from NVIDIA's management library about the emulated GPUs; tests/app/fake_nvml.c replaces the
// library.
#include "device/nvml.h"

#include <dlfcn.h>

#include <doctest/doctest.h>

#include "device/gpu_info.h"
#include "emulation/other_machine.h"

namespace dtrain {
namespace {

/// While this object exists, dlopen() finds the fake library under the name of NVIDIA's library.
class FakeNvml {
 public:
  FakeNvml() : library_(dlopen(DTRAIN_FAKE_NVML, RTLD_NOW | RTLD_LOCAL)) { REQUIRE(library_); }
  ~FakeNvml() {
    split(false);
    dlclose(library_);
  }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  void split(bool is) const { *static_cast<bool*>(dlsym(library_, "fake_nvml_is_split")) = is; }

 private:
  void* library_;
};

constexpr uint64_t kMiB = 1 << 20;

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("PCI addresses are parsed") {
    CHECK(pci_id(0, 0xc1, 0) == "0000:c1:00.0");
    CHECK(normalized_pci_id("00000000:C1:1f.0") == "0000:c1:1f.0");
    CHECK(normalized_pci_id("0000:0A:00.0") == "0000:0a:00.0");
    CHECK(normalized_pci_id("") == "");
  }

  TEST_CASE("GPUs are listed with the memory that NVML reports, without creating a CUDA context") {
    const FakeNvml nvml;
    const emulation::OtherMachine machine({.oddities = {{1, {.set_device = cudaErrorDevicesUnavailable}}}});
    const GpuReport report = gpu_report();
    CHECK(emulation::contexts().empty());
    CHECK(report.driver == "580.1");
    REQUIRE(report.gpus.size() == 2);
    CHECK(report.gpus[0].pci == "0000:40:00.0");
    CHECK(report.gpus[0].memory_free == 600 * kMiB);
    CHECK(report.gpus[1].memory_free == 700 * kMiB);
    CHECK(report.gpus[1].memory_for_run == 188 * kMiB);
    CHECK(report.gpus[1].memory_total == 1024 * kMiB);
    CHECK(report.gpus[1].problem == "");
    CHECK(report.gpus[0].uuid == "GPU-10101010-1010-1010-1010-101010101010");
  }

  TEST_CASE("a MIG instance is listed instead of its GPU") {
    const FakeNvml nvml;
    nvml.split(true);
    const emulation::OtherMachine machine({});
    const std::vector<GpuInfo> gpus = list_gpus();
    REQUIRE(gpus.size() == 2);
    CHECK(gpus[0].uuid == "MIG-10101010-1010-1010-1010-101010101010");
    CHECK(gpus[0].memory_total == 100 * kMiB);
    CHECK(gpus[1].uuid == "GPU-11111111-1111-1111-1111-111111111111");
    CHECK(gpus[1].memory_total == 1024 * kMiB);
  }

  TEST_CASE("GPUs that CUDA sees have CUDA's indices, and other GPUs have none") {
    const FakeNvml nvml;
    const emulation::OtherMachine machine({});
    const std::vector<GpuLoad> loads = GpuWatch().look();
    REQUIRE(loads.size() == 3);
    CHECK(loads[0].index == 1);
    CHECK(loads[1].index == 0);
    CHECK(loads[2].index == std::nullopt);
    CHECK(loads[2].pci == "0000:c1:00.0");
    CHECK(loads[1].memory_used == 424 * kMiB);
    CHECK(emulation::contexts().empty());
  }
}

}  // namespace dtrain
