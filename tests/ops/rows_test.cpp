#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

struct Extent {
  int64_t rows, columns;
  int64_t elements() const { return rows * columns; }
};

// The sizes cover: more rows than a GPU processes at once; rows of several columns whose number is so large
// that the rows are summed in parts; rows that fit into the registers of a warp, rows that fit into the
// registers of a block, and longer rows. For some sizes, each memory access loads one element; for others, it
// loads several.
constexpr Extent kExtents[] = {{1, 1},    {1, 17},   {3, 10},   {10000, 1}, {9, 1024}, {2051, 37},
                               {64, 300}, {2, 5000}, {40, 768}, {4, 333},   {2, 5001}, {2, 9000}};

size_t at(const Extent& extent, int64_t r, int64_t c) {
  return static_cast<size_t>(r * extent.columns + c);
}

}  // namespace

DEVICE_TEST_CASE("bias and its gradient match the reference") {
  for (const Extent& extent : kExtents) {
    CAPTURE(extent.rows);
    CAPTURE(extent.columns);
    device.shift = extent.rows % 2 ? 1 : 0;
    const Floats src = device.random(extent.elements(), 1), bias = device.random(extent.columns, 2);
    Doubles expected(src.size()), expected_sums(bias.size());
    for (int64_t r = 0; r < extent.rows; ++r) {
      for (int64_t c = 0; c < extent.columns; ++c) {
        const double x = static_cast<double>(src[at(extent, r, c)]);
        expected[at(extent, r, c)] = x + static_cast<double>(bias[static_cast<size_t>(c)]);
        expected_sums[static_cast<size_t>(c)] += x;
      }
    }
    const TypedArray own_src = device.typed(src), own_bias = device.typed(bias),
                     dst = device.typed(src.size());
    device.ops().add_bias(dst.data(), own_src.data(), own_bias.data(), extent.rows, extent.columns);
    check_close(dst.read(), expected, device.tolerance(1e-6));
    const Array<float> sums = device.floats(bias.size()), again = device.floats(bias.size());
    device.ops().column_sum(sums.data(), own_src.data(), extent.rows, extent.columns);
    check_close(sums.read(), expected_sums, 2e-5);
    device.ops().column_sum(again.data(), own_src.data(), extent.rows, extent.columns);
    CHECK(again.read() == sums.read());
  }
}

DEVICE_TEST_CASE("softmax and its gradient match the reference") {
  for (const Extent& extent : kExtents) {
    CAPTURE(extent.rows);
    CAPTURE(extent.columns);
    Floats x = device.random(extent.elements(), 1, 5);
    x[0] = 100;
    x.back() = -100;
    const Floats dy = device.random(extent.elements(), 2);
    Doubles expected(x.size()), expected_diff(x.size());
    for (int64_t r = 0; r < extent.rows; ++r) {
      double total = 0, dot = 0;
      for (int64_t c = 0; c < extent.columns; ++c)
        total += std::exp(static_cast<double>(x[at(extent, r, c)]));
      for (int64_t c = 0; c < extent.columns; ++c) {
        const size_t i = at(extent, r, c);
        expected[i] = std::exp(static_cast<double>(x[i])) / total;
        dot += expected[i] * static_cast<double>(dy[i]);
      }
      for (int64_t c = 0; c < extent.columns; ++c) {
        const size_t i = at(extent, r, c);
        expected_diff[i] = expected[i] * (static_cast<double>(dy[i]) - dot);
      }
    }
    const TypedArray y = device.typed(x), dx = device.typed(dy);
    device.ops().softmax_forward(y.data(), y.data(), extent.rows, extent.columns);
    check_close(y.read(), expected, device.tolerance(1e-6));
    device.ops().softmax_backward(y.data(), dx.data(), dx.data(), extent.rows, extent.columns);
    check_close(dx.read(), expected_diff, device.tolerance(1e-6, 3));
  }
}

