// Tests RMS and group normalization. rows_test.cpp tests layer normalization.
#include <algorithm>

#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

double at(const Floats& values, int64_t i) {
  return static_cast<double>(values[static_cast<size_t>(i)]);
}

struct Extent {
  int64_t rows, columns;
};
// The sizes cover rows that fit into the registers of a warp, rows that fit into the registers of a block,
// and longer rows. For some sizes, each memory access loads one element; for others, it loads several.
constexpr Extent kExtents[] = {{1, 1},    {1, 17},    {3, 10},   {10000, 1},
                               {9, 1024}, {2051, 37}, {2, 5001}, {2, 9000}};

struct RmsResults {
  Doubles dst, diff_src, diff_scale;
};

/// Computes the reference results in double precision. If `scale` is empty, every scale is 1.
RmsResults rms_reference(const Extent& extent, const math::InverseNorm& norm, const Floats& x,
                         const Floats& scale, const Floats& dy) {
  RmsResults found{{}, {}, Doubles(static_cast<size_t>(extent.columns))};
  for (int64_t r = 0; r < extent.rows; ++r) {
    const int64_t first = r * extent.columns;
    const auto factor_of = [&](int64_t c) { return scale.empty() ? 1.0 : at(scale, c); };
    double squares = 0, dot = 0;
    for (int64_t c = 0; c < extent.columns; ++c) {
      squares += std::pow(at(x, first + c), 2);
      dot += at(x, first + c) * at(dy, first + c) * factor_of(c);
    }
    const double share = static_cast<double>(norm.share);
    const double inverse = 1 / std::sqrt(squares * share + static_cast<double>(norm.epsilon));
    for (int64_t c = 0; c < extent.columns; ++c) {
      const double value = at(x, first + c), diff = at(dy, first + c);
      found.dst.push_back(value * inverse * factor_of(c));
      found.diff_src.push_back(diff * factor_of(c) * inverse - value * dot * share * std::pow(inverse, 3));
      found.diff_scale[static_cast<size_t>(c)] += diff * value * inverse;
    }
  }
  return found;
}

struct GroupExtent {
  int64_t samples, pixels, channels, groups;
  int64_t elements() const { return samples * pixels * channels; }
};
// The sizes cover groups of one channel, several groups that one pass over the pixels handles together, and
// groups with more channels than one pass handles. For the GPU, they cover memory accesses of 1, 2, 4 and 8
// elements, several groups per block (also with fewer groups in the last block), more groups than blocks, and
// groups that are divided among blocks.
constexpr GroupExtent kGroupExtents[] = {{1, 1, 2, 1},    {3, 5, 6, 3},    {2, 7, 6, 6},     {2, 40, 96, 32},
                                         {3, 1, 150, 2},  {2, 9, 300, 3},  {1, 3000, 4, 2},  {5, 2, 64, 1},
                                         {2, 3, 70, 35},  {70, 6, 40, 10}, {1, 1100, 64, 2}, {1, 3000, 3, 1},
                                         {2, 5, 1200, 1}, {9, 300, 16, 2}};

struct GroupResults {
  Doubles dst, diff_src, diff_gamma, diff_beta;
};

