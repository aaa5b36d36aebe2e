// What the tests of the operations share: every way in which this CPU can run them, data, and comparisons.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/philox.h"
#include "device/device.h"
#include "ops/cpu/cpu_ops.h"

namespace dtrain::test {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// use(ops) with one thread and two, and with each instruction set's kernels that this CPU has.
template <class Use>
void on_every_cpu(Use&& use) {
  const auto available = available_cores();
  for (const size_t threads : {1, 2}) {
    std::vector<int> cores;
    while (cores.size() < threads) cores.push_back(available[cores.size() % available.size()]);
    const auto context = make_cpu_context({}, cores, false);
    context->attach();
    for (const cpu::Kernels* kernels : cpu::supported_kernels()) {
      CAPTURE(context->threads());
      CAPTURE(std::string(kernels->instruction_set));
      cpu::CpuOps ops(*context, *kernels);
      use(ops);
    }
  }
}

/// Uniform in [-1, 1), the same for the same seed.
inline Floats random_floats(int64_t n, uint64_t seed, float scale = 1) {
  const Philox random = Philox::of(seed, 0);
  Floats values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = scale * (2 * uniform01(random(0, i).v[0]) - 1);
  return values;
}

inline Doubles doubles_of(const Floats& values) {
  return Doubles(values.begin(), values.end());
}

/// Each value within `tolerance` of the reference, relative to the larger of 1 and it. NaN equals NaN.
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

/// Scratch and saved memory of a prepared operation.
struct Workspace {
  explicit Workspace(cpu::CpuOps& ops, size_t bytes) : buffer(ops.context().allocate(bytes)) {}
  Buffer buffer;
  void* data() const { return buffer.data(); }
};

}  // namespace dtrain::test