namespace {

/// Reference results of layer normalization in double precision. If there is no gamma, the outputs are
/// neither scaled nor shifted.
struct Normalized {
  Doubles dst, diff_src, diff_gamma, diff_beta;
};

Normalized reference(const Extent& extent, const Floats& x, const Floats& gamma, const Floats& beta,
                     const Floats& dy) {
  const double n = static_cast<double>(extent.columns), epsilon = 1e-3;
  const bool scaled = !gamma.empty();
  const auto columns = static_cast<size_t>(extent.columns);
  Normalized found{Doubles(x.size()), Doubles(x.size()), Doubles(columns), Doubles(columns)};
  for (int64_t r = 0; r < extent.rows; ++r) {
    double mean = 0, variance = 0, total = 0, dot = 0;
    for (int64_t c = 0; c < extent.columns; ++c) mean += static_cast<double>(x[at(extent, r, c)]) / n;
    for (int64_t c = 0; c < extent.columns; ++c) {
      variance += std::pow(static_cast<double>(x[at(extent, r, c)]) - mean, 2) / n;
    }
    const double inverse = 1 / std::sqrt(variance + epsilon);
    const auto normal = [&](int64_t c) {
      return (static_cast<double>(x[at(extent, r, c)]) - mean) * inverse;
    };
    const auto diff = [&](int64_t c) {
      return static_cast<double>(dy[at(extent, r, c)]) *
             (scaled ? static_cast<double>(gamma[static_cast<size_t>(c)]) : 1);
    };
    for (int64_t c = 0; c < extent.columns; ++c) {
      const auto column = static_cast<size_t>(c);
      found.dst[at(extent, r, c)] = normal(c) * (scaled ? static_cast<double>(gamma[column]) : 1) +
                                    (scaled ? static_cast<double>(beta[column]) : 0);
      total += diff(c) / n;
      dot += diff(c) * normal(c) / n;
      found.diff_gamma[column] += static_cast<double>(dy[at(extent, r, c)]) * normal(c);
      found.diff_beta[column] += static_cast<double>(dy[at(extent, r, c)]);
    }
    for (int64_t c = 0; c < extent.columns; ++c) {
      found.diff_src[at(extent, r, c)] = inverse * (diff(c) - total - normal(c) * dot);
    }
  }
  return found;
}

}  // namespace

DEVICE_TEST_CASE("layer normalization and its gradients match the reference") {
  for (const Extent& extent : kExtents) {
    for (const bool scaled : {true, false}) {
      CAPTURE(extent.rows);
      CAPTURE(extent.columns);
      const Floats x = device.random(extent.elements(), 1, 3), dy = device.random(extent.elements(), 2);
      const Floats gamma = random_floats(scaled ? extent.columns : 0, 3),
                   beta = random_floats(scaled ? extent.columns : 0, 4);
      const Normalized expected = reference(extent, x, gamma, beta, dy);

      const TypedArray own_x = device.typed(x), dst = device.typed(x.size()), diff = device.typed(dy);
      const Array<float> own_gamma = device.array(gamma), own_beta = device.array(beta);
      const Array<float> mean = device.floats(static_cast<size_t>(extent.rows)),
                         inverse = device.floats(static_cast<size_t>(extent.rows)),
                         diff_gamma = device.floats(gamma.size()), diff_beta = device.floats(gamma.size());
      device.ops().layer_normalization_forward({.src = own_x.data(),
                                                .gamma = scaled ? own_gamma.data() : nullptr,
                                                .beta = scaled ? own_beta.data() : nullptr,
                                                .epsilon = 1e-3f,
                                                .dst = dst.data(),
                                                .mean = mean.data(),
                                                .inverse_deviation = inverse.data(),
                                                .rows = extent.rows,
                                                .columns = extent.columns});
      check_close(dst.read(), expected.dst, device.tolerance(1e-5));
      device.ops().layer_normalization_backward({.src = own_x.data(),
                                                 .gamma = scaled ? own_gamma.data() : nullptr,
                                                 .mean = mean.data(),
                                                 .inverse_deviation = inverse.data(),
                                                 .diff_dst = diff.data(),
                                                 .diff_src = diff.data(),
                                                 .diff_gamma = scaled ? diff_gamma.data() : nullptr,
                                                 .diff_beta = scaled ? diff_beta.data() : nullptr,
                                                 .rows = extent.rows,
                                                 .columns = extent.columns});
      check_close(diff.read(), expected.diff_src, device.tolerance(3e-5));
      if (!scaled) continue;
      check_close(diff_gamma.read(), expected.diff_gamma, 3e-5);
      check_close(diff_beta.read(), expected.diff_beta, 3e-5);
    }
  }
}

