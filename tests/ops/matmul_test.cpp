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

TEST_CASE("matrix products, transposed and not, with bias and activation") {
  constexpr int64_t kExtents[][3] = {{1, 1, 1},    {5, 1, 7},    {64, 10, 30},
                                     {33, 65, 17}, {1, 100, 40}, {128, 96, 64}};
  on_every_cpu([&](cpu::CpuOps& ops) {
    for (const auto& [m, n, k] : kExtents) {
      const Floats a = random_floats(m * k, 1), b = random_floats(k * n, 2), bias = random_floats(n, 3);
      for (const int variant : {0, 1, 2, 3}) {
        MatmulSpec spec{m, n, k, (variant & 1) != 0, (variant & 2) != 0, variant != 1, {}};
        if (variant == 2) spec.activation.kind = Activation::relu;
        if (variant == 3) spec.activation.kind = Activation::tanh;
        const auto matmul = ops.matmul(spec);
        const Workspace scratch(ops, matmul->scratch_bytes());
        Floats c(static_cast<size_t>(m * n), std::numeric_limits<float>::quiet_NaN()), again(c.size());
        matmul->run(a.data(), b.data(), spec.bias ? bias.data() : nullptr, c.data(), scratch.data());
        check_close(c, reference(spec, a, b, bias), 1e-5);
        matmul->run(a.data(), b.data(), spec.bias ? bias.data() : nullptr, again.data(), scratch.data());
        CHECK(again == c);
      }
    }
  });
}

}  // namespace dtrain::test
