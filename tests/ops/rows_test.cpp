#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

struct Extent {
  int64_t rows, columns;
  int64_t elements() const { return rows * columns; }
};

constexpr Extent kExtents[] = {{1, 1},    {1, 17},    {3, 10},   {20000, 1},
                               {9, 1024}, {1001, 37}, {64, 300}, {2, 5000}};

size_t at(const Extent& extent, int64_t r, int64_t c) {
  return static_cast<size_t>(r * extent.columns + c);
}

}  // namespace

TEST_CASE("bias and its gradient") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const Extent& extent : kExtents) {
      CAPTURE(extent.rows);
      CAPTURE(extent.columns);
      const Floats src = random_floats(extent.elements(), 1), bias = random_floats(extent.columns, 2);
      Floats dst(src.size()), sums(bias.size(), 9);
      Doubles expected(src.size()), expected_sums(bias.size());
      for (int64_t r = 0; r < extent.rows; ++r) {
        for (int64_t c = 0; c < extent.columns; ++c) {
          const double x = static_cast<double>(src[at(extent, r, c)]);
          expected[at(extent, r, c)] = x + static_cast<double>(bias[static_cast<size_t>(c)]);
          expected_sums[static_cast<size_t>(c)] += x;
        }
      }
      ops.add_bias(dst.data(), src.data(), bias.data(), extent.rows, extent.columns);
      check_close(dst, expected, 1e-6);
      ops.column_sum(sums.data(), src.data(), extent.rows, extent.columns);
      check_close(sums, expected_sums, 2e-5);
      Floats again(sums.size());
      ops.column_sum(again.data(), src.data(), extent.rows, extent.columns);
      CHECK(again == sums);
    }
  });
}

TEST_CASE("softmax") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const Extent& extent : kExtents) {
      Floats x = random_floats(extent.elements(), 1, 5);
      x[0] = 100;
      x.back() = -100;
      const Floats dy = random_floats(extent.elements(), 2);
      Floats y = x, dx = dy;
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
      ops.softmax_forward(y.data(), y.data(), extent.rows, extent.columns);
      check_close(y, expected, 1e-6);
      ops.softmax_backward(y.data(), dx.data(), dx.data(), extent.rows, extent.columns);
      check_close(dx, expected_diff, 1e-6);
    }
  });
}

TEST_CASE("layer normalisation") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const Extent& extent : kExtents) {
      for (const bool scaled : {true, false}) {
        CAPTURE(extent.rows);
        CAPTURE(extent.columns);
        const Floats x = random_floats(extent.elements(), 1, 3), dy = random_floats(extent.elements(), 2);
        const Floats gamma = random_floats(extent.columns, 3), beta = random_floats(extent.columns, 4);
        const double n = static_cast<double>(extent.columns), epsilon = 1e-3;
        Doubles y(x.size()), dx(x.size()), dgamma(gamma.size()), dbeta(gamma.size());
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
            y[at(extent, r, c)] = normal(c) * (scaled ? static_cast<double>(gamma[column]) : 1) +
                                  (scaled ? static_cast<double>(beta[column]) : 0);
            total += diff(c) / n;
            dot += diff(c) * normal(c) / n;
            dgamma[column] += static_cast<double>(dy[at(extent, r, c)]) * normal(c);
            dbeta[column] += static_cast<double>(dy[at(extent, r, c)]);
          }
          for (int64_t c = 0; c < extent.columns; ++c) {
            dx[at(extent, r, c)] = inverse * (diff(c) - total - normal(c) * dot);
          }
        }
        Floats found(x.size()), mean(static_cast<size_t>(extent.rows)), inverse(mean.size());
        Floats found_dgamma(gamma.size()), found_dbeta(gamma.size()), found_dx = dy;
        ops.layer_normalization_forward(x.data(), scaled ? gamma.data() : nullptr,
                                        scaled ? beta.data() : nullptr, 1e-3f, found.data(), mean.data(),
                                        inverse.data(), extent.rows, extent.columns);
        check_close(found, y, 1e-5);
        ops.layer_normalization_backward(x.data(), scaled ? gamma.data() : nullptr, mean.data(),
                                         inverse.data(), found_dx.data(), found_dx.data(),
                                         scaled ? found_dgamma.data() : nullptr,
                                         scaled ? found_dbeta.data() : nullptr, extent.rows, extent.columns);
        check_close(found_dx, dx, 3e-5);
        if (!scaled) continue;
        check_close(found_dgamma, dgamma, 3e-5);
        check_close(found_dbeta, dbeta, 3e-5);
      }
    }
  });
}

TEST_CASE("blocks, padding and cropping") {
  on_every_cpu([](cpu::CpuOps& ops) {
    const Floats src = random_floats(6 * 5, 1);
    Floats dst(6 * 9, -1);
    ops.copy_block(dst.data() + 2, 9, src.data(), 5, 6, 5);
    for (size_t r = 0; r < 6; ++r) {
      for (size_t c = 0; c < 9; ++c) CHECK(dst[r * 9 + c] == (c >= 2 && c < 7 ? src[r * 5 + c - 2] : -1));
    }

    const Padding2 padding{1, 2, 3, 0};
    const Shape shape{2, 3, 4, 5};
    const Floats images = random_floats(shape.elements(), 2);
    Floats padded(2 * 6 * 7 * 5, -1), cropped(images.size());
    ops.pad_images(padding, images.data(), padded.data(), shape);
    for (size_t n = 0, i = 0; n < 2; ++n) {
      for (size_t y = 0; y < 6; ++y) {
        for (size_t x = 0; x < 7; ++x) {
          for (size_t c = 0; c < 5; ++c, ++i) {
            const bool inside = y >= 1 && y < 4 && x >= 3;
            CHECK(padded[i] == (inside ? images[((n * 3 + y - 1) * 4 + x - 3) * 5 + c] : 0));
          }
        }
      }
    }
    ops.crop_images(padding, padded.data(), cropped.data(), shape);
    CHECK(cropped == images);
  });
}

TEST_CASE("embeddings") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const int64_t columns : {1, 10, 300}) {
      const int64_t rows = 7, n = 400;
      const Floats table = random_floats(rows * columns, 1), diff = random_floats(n * columns, 2);
      std::vector<int32_t> indices(static_cast<size_t>(n));
      for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i * i % 7);
      indices[3] = -1;
      indices[4] = 7;
      Floats dst(diff.size()), found(table.size(), 5);
      Doubles expected(table.size());
      ops.embedding_forward(table.data(), indices.data(), dst.data(), n, rows, columns);
      for (size_t i = 0; i < indices.size(); ++i) {
        for (int64_t c = 0; c < columns; ++c) {
          const float value = dst[i * static_cast<size_t>(columns) + static_cast<size_t>(c)];
          if (indices[i] < 0 || indices[i] >= rows) {
            CHECK(std::isnan(value));
            continue;
          }
          const auto of_table = static_cast<size_t>(indices[i] * columns + c);
          CHECK(value == table[of_table]);
          expected[of_table] +=
              static_cast<double>(diff[i * static_cast<size_t>(columns) + static_cast<size_t>(c)]);
        }
      }
      ops.embedding_backward(indices.data(), diff.data(), found.data(), n, rows, columns);
      check_close(found, expected, 1e-5);
    }
  });
}

}  // namespace dtrain::test
