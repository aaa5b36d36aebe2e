#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

Doubles reference(const MatmulSpec& spec, const Floats& a, const Floats& b, const Floats& bias) {
  Doubles c(static_cast<size_t>(spec.m * spec.n));
  for (int64_t i = 0; i < spec.m; ++i) {
    for (int64_t j = 0; j < spec.n; ++j) {
      double total = spec.bias ? static_cast<double>(bias[static_cast<size_t>(j)]) : 0;
      for (int64_t l = 0; l < spec.k; ++l) {
        total +=
            static_cast<double>(a[static_cast<size_t>(spec.transpose_a ? l * spec.m + i : i * spec.k + l)]) *
            static_cast<double>(b[static_cast<size_t>(spec.transpose_b ? j * spec.k + l : l * spec.n + j)]);
      }
      if (spec.activation.kind == Activation::relu) total = std::max(total, 0.0);
      if (spec.activation.kind == Activation::tanh) total = std::tanh(total);
      c[static_cast<size_t>(i * spec.n + j)] = total;
    }
  }
  return c;
}

}  // namespace

DEVICE_TEST_CASE("matrix products match the reference, transposed or not, with bias and activation") {
  // For two of these sizes, the emulated cuBLASLt does not support epilogues. This tests the path without
  // epilogues.
  constexpr int64_t kExtents[][3] = {{1, 1, 1},    {5, 1, 7},    {2, 5, 8},     {3, 4, 8},     {64, 10, 30},
                                     {33, 65, 17}, {1, 100, 40}, {128, 96, 64}, {32, 512, 20}, {35, 1024, 9}};
  for (const auto& extents : kExtents) {
    const int64_t m = extents[0], n = extents[1], k = extents[2];
    const Floats a = device.random(m * k, 1), b = device.random(k * n, 2), bias = device.random(n, 3);
    const TypedArray own_a = device.typed(a), own_b = device.typed(b), own_bias = device.typed(bias);
    for (const int variant : {0, 1, 2, 3}) {
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(variant);
      MatmulSpec spec{m, n, k, (variant & 1) != 0, (variant & 2) != 0, variant != 1, false, {}};
      if (variant == 2) spec.activation.kind = Activation::relu;
      if (variant == 3) spec.activation.kind = Activation::tanh;
      const auto matmul = device.ops().matmul(spec);
      const auto scratch = device.memory(matmul->scratch_bytes());
      const auto run = [&] {
        const TypedArray c = device.typed(static_cast<size_t>(m * n));
        matmul->run(own_a.data(), own_b.data(), spec.bias ? own_bias.data() : nullptr, c.data(),
                    scratch.data());
        return c.read();
      };
      const Floats c = run();
      // The tolerance allows for bias and activation to be computed in separate passes.
      check_close(c, reference(spec, a, b, bias), device.tolerance(1e-5, 4));
      CHECK(run() == c);
    }
  }
}

DEVICE_TEST_CASE("the products of a batch match the reference, also if its matrices are not aligned") {
  constexpr int64_t kBatch = 5, kExtents[][3] = {{1, 1, 7}, {3, 5, 2}, {8, 4, 16}, {33, 17, 9}};
  for (const auto& extents : kExtents)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const int64_t m = extents[0], n = extents[1], k = extents[2];
        CAPTURE(m);
        CAPTURE(transpose_a);
        CAPTURE(transpose_b);
        const MatmulSpec spec{.m = m,
                              .n = n,
                              .k = k,
                              .transpose_a = transpose_a,
                              .transpose_b = transpose_b,
                              .activation = {},
                              .batch = kBatch};
        const Floats a = device.random(kBatch * m * k, 1), b = device.random(kBatch * k * n, 2);
        const TypedArray own_a = device.typed(a), own_b = device.typed(b),
                         c = device.typed(static_cast<size_t>(kBatch * m * n));
        const auto matmul = device.ops().matmul(spec);
        const auto scratch = device.memory(matmul->scratch_bytes());
        matmul->run(own_a.data(), own_b.data(), nullptr, c.data(), scratch.data());
        Doubles expected;
        for (int64_t i = 0; i < kBatch; ++i) {
          const Floats of_a(a.begin() + i * m * k, a.begin() + (i + 1) * m * k),
              of_b(b.begin() + i * k * n, b.begin() + (i + 1) * k * n);
          const Doubles one = reference(spec, of_a, of_b, {});
          expected.insert(expected.end(), one.begin(), one.end());
        }
        check_close(c.read(), expected, device.tolerance(1e-5, 4));
      }
}

