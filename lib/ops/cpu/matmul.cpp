#include <algorithm>

#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/onednn/call.h"
#include "ops/cpu/onednn/descriptors.h"

namespace dtrain::cpu {
namespace {

/// Where rows of B lie a multiple of 2 KB apart, oneDNN's sgemm for AVX2 and few rows of A meets the same
/// lines of the cache again and again: it takes up to twice the time. It does not where B is not aligned to
/// 32 bytes, as it reads B by way of a copy then.
bool is_slow_aligned(const MatmulSpec& spec, int threads) {
  constexpr int64_t kBadStride = 512;  // floats
  const auto isa = dnnl::get_effective_cpu_isa();
  return (isa == dnnl::cpu_isa::avx2 || isa == dnnl::cpu_isa::avx2_vnni) && threads == 1 &&
         !spec.transpose_a && !spec.transpose_b && spec.n % kBadStride == 0 && spec.m >= 32 && spec.m <= 256;
}

/// By oneDNN's sgemm, or its matmul primitive where that was seen to be faster: on one thread with B
/// transposed and small, by a half or more (large, it is slower by a tenth; otherwise, and on two threads, by
/// as much as a half). Bias and activation are one more pass.
class CpuMatmul final : public Matmul {
 public:
  CpuMatmul(CpuOps& ops, const MatmulSpec& spec)
      : ops_(ops), spec_(spec), is_slow_aligned_(is_slow_aligned(spec, ops.threads())) {
    constexpr int64_t kSmall = 1 << 18;  // floats that a second-level cache holds
    if (!spec.transpose_b || spec.n * spec.k > kSmall || ops.threads() > 1) return;
    const auto desc = matmul_desc(ops.engine().engine, spec);
    primitive_ = Call(ops.engine(), dnnl::matmul(desc), desc.scratchpad_desc(),
                      {{DNNL_ARG_SRC, desc.src_desc()},
                       {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                       {DNNL_ARG_DST, desc.dst_desc()}});
  }

  size_t scratch_bytes() const override { return primitive_.scratch_bytes(); }

  void run(const void* a, const void* b, const void* bias, void* c, void* scratch) override {
    if (primitive_) {
      primitive_.run(ops_.engine(), {a, b, c}, scratch);
    } else {
      multiply(f32(a), f32(b), f32(c));
    }
    if (!spec_.bias && spec_.activation.kind == Activation::linear) return;
    parallel(ops_.threads(), spec_.m, 1, spec_.n, [&](int64_t begin, int64_t end, int) {
      ops_.kernels().bias_activation(f32(c), f32(c), spec_.bias ? f32(bias) : nullptr, spec_.activation,
                                     spec_.n, begin, end);
    });
  }

 private:
  /// The few first columns, and then all but fewer than those, from where B is not aligned. What is computed
  /// twice has the same bits.
  void multiply(const float* a, const float* b, float* c) const {
    if (!is_slow_aligned_) return multiply(spec_.n, a, b, c);
    constexpr int64_t kFirst = 16, kUnaligned = 4;
    multiply(kFirst, a, b, c);
    multiply(spec_.n - kUnaligned, a, b + kUnaligned, c + kUnaligned);
  }

  void multiply(int64_t columns, const float* a, const float* b, float* c) const {
    const auto& [m, n, k, transpose_a, transpose_b, has_bias, float32_result, activation] = spec_;
    const auto status = dnnl::sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, columns, k, 1.0f, a,
                                    transpose_a ? m : k, b, transpose_b ? k : n, 0.0f, c, n);
    if (status != dnnl::status::success) throw Error("oneDNN: a matrix product failed");
  }

  CpuOps& ops_;
  MatmulSpec spec_;
  bool is_slow_aligned_;
  Call primitive_;  // empty: sgemm
};

}  // namespace

std::unique_ptr<Matmul> CpuOps::matmul(const MatmulSpec& spec) {
  return prepared("matrix product", [&] { return std::make_unique<CpuMatmul>(*this, spec); });
}

}  // namespace dtrain::cpu

namespace dtrain {

std::unique_ptr<Ops> make_cpu_ops(Context& context) {
  return std::make_unique<cpu::CpuOps>(context, *cpu::supported_kernels().front());
}

}  // namespace dtrain
