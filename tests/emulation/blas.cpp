// Emulates the part of cuBLASLt that dtrain uses: products of column-major matrices. Computes in double
// precision, and makes the checks that the documentation of cublasLtMatmul requires.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <cublasLt.h>
#include <memory>
#include <optional>
#include <utility>

#include "emulation/memory.h"
#include "emulation/numbers.h"
#include "emulation/queue.h"

using namespace dtrain::emulation;

struct cublasLtContext {
  int device;
};

namespace {

struct Desc {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  cublasOperation_t left = CUBLAS_OP_N, right = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct Layout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t stride;
  int32_t batch = 1;
  int64_t batch_stride = 0;
  bool operator==(const Layout&) const = default;
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
};

/// The properties of a selected algorithm. They are stored in the opaque words of cublasLtMatmulAlgo_t.
struct Algorithm {
  uint64_t mark;
  uint64_t workspace;
  uint64_t alignment;
  uint64_t problem;
  uint64_t reduction;  // reduction scheme for partial sums
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));
constexpr uint64_t kMark = 0x616c676f72697468;

// Accessors for the objects behind the library's opaque types.
Desc& of(cublasLtMatmulDesc_t desc) {
  return *reinterpret_cast<Desc*>(desc);
}
Layout& of(cublasLtMatrixLayout_t layout) {
  return *reinterpret_cast<Layout*>(layout);
}
Preference& of(cublasLtMatmulPreference_t preference) {
  return *reinterpret_cast<Preference*>(preference);
}

std::optional<Number> number(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_32F:
      return Number::float32;
    case CUDA_R_16BF:
      return Number::bfloat16;
    case CUDA_R_16F:
      return Number::float16;
    default:
      return std::nullopt;
  }
}

