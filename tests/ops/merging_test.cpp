// Tests merging of arrays and sums of strided elements, by comparison with plain loops.
#include "ops/merging.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fixture.h"

namespace dtrain {
using namespace test;

namespace {

float merged(MergeKind kind, const std::array<float, 3>& values) {
  switch (kind) {
    case MergeKind::subtract:
      return values[0] - values[1];
    case MergeKind::average:
      return (values[0] + values[1] + values[2]) / 3;
    case MergeKind::maximum:
      return std::max({values[0], values[1], values[2]});
    case MergeKind::minimum:
      return std::min({values[0], values[1], values[2]});
  }
  return 0;
}

/// Returns the gradient of values[which] if the gradient of the result is 1.
float gradient(MergeKind kind, const std::array<float, 3>& values, size_t which) {
  if (kind == MergeKind::subtract) return which == 0 ? 1.0f : -1.0f;
  if (kind == MergeKind::average) return 1.0f / 3;
  const float best = merged(kind, values);
  const auto first = static_cast<size_t>(std::find(values.begin(), values.end(), best) - values.begin());
  return first == which ? 1.0f : 0.0f;
}

}  // namespace

DEVICE_TEST_CASE("merging and its gradients match the reference") {
  for (const MergeKind kind :
       {MergeKind::subtract, MergeKind::average, MergeKind::maximum, MergeKind::minimum}) {
    // The second size is not a multiple of the vector size. The values are rounded to few distinct numbers,
    // so that some of them are equal.
    for (const int64_t n : {64, 1003}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(n);
      const size_t count = kind == MergeKind::subtract ? 2 : 3;
      std::array<Floats, 3> values;
      std::vector<TypedArray> arrays;
      std::vector<const void*> sources;
      for (size_t s = 0; s < 3; ++s) {
        values[s] = device.random(n, static_cast<uint32_t>(s + 1));
        for (float& value : values[s]) value = std::round(value * 4);
        if (s < count) arrays.push_back(device.typed(values[s]));
      }
      for (const TypedArray& array : arrays) sources.push_back(array.data());
      const Floats diff = device.random(n, 9);
      const TypedArray dst = device.typed(static_cast<size_t>(n)), own_diff = device.typed(diff);
      device.ops().merge(kind, dst.data(), sources, n);
      Floats expected(static_cast<size_t>(n));
      for (size_t i = 0; i < expected.size(); ++i)
        expected[i] = merged(kind, {values[0][i], values[1][i], values[2][i]});
      check_close(dst.read(), expected, device.tolerance(1e-6));
      for (size_t which = 0; which < count; ++which) {
        device.ops().merge_backward(kind, sources, which, own_diff.data(), dst.data(), n);
        for (size_t i = 0; i < expected.size(); ++i)
          expected[i] = diff[i] * gradient(kind, {values[0][i], values[1][i], values[2][i]}, which);
        check_close(dst.read(), expected, device.tolerance(1e-6));
      }
    }
  }
}

DEVICE_TEST_CASE("merging propagates NaN") {
  for (const MergeKind kind : {MergeKind::average, MergeKind::maximum, MergeKind::minimum}) {
    const TypedArray a = device.typed(Floats{1, NAN, 2}), b = device.typed(Floats{NAN, 3, 4}),
                     dst = device.typed(Floats(3, 0.0f));
    device.ops().merge(kind, dst.data(), std::array<const void*, 2>{a.data(), b.data()}, 3);
    const Floats found = dst.read();
    CHECK(std::isnan(found[0]));
    CHECK(std::isnan(found[1]));
    CHECK_FALSE(std::isnan(found[2]));
  }
}

DEVICE_TEST_CASE("strided sums permute, repeat and sum") {
  const Floats src = device.random(2 * 3 * 4, 5);
  const TypedArray own = device.typed(src), dst = device.typed(Floats(48, 0.0f));
  const auto run = [&](const StridedSum& spec) {
    device.ops().strided_sum(spec, own.data(), dst.data());
    Floats found = dst.read();
    found.resize(static_cast<size_t>(spec.elements()));
    return found;
  };
  const auto at = [&](size_t a, size_t b, size_t c) { return src[(a * 3 + b) * 4 + c]; };
  Floats turned, repeated, summed;
  for (size_t c = 0; c < 4; ++c)
    for (size_t a = 0; a < 2; ++a)
      for (size_t b = 0; b < 3; ++b) turned.push_back(at(a, b, c));
  CHECK(run({.extents = {1, 1, 1, 4, 2, 3}, .strides = {0, 0, 0, 1, 12, 4}}) == turned);
  for (size_t row = 0; row < 6; ++row)
    for (int times = 0; times < 2; ++times)
      for (size_t c = 0; c < 4; ++c) repeated.push_back(src[row * 4 + c]);
  CHECK(run({.extents = {1, 1, 1, 6, 2, 4}, .strides = {0, 0, 0, 4, 0, 1}}) == repeated);
  for (size_t b = 0; b < 3; ++b) {
    float sum = 0;
    for (size_t a = 0; a < 2; ++a)
      for (size_t c = 0; c < 4; ++c) sum += at(a, b, c);
    summed.push_back(sum);
  }
  check_close(run({.extents = {1, 1, 1, 1, 1, 3},
                   .strides = {0, 0, 0, 0, 0, 4},
                   .sum_extents = {2, 4},
                   .sum_strides = {12, 1}}),
              summed, device.tolerance(1e-5));
}

}  // namespace dtrain
