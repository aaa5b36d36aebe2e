// Shared code of the operation tests: runs a test with several configurations of this CPU, and compares
// results.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ops/cpu/cpu_ops.h"
#include "support/devices.h"

namespace dtrain::test {

/// Calls use(device) with one and two threads, and with the kernels of each instruction set that this CPU
/// supports.
template <class Use>
void on_every_cpu(Use&& use) {
  const auto available = available_cores();
  for (const size_t threads : {1, 2}) {
    std::vector<int> cores;
    while (cores.size() < threads) cores.push_back(available[cores.size() % available.size()]);
    for (const cpu::Kernels* kernels : cpu::supported_kernels()) {
      auto context = make_cpu_context({}, cores, false);
      context->attach();
      auto ops = std::make_unique<cpu::CpuOps>(*context, *kernels);
      Device device(kernels->instruction_set, std::move(context), std::move(ops), {});
      CAPTURE(device.context().threads());
      CAPTURE(device.name);
      use(device);
    }
  }
}

inline Doubles doubles_of(const Floats& values) {
  return Doubles(values.begin(), values.end());
}

/// Checks that each value is within `tolerance` of the reference. The tolerance is relative to the reference,
/// or to 1 if that is larger. NaN equals NaN.
template <class Values>
void check_close(const Floats& found, const Values& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  size_t wrong = 0;
  for (size_t i = 0; i < found.size() && wrong < 3; ++i) {
    const double f = static_cast<double>(found[i]), e = static_cast<double>(expected[i]);
    if (f == e || (std::isnan(f) && std::isnan(e))) continue;
    if (std::abs(f - e) <= tolerance * std::max(1.0, std::abs(e))) continue;
    CAPTURE(i);
    CHECK(f == doctest::Approx(e).epsilon(tolerance));
    ++wrong;
  }
  CHECK(wrong == 0);
}

}  // namespace dtrain::test
