#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/onednn/call.h"
#include "ops/cpu/onednn/descriptors.h"

namespace dtrain::cpu {
namespace {

/// Returns whether oneDNN's sgemm would be slow for this product. With AVX2, if A has few rows and
/// consecutive rows of B are a multiple of 2 KB apart, the rows of B compete for the same cache sets and
/// sgemm takes up to twice the time. If B is not aligned to 32 bytes, sgemm first copies B and is not slow.
bool is_slow_aligned(const MatmulSpec& spec, int threads) {
  constexpr int64_t kBadStride = 512;  // floats
  const auto isa = dnnl::get_effective_cpu_isa();
  return (isa == dnnl::cpu_isa::avx2 || isa == dnnl::cpu_isa::avx2_vnni) && threads == 1 &&
         !spec.transpose_a && !spec.transpose_b && spec.n % kBadStride == 0 && spec.m >= 32 && spec.m <= 256;
}

/// Adds the bias and applies the activation of a product.
void finish_product(CpuOps& ops, const MatmulSpec& spec, const void* bias, void* c) {
  if (!spec.bias && spec.activation.kind == Activation::linear) return;
  parallel(ops.threads(), spec.m, 1, spec.n, [&](int64_t begin, int64_t end, int) {
    ops.kernels().bias_activation(f32(c), f32(c), spec.bias ? f32(bias) : nullptr, spec.activation, spec.n,
                                  begin, end);
  });
}

/// A matrix product by oneDNN's sgemm or by its matmul primitive, whichever was faster in measurements. For a
/// small transposed B on one thread, the primitive is at least 1.5 times as fast as sgemm. For a large
/// transposed B, the primitive is 10 % slower; in all other cases and on two threads, it is up to 50 %
/// slower. The bias and the activation are applied in a separate pass over the result.
class CpuMatmul final : public Matmul {
 public:
  CpuMatmul(CpuOps& ops, const MatmulSpec& spec)
      : ops_(ops), spec_(spec), is_slow_aligned_(is_slow_aligned(spec, ops.threads())) {
    constexpr int64_t kSmall = 1 << 18;  // floats that fit in the second-level cache
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
    finish_product(ops_, spec_, bias, c);
  }

 private:
  /// Computes c = a b. If sgemm would be slow (is_slow_aligned()), this computes the first kFirst columns,
  /// and then all columns except the first kUnaligned ones. The second product begins at an unaligned address
  /// of B, so sgemm copies B and is not slow. Some columns are computed twice, with bitwise the same result.
  void multiply(const float* a, const float* b, float* c) const {
    if (!is_slow_aligned_) return multiply(spec_.n, a, b, c);
    constexpr int64_t kFirst = 16, kUnaligned = 4;
    multiply(kFirst, a, b, c);
    multiply(spec_.n - kUnaligned, a, b + kUnaligned, c + kUnaligned);
  }

  void multiply(int64_t columns, const float* a, const float* b, float* c) const {
    const auto& [m, n, k, transpose_a, transpose_b, has_bias, float32_result, activation, batch] = spec_;
    const auto status = dnnl::sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, columns, k, 1.0f, a,
                                    transpose_a ? m : k, b, transpose_b ? k : n, 0.0f, c, n);
    if (status != dnnl::status::success) throw Error("oneDNN: a matrix product failed");
  }

  CpuOps& ops_;
  MatmulSpec spec_;
  bool is_slow_aligned_;
  Call primitive_;  // empty: sgemm
};

/// A matrix product that computes each row independently of the other rows. sgemm cannot be used, because its
/// sums depend on the number of rows.
class RowMatmul final : public Matmul {
 public:
  RowMatmul(CpuOps& ops, const MatmulSpec& spec) : ops_(ops), spec_(spec) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(ops_.threads() * ProductPanels::work_floats(spec_)) * sizeof(float);
  }

  void run(const void* a, const void* b, const void* bias, void* c, void* scratch) override {
    parallel(ops_.threads(), ProductPanels::count(spec_), 1, spec_.m * spec_.k,
             [&](int64_t begin, int64_t end, int thread) {
               float* const work = f32(scratch) + thread * ProductPanels::work_floats(spec_);
               ops_.kernels().row_product(spec_, f32(a), f32(b), f32(c), work, begin, end);
             });
    finish_product(ops_, spec_, bias, c);
  }

 private:
  CpuOps& ops_;
  MatmulSpec spec_;
};

/// A batch of matrix products, computed one after the other.
class BatchMatmul final : public Matmul {
 public:
  /// `one` computes one product of the batch.
  BatchMatmul(const MatmulSpec& spec, std::unique_ptr<Matmul> one) : spec_(spec), one_(std::move(one)) {}

  size_t scratch_bytes() const override { return one_->scratch_bytes(); }

  void run(const void* a, const void* b, const void*, void* c, void* scratch) override {
    const int64_t of_a = spec_.m * spec_.k, of_b = spec_.k * spec_.n, of_c = spec_.m * spec_.n;
    for (int64_t i = 0; i < spec_.batch; ++i)
      one_->run(f32(a) + i * of_a, f32(b) + i * of_b, nullptr, f32(c) + i * of_c, scratch);
  }

 private:
  MatmulSpec spec_;
  std::unique_ptr<Matmul> one_;
};

}  // namespace

std::unique_ptr<Matmul> CpuOps::matmul(const MatmulSpec& spec) {
  if (spec.batch > 1) {
    MatmulSpec one = spec;
    one.batch = 1;
    return std::make_unique<BatchMatmul>(spec, matmul(one));
  }
  if (independent_rows_ && !spec.transpose_a) return std::make_unique<RowMatmul>(*this, spec);
  return prepared("matrix product", [&] { return std::make_unique<CpuMatmul>(*this, spec); });
}

}  // namespace dtrain::cpu

namespace dtrain {

std::unique_ptr<Ops> make_cpu_ops(Context& context, bool independent_rows) {
  return std::make_unique<cpu::CpuOps>(context, *cpu::supported_kernels().front(), independent_rows);
}

}  // namespace dtrain