bool has_bias(const Desc& desc) {
  return (desc.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
}
bool has_relu(const Desc& desc) {
  return (desc.epilogue & CUBLASLT_EPILOGUE_RELU) != 0;
}

struct Product {
  Desc desc;
  Layout a, b, d;
  int64_t inner() const { return static_cast<int64_t>(desc.left == CUBLAS_OP_N ? a.columns : a.rows); }
};

cublasStatus_t check_product(const Product& p) {
  const bool ta = p.desc.left != CUBLAS_OP_N, tb = p.desc.right != CUBLAS_OP_N;
  const uint64_t rows = ta ? p.a.columns : p.a.rows, inner = ta ? p.a.rows : p.a.columns;
  const uint64_t columns = tb ? p.b.rows : p.b.columns, inner_b = tb ? p.b.columns : p.b.rows;
  if (rows != p.d.rows || columns != p.d.columns || inner != inner_b) return CUBLAS_STATUS_INVALID_VALUE;
  if (rows == 0 || columns == 0 || inner == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (p.a.batch != p.d.batch || p.b.batch != p.d.batch || p.d.batch < 1) return CUBLAS_STATUS_INVALID_VALUE;
  for (const Layout& layout : {p.a, p.b, p.d}) {
    if (layout.stride < static_cast<int64_t>(layout.rows)) return CUBLAS_STATUS_INVALID_VALUE;
    if (!number(layout.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (p.a.type != p.b.type || (p.d.type != p.a.type && p.d.type != CUDA_R_32F))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool tf32 = p.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if ((p.desc.compute != CUBLAS_COMPUTE_32F && !tf32) || p.desc.scale != CUDA_R_32F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (tf32 && p.a.type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  if ((p.desc.epilogue & ~(CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_DEFAULT)) != 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

uint64_t fingerprint(const Product& p) {
  uint64_t hash = 1;
  for (const uint64_t x : {uint64_t{p.desc.compute}, uint64_t{p.desc.left}, uint64_t{p.desc.right},
                           uint64_t{p.desc.epilogue}, p.d.rows, p.d.columns, static_cast<uint64_t>(p.d.batch),
                           static_cast<uint64_t>(p.inner()), uint64_t{p.a.type}, uint64_t{p.d.type}}) {
    hash = (hash ^ x) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

/// Rounds away the last 13 bits of the mantissa.
double as_tf32(double x) {
  float f = static_cast<float>(x);
  uint32_t bits = 0;
  std::memcpy(&bits, &f, 4);
  if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu;
  std::memcpy(&f, &bits, 4);
  return static_cast<double>(f);
}

double rounded_to(Number type, double value) {
  alignas(float) std::byte place[sizeof(float)];
  write_number(place, type, 0, value);
  return read_number(place, type, 0);
}

/// Computes d = alpha * a * b + beta * c and the epilogue. If `parts` is set, each element is computed as
/// with a split reduction: as the sum of two halves, each of which is rounded to the type `parts`.
void multiply(const Product& p, std::optional<Number> parts, float alpha, const void* a, const void* b,
              float beta, const void* c, void* d) {
  const bool tf32 = p.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const Number in = *number(p.a.type), out = *number(p.d.type);
  const auto element = [&](const void* array, const Layout& layout, bool transposed, int64_t i, int64_t j) {
    const double x = read_number(array, in, transposed ? i * layout.stride + j : j * layout.stride + i);
    return tf32 ? as_tf32(x) : x;
  };
  const bool ta = p.desc.left != CUBLAS_OP_N, tb = p.desc.right != CUBLAS_OP_N;
  for (int64_t j = 0; j < static_cast<int64_t>(p.d.columns); ++j) {
    for (int64_t i = 0; i < static_cast<int64_t>(p.d.rows); ++i) {
      double sum = 0, first_half = 0;
      for (int64_t l = 0; l < p.inner(); ++l) {
        if (parts && l == p.inner() / 2) first_half = rounded_to(*parts, std::exchange(sum, 0));
        sum += element(a, p.a, ta, i, l) * element(b, p.b, tb, l, j);
      }
      if (parts) sum = first_half + rounded_to(*parts, sum);
      sum *= static_cast<double>(alpha);
      const int64_t at = j * p.d.stride + i;
      if (beta != 0) sum += static_cast<double>(beta) * read_number(c, out, at);
      if (has_bias(p.desc)) sum += read_number(p.desc.bias, out, i);
      if (has_relu(p.desc)) sum = std::fmax(sum, 0.0);  // NaN becomes 0, as NVIDIA documents
      write_number(d, out, at, sum);
    }
  }
}

bool aligned(const void* data, uint64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % bytes == 0;
}

const void* in_batch(const void* first, const Layout& layout, int64_t i) {
  const auto bytes = static_cast<int64_t>(bytes_of(*number(layout.type)));
  return static_cast<const std::byte*>(first) + i * layout.batch_stride * bytes;
}

bool is_aligned_batch(const void* data, const Layout& layout, uint64_t bytes) {
  return aligned(data, bytes) && (layout.batch == 1 || aligned(in_batch(data, layout, 1), bytes));
}

bool lies_on_device(const void* data, const Layout& layout) {
  const uint64_t elements = static_cast<uint64_t>((layout.batch - 1) * layout.batch_stride) +
                            (layout.columns - 1) * static_cast<uint64_t>(layout.stride) + layout.rows;
  return is_device_memory(data, elements * bytes_of(*number(layout.type)));
}

template <class T>
cublasStatus_t take(T& into, const void* value, size_t bytes) {
  if (!value || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&into, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_status(cudaError_t status) {
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* made) {
  const auto lock = lock_machine();
  if (machine().devices == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  // The query may allocate memory, so it must not be captured.
  if (forbid_capture() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  *made = reinterpret_cast<cublasLtHandle_t>(new cublasLtContext{current_device()});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<cublasLtContext*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "another cuBLAS error";
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return cublasLtGetStatusName(status);
}
size_t cublasLtGetVersion() {
  return CUBLAS_VERSION;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  auto* desc = new Desc();
  desc->compute = compute;
  desc->scale = scale;
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete &of(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name,
                                              const void* value, size_t bytes) {
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(of(desc).left, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(of(desc).right, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(of(desc).epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(of(desc).bias, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t stride) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, stride});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t name, const void* value,
                                                size_t bytes) {
  switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return take(of(layout).batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return take(of(layout).batch_stride, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &of(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &of(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, size_t bytes) {
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return take(of(preference).workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return take(of(preference).reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return take(of(preference).alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return take(of(preference).alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return take(of(preference).alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(of(preference).alignment[3], value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

/// Returns the coarsest reduction scheme allowed by the preference.
uint64_t reduction_of(const Preference& preference) {
  for (const auto scheme : {CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, CUBLASLT_REDUCTION_SCHEME_INPLACE,
                            CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE})
    if ((preference.reductions & scheme) != 0) return scheme;
  return CUBLASLT_REDUCTION_SCHEME_NONE;
}

/// Finds an algorithm for every product, except for some products with epilogues. Therefore the tests also
/// run the code for products without a fused epilogue. If there is no algorithm, the function reports this in
/// both of the ways in which cuBLASLt may report it.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  *found = 0;
  if (reinterpret_cast<cublasLtContext*>(handle)->device != current_device())
    return CUBLAS_STATUS_ARCH_MISMATCH;
  const Product product{of(desc), of(a), of(b), of(d)};
  if (wanted < 1 || of(c) != of(d)) return CUBLAS_STATUS_INVALID_VALUE;
  if (const cublasStatus_t status = check_product(product); status != CUBLAS_STATUS_SUCCESS) return status;
  const bool fused = product.desc.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  if (fused && (product.d.rows + product.d.columns) % 4 == 3)
    return product.d.rows % 2 == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_INVALID_VALUE;
  if (has_bias(product.desc) && (!product.desc.bias || !aligned(product.desc.bias, 2)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const Preference& p = of(preference);
  const Algorithm algorithm{kMark, std::min<uint64_t>(p.workspace, 64 << 10),
                            *std::max_element(p.alignment, p.alignment + 4), fingerprint(product),
                            reduction_of(p)};
  results[0] = {};
  std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
  results[0].workspaceSize = algorithm.workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  const auto lock = lock_machine();
  const Product product{of(desc), of(a_layout), of(b_layout), of(d_layout)};
  if (of(c_layout) != of(d_layout)) return CUBLAS_STATUS_INVALID_VALUE;
  if (const cublasStatus_t status = check_product(product); status != CUBLAS_STATUS_SUCCESS) return status;
  Algorithm algorithm{};
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.mark != kMark || algorithm.problem != fingerprint(product))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (algorithm.workspace > workspace_bytes || !aligned(workspace, 16)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_device_memory(workspace, algorithm.workspace)) return CUBLAS_STATUS_INVALID_VALUE;
  if (reinterpret_cast<cublasLtContext*>(handle)->device != current_device())
    return CUBLAS_STATUS_ARCH_MISMATCH;
  if (!is_aligned_batch(a, product.a, algorithm.alignment) ||
      !is_aligned_batch(b, product.b, algorithm.alignment) ||
      !is_aligned_batch(c, product.d, algorithm.alignment) ||
      !is_aligned_batch(d, product.d, algorithm.alignment))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!lies_on_device(a, product.a) || !lies_on_device(b, product.b) || !lies_on_device(d, product.d))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (has_bias(product.desc) &&
      !is_device_memory(product.desc.bias, product.d.rows * bytes_of(*number(product.d.type))))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!load_kernels(current_device(), "cuBLASLt")) return CUBLAS_STATUS_ALLOC_FAILED;
  const float by = *static_cast<const float*>(alpha), plus = *static_cast<const float*>(beta);
  std::optional<Number> parts;
  if (algorithm.reduction != CUBLASLT_REDUCTION_SCHEME_NONE)
    parts = algorithm.reduction == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE ? Number::float32
                                                                          : number(product.d.type);
  return blas_status(answer(enqueue(stream, [=] {
    std::memset(workspace, 0xff, algorithm.workspace);
    for (int64_t i = 0; i < product.d.batch; ++i)
      multiply(product, parts, by, in_batch(a, product.a, i), in_batch(b, product.b, i), plus,
               in_batch(c, product.d, i), const_cast<void*>(in_batch(d, product.d, i)));
  })));
}

}  // extern "C"