DEVICE_TEST_CASE("matrix products with a float32 result match the reference") {
  for (const int64_t k : {1, 30, 500}) {
    const MatmulSpec spec{
        .m = 20, .n = 12, .k = k, .transpose_a = true, .float32_result = true, .activation = {}};
    const Floats a = device.random(k * spec.m, 1), b = device.random(k * spec.n, 2);
    const TypedArray own_a = device.typed(a), own_b = device.typed(b);
    const Array<float> c = device.floats(static_cast<size_t>(spec.m * spec.n));
    const auto matmul = device.ops().matmul(spec);
    const auto scratch = device.memory(matmul->scratch_bytes());
    matmul->run(own_a.data(), own_b.data(), nullptr, c.data(), scratch.data());
    check_close(c.read(), reference(spec, a, b, {}), 2e-5);
  }
}

DEVICE_TEST_CASE("matrix products propagate NaN and infinity") {
  const MatmulSpec spec{.m = 8, .n = 8, .k = 8, .bias = true, .activation = {Activation::relu, 0, false}};
  Floats a = device.random(64, 1);
  a[3] = NAN;
  const TypedArray own_a = device.typed(a), b = device.typed(device.random(64, 2)),
                   bias = device.typed(device.random(8, 3)), c = device.typed(64);
  const auto matmul = device.ops().matmul(spec);
  const auto scratch = device.memory(matmul->scratch_bytes());
  matmul->run(own_a.data(), b.data(), bias.data(), c.data(), scratch.data());
  const Floats found = c.read();
  for (size_t i = 0; i < found.size(); ++i) CHECK(std::isnan(found[i]) == (i < 8));
}

TEST_CASE("rows of matrix products do not depend on other rows if the spec requires this") {
  for (const cpu::Kernels* const kernels : cpu::supported_kernels()) {
    CAPTURE(kernels->instruction_set);
    constexpr int64_t kRows = 41, kExtents[][2] = {{1, 7}, {33, 65}, {64, 300}, {384, 128}};
    for (const auto& extents : kExtents) {
      const int64_t n = extents[0], k = extents[1];
      for (const bool transposed : {false, true}) {
        CAPTURE(n);
        CAPTURE(transposed);
        const auto product = [&](size_t threads, int64_t rows, const Floats& a, const Floats& b) {
          std::vector<int> cores(threads, available_cores().front());
          const auto context = make_cpu_context({}, cores, false);
          context->attach();
          cpu::CpuOps ops(*context, *kernels, true);
          const auto matmul =
              ops.matmul({.m = rows, .n = n, .k = k, .transpose_b = transposed, .activation = {}});
          Floats c(static_cast<size_t>(rows * n)), scratch(matmul->scratch_bytes() / sizeof(float));
          matmul->run(a.data(), b.data(), nullptr, c.data(), scratch.data());
          return c;
        };
        const auto device = cpu_device();
        const Floats a = device->random(kRows * k, 1), b = device->random(k * n, 2);
        const MatmulSpec whole{.m = kRows, .n = n, .k = k, .transpose_b = transposed, .activation = {}};
        const Floats all = product(1, kRows, a, b);
        check_close(all, reference(whole, a, b, {}), 2e-5);
        CHECK(product(2, kRows, a, b) == all);
        for (const int64_t row : {0, 5, 40}) {
          const Floats one = product(1, 1, Floats(a.begin() + row * k, a.begin() + (row + 1) * k), b);
          CHECK(one == Floats(all.begin() + row * n, all.begin() + (row + 1) * n));
        }
      }
    }
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("a matrix product that is too large for cuBLASLt is refused") {
    const auto device = gpu_device({});
    const MatmulSpec spec{.m = int64_t{1} << 31, .n = 1, .k = 1, .activation = {}};
    CHECK_THROWS_WITH_AS(
        device->ops().matmul(spec),
        "cuBLASLt supports matrices with at most 2147483647 rows and columns, but this matrix "
        "product multiplies [2147483648, 1] and [1, 1]; use a smaller batch",
        Unsupported);
  }
}

}  // namespace dtrain::test
