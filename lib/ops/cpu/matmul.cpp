#include <algorithm>

#include "base/error.h"
#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {
namespace {

/// By oneDNN's sgemm, which was faster than its matmul primitive with everything fused on all shapes
/// measured, large ones twice; bias and activation are one more pass.
class CpuMatmul final : public Matmul {
 public:
  CpuMatmul(CpuOps& ops, const MatmulSpec& spec) : ops_(ops), spec_(spec) {}

  size_t scratch_bytes() const override { return 0; }

  void run(const float* a, const float* b, const float* bias, float* c, void*) override {
    const auto& [m, n, k, transpose_a, transpose_b, has_bias, activation] = spec_;
    const auto status = dnnl::sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0f, a,
                                    transpose_a ? m : k, b, transpose_b ? k : n, 0.0f, c, n);
    if (status != dnnl::status::success) throw Error("oneDNN: a matrix product failed");
    if (!has_bias && activation.kind == Activation::linear) return;
    parallel(ops_.threads(), m, 1, n, [&](int64_t begin, int64_t end, int) {
      ops_.kernels().bias_activation(c, c, spec_.bias ? bias : nullptr, spec_.activation, spec_.n, begin,
                                     end);
    });
  }

 private:
  CpuOps& ops_;
  MatmulSpec spec_;
};

}  // namespace

std::unique_ptr<Matmul> CpuOps::matmul(const MatmulSpec& spec) {
  return std::make_unique<CpuMatmul>(*this, spec);
}

}  // namespace dtrain::cpu

namespace dtrain {

std::unique_ptr<Ops> make_cpu_ops(Context& context) {
  return std::make_unique<cpu::CpuOps>(context, *cpu::supported_kernels().front());
}

}  // namespace dtrain
