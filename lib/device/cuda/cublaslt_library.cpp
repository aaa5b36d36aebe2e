// Defines the cuBLASLt functions that dtrain uses. Each function forwards its call to the cuBLASLt library
// that is opened at run time. To use another function, add a line here (otherwise the linker reports it as
// undefined).
#include <cublasLt.h>

#include "device/cuda/library.h"
#include "device/cuda/version.h"

namespace {

using dtrain::cuda::Library;

Library::Identity identify(const Library& opened) {
  const auto version = opened.find<decltype(&::cublasLtGetVersion)>("cublasLtGetVersion");
  const auto cuda_version = opened.find<decltype(&::cublasLtGetCudartVersion)>("cublasLtGetCudartVersion");
  return {dtrain::cuda::library_version_text(version()),
          dtrain::cuda::cuda_major_problem(static_cast<int>(cuda_version()))};
}

const Library& cublaslt() {
  static const Library library("cuBLASLt", DTRAIN_CUBLASLT_NAME, DTRAIN_CUBLASLT_PATH, identify);
  return library;
}

}  // namespace

#define FORWARD(result, function, parameters, arguments) \
  DTRAIN_FORWARD(cublaslt, result, function, parameters, arguments)

extern "C" {

FORWARD(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle), (handle))
FORWARD(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle), (handle))
FORWARD(size_t, cublasLtGetVersion, (), ())
FORWARD(const char*, cublasLtGetStatusString, (cublasStatus_t status), (status))

FORWARD(cublasStatus_t, cublasLtMatmulDescCreate,
        (cublasLtMatmulDesc_t * made, cublasComputeType_t compute, cudaDataType_t scale),
        (made, compute, scale))
FORWARD(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc), (desc))
FORWARD(cublasStatus_t, cublasLtMatmulDescSetAttribute,
        (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name, const void* value, size_t bytes),
        (desc, name, value, bytes))

FORWARD(cublasStatus_t, cublasLtMatrixLayoutCreate,
        (cublasLtMatrixLayout_t * made, cudaDataType type, uint64_t rows, uint64_t columns, int64_t stride),
        (made, type, rows, columns, stride))
FORWARD(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout), (layout))
FORWARD(cublasStatus_t, cublasLtMatrixLayoutSetAttribute,
        (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, const void* value,
         size_t bytes),
        (layout, name, value, bytes))

FORWARD(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * made), (made))
FORWARD(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference),
        (preference))
FORWARD(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
        (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name, const void* value,
         size_t bytes),
        (preference, name, value, bytes))

FORWARD(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
         cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t results[],
         int* found_results),
        (handle, desc, a, b, c, d, preference, wanted, results, found_results))
FORWARD(cublasStatus_t, cublasLtMatmul,
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
         cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
         const void* c, cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
         const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes, cudaStream_t stream),
        (handle, desc, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algorithm, workspace,
         workspace_bytes, stream))
}