/// Computes the reference results in double precision. If `gamma` is empty, the outputs are neither scaled
/// nor shifted.
GroupResults group_reference(const GroupExtent& extent, const Floats& x, const Floats& gamma,
                             const Floats& beta, const Floats& dy) {
  const auto all = static_cast<size_t>(extent.elements()), channels = static_cast<size_t>(extent.channels);
  GroupResults found{Doubles(all), Doubles(all), Doubles(channels), Doubles(channels)};
  const int64_t width = extent.channels / extent.groups;
  const double n = static_cast<double>(extent.pixels * width);
  for (int64_t group = 0; group < extent.samples * extent.groups; ++group) {
    const int64_t first_channel = group % extent.groups * width,
                  first = group / extent.groups * extent.pixels * extent.channels + first_channel;
    std::vector<std::pair<int64_t, int64_t>> places;  // indices of elements, with their channels
    for (int64_t p = 0; p < extent.pixels; ++p)
      for (int64_t c = 0; c < width; ++c)
        places.emplace_back(first + p * extent.channels + c, first_channel + c);
    double mean = 0, variance = 0, total = 0, dot = 0;
    for (const auto& [i, c] : places) mean += at(x, i) / n;
    for (const auto& [i, c] : places) variance += std::pow(at(x, i) - mean, 2) / n;
    const double inverse = 1 / std::sqrt(variance + 1e-3);
    const auto normal = [&](int64_t i) { return (at(x, i) - mean) * inverse; };
    const auto diff = [&](int64_t i, int64_t c) { return at(dy, i) * (gamma.empty() ? 1 : at(gamma, c)); };
    for (const auto& [i, c] : places) {
      found.dst[static_cast<size_t>(i)] = gamma.empty() ? normal(i) : normal(i) * at(gamma, c) + at(beta, c);
      found.diff_gamma[static_cast<size_t>(c)] += at(dy, i) * normal(i);
      found.diff_beta[static_cast<size_t>(c)] += at(dy, i);
      total += diff(i, c) / n;
      dot += diff(i, c) * normal(i) / n;
    }
    for (const auto& [i, c] : places)
      found.diff_src[static_cast<size_t>(i)] = inverse * (diff(i, c) - total - normal(i) * dot);
  }
  return found;
}

}  // namespace

DEVICE_TEST_CASE("RMS normalization and its gradients match the reference") {
  for (const Extent& extent : kExtents) {
    for (const bool scaled : {true, false}) {
      CAPTURE(extent.rows);
      CAPTURE(extent.columns);
      const math::InverseNorm norm =
          scaled ? math::InverseNorm{.share = 1.0f / static_cast<float>(extent.columns), .epsilon = 1e-3f}
                 : math::InverseNorm{.limit = 1e12f};
      const int64_t elements = extent.rows * extent.columns;
      const Floats x = device.random(elements, 1, 3), dy = device.random(elements, 2),
                   scale = random_floats(scaled ? extent.columns : 0, 3);
      const RmsResults expected = rms_reference(extent, norm, x, scale, dy);
      const TypedArray own_x = device.typed(x), dst = device.typed(x.size()), diff = device.typed(dy);
      const Array<float> own_scale = device.array(scale), diff_scale = device.floats(scale.size()),
                         inverse = device.floats(static_cast<size_t>(extent.rows));
      device.ops().rms_normalization_forward({.src = own_x.data(),
                                              .scale = scaled ? own_scale.data() : nullptr,
                                              .norm = norm,
                                              .dst = dst.data(),
                                              .inverse = inverse.data(),
                                              .rows = extent.rows,
                                              .columns = extent.columns});
      check_close(dst.read(), expected.dst, device.tolerance(1e-5));
      RmsNormalizationBackwardArguments backward{.src = own_x.data(),
                                                 .scale = scaled ? own_scale.data() : nullptr,
                                                 .norm = norm,
                                                 .inverse = inverse.data(),
                                                 .diff_dst = diff.data(),
                                                 .diff_src = nullptr,
                                                 .diff_scale = scaled ? diff_scale.data() : nullptr,
                                                 .rows = extent.rows,
                                                 .columns = extent.columns};
      device.ops().rms_normalization_backward(backward);
      CHECK(diff.read() == dy);
      backward.diff_src = diff.data();
      device.ops().rms_normalization_backward(backward);
      // If a row has only one element, the two terms of its gradient cancel. The rounding error is then
      // relative to the size of the terms, which is the factor of the row.
      double greatest = 1;
      for (const float factor : inverse.read()) greatest = std::max(greatest, static_cast<double>(factor));
      check_close(diff.read(), expected.diff_src, device.tolerance(3e-5) * greatest);
      if (scaled) check_close(diff_scale.read(), expected.diff_scale, 3e-5);
    }
  }
}

