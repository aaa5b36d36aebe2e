// Tests operations on masks of sequences.
#include "ops/fixture.h"

namespace dtrain {
using namespace test;

namespace {

const std::vector<uint8_t> kMask = {1, 0, 1, 0, 0, 0, 1, 1, 1};  // three sequences of three steps

}  // namespace

DEVICE_TEST_CASE("a mask of indices marks those that are not 0") {
  const Array<int32_t> indices = device.array(std::vector<int32_t>{0, 5, -1, 0, 7});
  const Array<uint8_t> mask = device.array(std::vector<uint8_t>(5, 9));
  device.ops().mask_of_indices(indices.data(), mask.data(), 5);
  CHECK(mask.read() == std::vector<uint8_t>{0, 1, 1, 0, 1});
}

DEVICE_TEST_CASE("masked rows are those whose elements all have the value") {
  const Floats src = {2, 2, 2, 2, 1, 2, 0, 0, 0, 2, 2, 3};
  const TypedArray from = device.typed(src), dst = device.typed(src.size());
  const Array<uint8_t> mask = device.array(std::vector<uint8_t>(4, 9));
  device.ops().mask_rows(from.data(), 2, dst.data(), mask.data(), 4, 3);
  CHECK(mask.read() == std::vector<uint8_t>{0, 1, 1, 1});
  CHECK(dst.read() == Floats{0, 0, 0, 2, 1, 2, 0, 0, 0, 2, 2, 3});
  // Tests apply_mask() in place. The masked row has an infinite value.
  const TypedArray values = device.typed({1, INFINITY, 3, 4});
  const Array<uint8_t> second = device.array(std::vector<uint8_t>{0, 1});
  device.ops().apply_mask(values.data(), second.data(), values.data(), 2, 2);
  CHECK(values.read() == Floats{0, 0, 3, 4});
}

DEVICE_TEST_CASE("a masked average leaves masked steps out, and is 0 if all are masked") {
  const MaskedAverageSpec spec{3, 3, 2};
  Floats src = device.random(18, 1);
  src[2] = NAN;  // an element of a masked step
  const TypedArray from = device.typed(src), dst = device.typed(6), diff = device.typed(device.random(6, 2)),
                   diff_src = device.typed(18);
  const Array<uint8_t> mask = device.array(kMask);
  device.ops().masked_average(spec, from.data(), mask.data(), dst.data());
  device.ops().masked_average_backward(spec, mask.data(), diff.data(), diff_src.data());
  const Floats diff_dst = diff.read();
  Doubles expected, gradient;
  for (size_t sample = 0; sample < 3; ++sample) {
    double count = 0;
    for (size_t t = 0; t < 3; ++t) count += kMask[sample * 3 + t];
    for (size_t i = 0; i < 2; ++i) {
      double sum = 0;
      for (size_t t = 0; t < 3; ++t)
        if (kMask[sample * 3 + t]) sum += src[(sample * 3 + t) * 2 + i];
      expected.push_back(count > 0 ? sum / count : 0);
    }
    for (size_t t = 0; t < 3; ++t)
      for (size_t i = 0; i < 2; ++i)
        gradient.push_back(kMask[sample * 3 + t] ? diff_dst[sample * 2 + i] / count : 0);
  }
  check_close(dst.read(), expected, device.tolerance(1e-6, 2));
  check_close(diff_src.read(), gradient, device.tolerance(1e-6, 2));
}

DEVICE_TEST_CASE("a masked average of many steps leaves masked steps out") {
  const int64_t samples = 5, features = 3;
  for (const int64_t steps : {4, 7, 130}) {
    CAPTURE(steps);
    Floats src = device.random(samples * steps * features, 1);
    std::vector<uint8_t> mask;
    for (int64_t row = 0; row < samples * steps; ++row) {
      mask.push_back(row % 3 == 1 || row / steps == 2 ? 0 : 1);
      if (!mask.back()) std::fill_n(src.begin() + row * features, features, NAN);
    }
    Doubles expected;
    for (int64_t sample = 0; sample < samples; ++sample) {
      for (int64_t i = 0; i < features; ++i) {
        double sum = 0, count = 0;
        for (int64_t row = sample * steps; row < (sample + 1) * steps; ++row) {
          if (!mask[static_cast<size_t>(row)]) continue;
          sum += static_cast<double>(src[static_cast<size_t>(row * features + i)]);
          count += 1;
        }
        expected.push_back(count > 0 ? sum / count : 0);
      }
    }
    const TypedArray from = device.typed(src), dst = device.typed(expected.size());
    const Array<uint8_t> own_mask = device.array(mask);
    device.ops().masked_average({samples, steps, features}, from.data(), own_mask.data(), dst.data());
    check_close(dst.read(), expected, device.tolerance(1e-5, 2));
  }
}

DEVICE_TEST_CASE("row weights are 0 where a mask is 0") {
  const Array<uint8_t> mask = device.array(std::vector<uint8_t>{1, 0, 0, 1});
  const Array<float> weights = device.array(Floats{2, 3}), dst = device.floats(8);
  device.ops().mask_weights({.weights = weights.data(),
                             .per_weight = 4,
                             .mask = mask.data(),
                             .per_mask = 2,
                             .dst = dst.data(),
                             .n = 8});
  CHECK(dst.read() == Floats{2, 2, 0, 0, 0, 0, 3, 3});
  device.ops().mask_weights({.mask = mask.data(), .dst = dst.data(), .n = 4});
  const Floats of_mask = dst.read();
  CHECK(Floats(of_mask.begin(), of_mask.begin() + 4) == Floats{1, 0, 0, 1});
}

}  // namespace dtrain