DEVICE_TEST_CASE("copy_block() copies rows into a wider array") {
  // For different widths, copy_block() copies units of different sizes.
  for (const size_t width : {5, 8, 64}) {
    for (const size_t before : {2, 8}) {
      CAPTURE(width);
      CAPTURE(before);
      const size_t stride = before + width + 8;
      const Floats src = device.random(static_cast<int64_t>(6 * width), 1);
      const TypedArray own_src = device.typed(src), dst = device.typed(Floats(6 * stride, -1));
      device.ops().copy_block(dst.from(before), static_cast<int64_t>(stride), own_src.data(),
                              static_cast<int64_t>(width), 6, static_cast<int64_t>(width));
      Floats expected(6 * stride, -1);
      for (size_t r = 0; r < 6; ++r)
        std::copy_n(src.begin() + static_cast<long>(r * width), width,
                    expected.begin() + static_cast<long>(r * stride + before));
      CHECK(dst.read() == expected);
    }
  }
}

DEVICE_TEST_CASE("padding and cropping of images match the reference") {
  for (const size_t channels : {5, 8}) {
    const Padding2 padding{1, 2, 3, 0};
    const Shape shape{2, 3, 4, static_cast<int64_t>(channels)};
    const Floats images = device.random(shape.elements(), 2);
    Floats expected(2 * 6 * 7 * channels);
    for (size_t n = 0, i = 0; n < 2; ++n) {
      for (size_t y = 0; y < 6; ++y) {
        for (size_t x = 0; x < 7; ++x) {
          for (size_t c = 0; c < channels; ++c, ++i) {
            const bool inside = y >= 1 && y < 4 && x >= 3;
            expected[i] = inside ? images[((n * 3 + y - 1) * 4 + x - 3) * channels + c] : 0;
          }
        }
      }
    }
    const TypedArray own = device.typed(images), padded = device.typed(expected.size()),
                     cropped = device.typed(images.size());
    device.ops().pad_images(padding, own.data(), padded.data(), shape);
    CHECK(padded.read() == expected);
    device.ops().crop_images(padding, padded.data(), cropped.data(), shape);
    CHECK(cropped.read() == images);
  }
}

DEVICE_TEST_CASE("embeddings and their gradients match the reference") {
  for (const int64_t columns : {1, 10, 300}) {
    const int64_t rows = 7, n = 400;
    const Floats table = random_floats(rows * columns, 1), diff = device.random(n * columns, 2);
    std::vector<int32_t> indices(static_cast<size_t>(n));
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i * i % 7);
    indices[3] = -1;
    indices[4] = 7;
    Floats expected(diff.size(), NAN);
    Doubles expected_diff(table.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0 || indices[i] >= rows) continue;
      for (int64_t c = 0; c < columns; ++c) {
        const size_t from = static_cast<size_t>(indices[i] * columns + c),
                     to = i * static_cast<size_t>(columns) + static_cast<size_t>(c);
        expected[to] = table[from];
        expected_diff[from] += static_cast<double>(diff[to]);
      }
    }
    const Array<float> own_table = device.array(table), found = device.floats(table.size());
    const auto own_indices = device.array(indices);
    const TypedArray own_diff = device.typed(diff), dst = device.typed(diff.size());
    device.ops().embedding_forward(own_table.data(), own_indices.data(), dst.data(), n, rows, columns);
    check_close(dst.read(), device.kept(expected), 0);
    device.ops().embedding_backward(own_indices.data(), own_diff.data(), found.data(), n, rows, columns);
    check_close(found.read(), expected_diff, 1e-5);
  }
}

}  // namespace dtrain::test