DEVICE_TEST_CASE("group normalization and its gradients match the reference") {
  for (const GroupExtent& extent : kGroupExtents) {
    for (const bool scaled : {true, false}) {
      CAPTURE(extent.samples);
      CAPTURE(extent.pixels);
      CAPTURE(extent.channels);
      const Floats x = device.random(extent.elements(), 1, 3), dy = device.random(extent.elements(), 2);
      const int64_t parameters = scaled ? extent.channels : 0;
      const Floats gamma = random_floats(parameters, 3), beta = random_floats(parameters, 4);
      const GroupResults expected = group_reference(extent, x, gamma, beta, dy);
      const TypedArray own_x = device.typed(x), dst = device.typed(x.size()), diff = device.typed(dy);
      const Array<float> own_gamma = device.array(gamma), own_beta = device.array(beta);
      const auto groups = static_cast<size_t>(extent.samples * extent.groups);
      const Array<float> mean = device.floats(groups), inverse = device.floats(groups),
                         diff_gamma = device.floats(gamma.size()), diff_beta = device.floats(gamma.size());
      device.ops().group_normalization_forward({.src = own_x.data(),
                                                .gamma = scaled ? own_gamma.data() : nullptr,
                                                .beta = scaled ? own_beta.data() : nullptr,
                                                .epsilon = 1e-3f,
                                                .dst = dst.data(),
                                                .mean = mean.data(),
                                                .inverse_deviation = inverse.data(),
                                                .samples = extent.samples,
                                                .pixels = extent.pixels,
                                                .channels = extent.channels,
                                                .groups = extent.groups});
      check_close(dst.read(), expected.dst, device.tolerance(1e-5));
      GroupNormalizationBackwardArguments backward{.src = own_x.data(),
                                                   .gamma = scaled ? own_gamma.data() : nullptr,
                                                   .mean = mean.data(),
                                                   .inverse_deviation = inverse.data(),
                                                   .diff_dst = diff.data(),
                                                   .diff_src = nullptr,
                                                   .diff_gamma = scaled ? diff_gamma.data() : nullptr,
                                                   .diff_beta = scaled ? diff_beta.data() : nullptr,
                                                   .samples = extent.samples,
                                                   .pixels = extent.pixels,
                                                   .channels = extent.channels,
                                                   .groups = extent.groups};
      device.ops().group_normalization_backward(backward);
      CHECK(diff.read() == dy);
      backward.diff_src = diff.data();
      device.ops().group_normalization_backward(backward);
      // If the elements of a group are nearly equal, the terms of the gradient cancel. The rounding error is
      // then relative to the size of the terms, which is the factor of the group.
      double greatest = 1;
      for (const float factor : inverse.read()) greatest = std::max(greatest, static_cast<double>(factor));
      check_close(diff.read(), expected.diff_src, device.tolerance(3e-5) * greatest);
      if (!scaled) continue;
      check_close(diff_gamma.read(), expected.diff_gamma, 3e-5);
      check_close(diff_beta.read(), expected.diff_beta, 3e-5);
    }
  }
}

DEVICE_TEST_CASE("group normalization of large values keeps their differences") {
  const int64_t pixels = 1000;
  Floats x;
  for (int64_t i = 0; i < pixels; ++i)
    x.push_back(static_cast<float>(device.is_gpu() ? 100 + i % 2 : 1000000 + i % 2));
  const TypedArray src = device.typed(x), dst = device.typed(x.size());
  const Array<float> mean = device.floats(1), inverse = device.floats(1);
  device.ops().group_normalization_forward({.src = src.data(),
                                            .gamma = nullptr,
                                            .beta = nullptr,
                                            .epsilon = 1e-6f,
                                            .dst = dst.data(),
                                            .mean = mean.data(),
                                            .inverse_deviation = inverse.data(),
                                            .samples = 1,
                                            .pixels = pixels,
                                            .channels = 1,
                                            .groups = 1});
  Doubles expected;
  for (int64_t i = 0; i < pixels; ++i) expected.push_back(i % 2 ? 1 : -1);
  check_close(dst.read(), expected, 1e-3);
}

}  // namespace dtrain::test
