// Helpers for tests of losses and metrics: an output of 4 rows and 3 columns, and targets for it.
#pragma once

#include <string>
#include <vector>

#include "support/kinds.h"
#include "support/layer_run.h"

namespace dtrain::test {

inline constexpr int64_t kRows = 4, kColumns = 3;

/// A device and targets that tests may change.
struct Bench {
  explicit Bench(Device& on) : device(on) {}

  Device& device;
  std::vector<int32_t> classes = {2, 0, 1, 1};
  Values dense;
  // The device memory of the view that was returned last.
  Array<int32_t> own_classes = {};
  Array<float> own_dense = {};

  View sparse() {
    own_classes = device.array(classes);
    return {own_classes.data(), {kRows}, DType::int32};
  }
  View floats() {
    own_dense = device.array(dense);
    return {own_dense.data(), {kRows, kColumns}, DType::float32};
  }
};

/// Returns rows of probabilities. Each row sums to 1, except for the rounding to the device's compute type.
inline Values probabilities(const Bench& bench) {
  return bench.device.kept({0.2f, 0.3f, 0.5f, 0.7f, 0.1f, 0.2f, 0.05f, 0.9f, 0.05f, 0.3f, 0.3f, 0.4f});
}

}  // namespace dtrain::test
