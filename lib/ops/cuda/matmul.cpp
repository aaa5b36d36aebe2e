#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "device/cuda/check.h"
#include "device/cuda/current.h"
#include "ops/cuda/bias_activation.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/handles.h"

namespace dtrain::cuda {
namespace {

constexpr const char* kPreparing = "preparing a matrix product";

cudaDataType_t blas_type(DType type) {
  switch (type) {
    case DType::bfloat16:
      return CUDA_R_16BF;
    case DType::float16:
      return CUDA_R_16F;
    default:
      break;
  }
  return CUDA_R_32F;
}

MatrixLayout make_layout(cudaDataType_t type, int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                                   rows),
        kPreparing);
  return MatrixLayout(layout);
}

/// cuBLASLt's matrices are column-major, so it reads our row-major matrices as their transposes. The call
/// computes C^T = op(B)^T op(A)^T. Its bias has one element per row of C^T, that is, per column of C.
///
/// cuBLASLt adds the bias but never applies relu: its epilogue computes max(x, 0), which may turn NaN into 0.
/// A network that diverges would then continue with a finite loss and zeros instead of NaN. The activation
/// kernel keeps NaN, at the cost of one more read and write of C.
class CudaMatmul final : public Matmul {
 public:
  CudaMatmul(CudaOps& ops, const MatmulSpec& spec) : ops_(ops), spec_(spec) {
    const cudaDataType_t type = blas_type(ops.compute_type());
    const cudaDataType_t result = spec.float32_result ? CUDA_R_32F : type;
    if (result != type && (spec.bias || spec.activation.kind != Activation::linear))
      throw Error("a matrix product with a float32 result cannot have a bias or an activation");
    if (std::max({spec.m, spec.n, spec.k}) > std::numeric_limits<int32_t>::max())
      throw Unsupported(
          fmt::format("cuBLASLt supports matrices with at most {} rows and columns, but this matrix product "
                      "multiplies [{}, {}] and [{}, {}]; use a smaller batch",
                      std::numeric_limits<int32_t>::max(), spec.m, spec.k, spec.k, spec.n));
    describe();
    left_ = spec.transpose_b ? make_layout(type, spec.k, spec.n) : make_layout(type, spec.n, spec.k);
    right_ = spec.transpose_a ? make_layout(type, spec.m, spec.k) : make_layout(type, spec.k, spec.m);
    result_ = make_layout(result, spec.n, spec.m);
    set_batch(left_, spec.k * spec.n, type);
    set_batch(right_, spec.m * spec.k, type);
    set_batch(result_, spec.m * spec.n, result);
    adds_bias_ = spec.bias && choose(CUBLASLT_EPILOGUE_BIAS);
    if (!adds_bias_ && !choose(CUBLASLT_EPILOGUE_DEFAULT))
      throw Unsupported(fmt::format("cuBLASLt has no algorithm for a product of [{}, {}] and [{}, {}]",
                                    spec.m, spec.k, spec.k, spec.n));
  }

  size_t scratch_bytes() const override { return 0; }

  void run(const void* a, const void* b, const void* bias, void* c, void*) override {
    CudaContext& context = ops_.context();
    if (adds_bias_) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const float one = 1, zero = 0;
    check(cublasLtMatmul(context.blas(), desc_.get(), &one, b, left_.get(), a, right_.get(), &zero, c,
                         result_.get(), c, result_.get(), &algorithm_, context.workspace(),
                         context.workspace_bytes(), context.compute()),
          "a matrix product");
    if (spec_.bias && !adds_bias_) {
      bias_activation(ops_, spec_.activation, bias, c, spec_.m, spec_.n);
    } else if (spec_.activation.kind != Activation::linear) {
      ops_.activation_forward(spec_.activation, c, c, spec_.m * spec_.n);
    }
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(desc_.get(), attribute, &value, sizeof value), kPreparing);
  }

  void describe() {
    const bool tf32 = ops_.compute_type() == DType::float32 && ops_.math().tf32;
    cublasLtMatmulDesc_t desc = nullptr;
    check(
        cublasLtMatmulDescCreate(&desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        kPreparing);
    desc_.reset(desc);
    set(CUBLASLT_MATMUL_DESC_TRANSA, spec_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, spec_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  }

  /// Makes the layout describe a batch of matrices with `elements` elements each, one after the other in
  /// memory.
  void set_batch(const MatrixLayout& matrix, int64_t elements, cudaDataType_t type) {
    if (spec_.batch == 1) return;
    const auto count = static_cast<int32_t>(spec_.batch);
    check(cublasLtMatrixLayoutSetAttribute(matrix.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                           sizeof count),
          kPreparing);
    check(cublasLtMatrixLayoutSetAttribute(matrix.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                           &elements, sizeof elements),
          kPreparing);
    const int64_t bytes = elements * (type == CUDA_R_32F ? 4 : 2);
    while (bytes % alignment_ != 0) alignment_ /= 2;
  }

  MatmulPreference preference() const {
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made), kPreparing);
    MatmulPreference preference(made);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value), kPreparing);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{ops_.context().workspace_bytes()});
    // If a long sum is split, its parts are stored as float32 in the workspace and added in a separate step.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_);
    return preference;
  }

  /// Selects the first algorithm that cuBLASLt's heuristics propose. Returns false if the heuristics find
  /// none.
  bool choose(cublasLtEpilogue_t epilogue) {
    CudaContext& context = ops_.context();
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    // The heuristics use the bias's address only for its alignment.
    const void* bias = static_cast<char*>(context.workspace()) + 16;
    if (epilogue & CUBLASLT_EPILOGUE_BIAS) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    std::array<cublasLtMatmulHeuristicResult_t, 4> found{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        context.blas(), desc_.get(), left_.get(), right_.get(), result_.get(), result_.get(),
        preference().get(), static_cast<int>(found.size()), found.data(), &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
    // cuBLASLt's heuristics may also return this status if an epilogue does not support the type or the
    // shape.
    if (status == CUBLAS_STATUS_INVALID_VALUE && epilogue != CUBLASLT_EPILOGUE_DEFAULT) return false;
    check(status, kPreparing);
    for (int i = 0; i < count; ++i) {
      const auto& candidate = found[static_cast<size_t>(i)];
      if (candidate.state != CUBLAS_STATUS_SUCCESS) continue;
      algorithm_ = candidate.algo;
      return true;
    }
    return false;
  }

  CudaOps& ops_;
  MatmulSpec spec_;
  MatmulDesc desc_;
  MatrixLayout left_, right_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
  bool adds_bias_ = false;  // true if the product's epilogue adds the bias
  /// Alignment of all matrices in bytes. Arenas and flat buffers are aligned to 16 bytes. The matrices of a
  /// batch follow each other without gaps, so their alignment may be smaller.
  uint32_t alignment_ = 16;
};

}  // namespace

std::unique_ptr<Matmul> CudaOps::matmul(const MatmulSpec& spec) {
  const OnDevice on(context_.index());  // plans may be prepared by the thread of another GPU
  return std::make_unique<CudaMatmul>(*this, spec);
}

}  // namespace dtrain::cuda
